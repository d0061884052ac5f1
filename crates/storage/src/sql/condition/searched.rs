//! Parts of labels.

use super::Writer;
use crate::{
    codec::text::{SAME, words},
    sql::{
        dialect::Dialect,
        statement::{Bind, Statement},
    },
};
use hindsight_filter::columns::is_part_of_labels;
use hindsight_filter::condition::{Is, Test};

/// Whether the JSON of labels has `part` only in what keys and values are, not between them or in
/// how a word among the keys is written.
pub(super) fn is_sought_in_labels(part: &str) -> bool {
    let mut codes = words::all().map(|(code, _)| words::key_json(&code));
    is_part_of_labels(part) && !codes.any(|code| code.contains(part))
}

/// Appends that a label has `part` in its key or value; SQLite alone.
pub(in crate::sql) fn has_part(out: &mut Statement, part: &str) {
    out.push("(instr(value, ").bind(part);
    out.push(") > 0 OR instr(key, ").bind(part).push(") > 0");
    let words = words::all().filter(|(_, word)| word.contains(part));
    let codes: Vec<String> = words.map(|(code, _)| code).collect();
    if !codes.is_empty() {
        Dialect::Sqlite.one_of(out.push(" OR key"), false, Bind::Texts(codes.clone()));
        Dialect::Sqlite.one_of(out.push(" OR value"), false, Bind::Texts(codes));
    }
    out.push(")");
}

impl Writer<'_> {
    /// Appends a test of all labels: SQLite looks for theirs among those that have the part, and
    /// PostgreSQL searches the JSON.
    pub(super) fn labels_test(&mut self, test: &Test) {
        match &test.is {
            Is::Contains(part) => {
                self.out.push("(labels IS NOT NULL AND ");
                self.odd_labels(false);
                self.out
                    .push(if test.negated { " AND NOT (" } else { " AND (" });
                self.part_of_labels(part);
                self.out.push("))");
            }
            _ if test.negated => {
                self.out.push("(labels IS NULL OR ");
                self.odd_labels(true);
                self.out.push(")");
            }
            _ => {
                self.out.push("(labels IS NOT NULL AND ");
                self.odd_labels(false);
                self.out.push(")");
            }
        }
    }

    /// Appends whether labels are odd.
    fn odd_labels(&mut self, are: bool) {
        if self.dialect == Dialect::Postgres {
            return self.labels_have(&words::key_json(SAME), are);
        }
        self.out.push(if are { "EXISTS" } else { "NOT EXISTS" });
        self.out
            .push(" (SELECT 1 FROM json_each(labels) AS e WHERE e.value = ");
        self.out
            .push("(SELECT row_id FROM labels WHERE value = '' AND key = ")
            .bind(Bind::Text(Some(SAME.to_owned())))
            .push("))");
    }

    /// Appends that a label has `part` in its key or value.
    fn part_of_labels(&mut self, part: &str) {
        if self.dialect == Dialect::Sqlite {
            self.out
                .push("EXISTS (SELECT 1 FROM json_each(labels) AS e WHERE e.value IN ")
                .push("(SELECT row_id FROM labels WHERE ");
            has_part(self.out, part);
            self.out.push("))");
            return;
        }
        self.labels_have(part, true);
        for (code, _) in words::all().filter(|(_, word)| word.contains(part)) {
            self.out.push(" OR ");
            self.labels_have(&words::key_json(&code), true);
        }
    }

    /// Appends whether the JSON of labels has a text in it.
    fn labels_have(&mut self, text: &str, has: bool) {
        self.out
            .push(self.dialect.position())
            .push("labels::text, ");
        self.out.bind(Bind::Text(Some(text.to_owned())));
        self.out.push(if has { ") > 0" } else { ") = 0" });
    }
}
