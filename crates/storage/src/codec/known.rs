//! The indexed paths at some time, and what indexes hold of a record by them.

use crate::seam::IndexedPath;
use hindsight_filter::model::Record;
use hindsight_filter::{
    condition::{Column, Condition, Test},
    indexed::{Fields, Indexed, Path},
};

/// What indexes of paths hold of a record, as far as its writer knows. The write happens
/// only if that is all that there is to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexEntries {
    /// Of which set of fields.
    pub(crate) generation: i64,
    /// Whether there are any fields.
    pub(crate) has_fields: bool,
    /// Numbers of fields, and keys.
    pub(crate) keys: Vec<(i64, String)>,
}

/// The indexed paths as they were at some time.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexedPaths {
    generation: i64,
    all: Vec<IndexedPath>,
    fields: Fields,
}

impl IndexedPaths {
    /// Those of one generation of the set.
    pub(crate) fn new(generation: i64, all: Vec<IndexedPath>) -> Self {
        let fields = all.iter().map(|one| (one.id, one.path.clone(), one.kind));
        Self {
            generation,
            fields: Fields::new(fields.collect()),
            all,
        }
    }

    pub(crate) fn all(&self) -> &[IndexedPath] {
        &self.all
    }

    /// The field of a path.
    pub(crate) fn at(&self, path: &Path) -> Option<&IndexedPath> {
        self.all.iter().find(|one| one.path == *path)
    }

    /// What a writer that knows these fields says of a record.
    pub(crate) fn entries(&self, record: &Record) -> IndexEntries {
        let has_fields = !self.all.is_empty();
        let payload = record.data.as_ref().filter(|_| has_fields);
        IndexEntries {
            generation: self.generation,
            has_fields,
            keys: payload.map_or_else(Vec::new, |data| self.fields.keys(&data.value)),
        }
    }

    /// The number of a field whose index is whole.
    pub(crate) fn ready(&self, of: &Indexed) -> Option<i64> {
        let found = self.at(&of.path)?;
        (found.ready && found.kind == of.kind).then_some(found.id)
    }

    /// The same condition with the numbers of fields; tests of fields that have no whole index
    /// are left out, which accepts more.
    pub(crate) fn resolved(&self, condition: &Condition) -> Condition {
        let each = |parts: &[Condition]| parts.iter().map(|part| self.resolved(part)).collect();
        match condition {
            Condition::And(parts) => Condition::And(each(parts)),
            Condition::Or(parts) => Condition::Or(each(parts)),
            Condition::Test(Test {
                column: Column::Indexed(of),
                is,
                negated,
            }) => match self.ready(of) {
                None => Condition::All,
                Some(field) => Condition::Test(Test {
                    column: Column::Indexed(Indexed {
                        field: Some(field),
                        ..of.clone()
                    }),
                    is: is.clone(),
                    negated: *negated,
                }),
            },
            same => same.clone(),
        }
    }
}

/// Whether a condition asks for indexed paths.
pub(crate) fn is_asked(condition: &Condition) -> bool {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().any(is_asked),
        Condition::Test(test) => matches!(test.column, Column::Indexed(_)),
        Condition::All | Condition::Nothing => false,
    }
}
