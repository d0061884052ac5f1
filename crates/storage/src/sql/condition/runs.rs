//! Tests of runs that indexes of PostgreSQL know in other words.

use super::Writer;
use crate::{
    codec::text::{self, words},
    sql::{columns::Place, dialect::Dialect, statement::Bind},
};
use hindsight_filter::condition::{Is, Test, Value};
use hindsight_run::keys;

impl Writer<'_> {
    /// Appends where the pipeline of a record comes from, which is one of these: its label, or a
    /// reference to it.
    pub(super) fn of_pipelines(&mut self, values: &[Value]) {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            Value::Int(_) | Value::Time(_) => None,
        };
        let names: Vec<String> = values.iter().filter_map(text).collect();
        if self.dialect == Dialect::Sqlite || !self.by_label || names.is_empty() {
            return;
        }
        self.out.push("(");
        match names.as_slice() {
            [name] => self.dialect.labelled(self.out, keys::PIPELINE, name),
            several => {
                let kept = several.iter().map(|name| words::stored(name).into_owned());
                let kept = kept.collect();
                self.dialect
                    .labelled_with_one(self.out, keys::PIPELINE, kept);
            }
        }
        self.out.push(" OR ");
        let names = names.iter().map(|name| text::stored(name).into_owned());
        let names: Vec<String> = names.collect();
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let place = Place::Column("object_pipeline_ref");
        let is_cut = self.cut(place, &texts);
        self.compared(place, &texts);
        self.dialect.one_of(self.out, false, Bind::Texts(names));
        self.out.push(if is_cut { ")" } else { "" }).push(") AND ");
    }

    /// Appends, to a test of what an index has in the place of the reason, that it is not the phase.
    pub(super) fn has_reason(&mut self) {
        self.out.push(" AND object_reason IS NOT NULL");
    }

    /// Appends how long the object of a run took, unless the run has times of its own.
    pub(super) fn of_object_or_own_times(&mut self, test: &Test) {
        let is_range = matches!(
            test.is,
            Is::Equal(_) | Is::Less(_) | Is::AtMost(_) | Is::Greater(_) | Is::AtLeast(_)
        );
        if self.dialect == Dialect::Postgres && is_range && !test.negated {
            self.out.push("(");
            self.plain_test(Place::ObjectDuration, test);
            self.out
                .push(" OR run_began_us IS NOT NULL OR run_ended_us IS NOT NULL) AND ");
        }
    }
}
