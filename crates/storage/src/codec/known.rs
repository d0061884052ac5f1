//! The promoted fields at some time, and what indexes hold of a record by them.

use crate::seam::Promotion;
use hindsight_filter::model::Record;
use hindsight_filter::{
    condition::{Column, Condition, Test},
    promoted::{Fields, Path, Promoted},
};

/// What indexes of promoted fields hold of a record, as far as its writer knows. The write happens
/// only if that is all that there is to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Of which set of fields.
    pub(crate) generation: i64,
    /// Whether there are any fields.
    pub(crate) has_fields: bool,
    /// Numbers of fields, and keys.
    pub(crate) keys: Vec<(i64, String)>,
}

/// The promoted fields as they were at some time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    generation: i64,
    all: Vec<Promotion>,
    fields: Fields,
}

impl Known {
    /// Those of one generation of the set.
    pub(crate) fn new(generation: i64, all: Vec<Promotion>) -> Self {
        let fields = all.iter().map(|one| (one.id, one.path.clone(), one.kind));
        Self {
            generation,
            fields: Fields::new(fields.collect()),
            all,
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Promotion] {
        &self.all
    }

    /// The field of a path.
    pub(crate) fn at(&self, path: &Path) -> Option<&Promotion> {
        self.all.iter().find(|one| one.path == *path)
    }

    /// What a writer that knows these fields says of a record.
    pub(crate) fn claim(&self, record: &Record) -> Claim {
        let has_fields = !self.all.is_empty();
        let payload = record.data.as_ref().filter(|_| has_fields);
        Claim {
            generation: self.generation,
            has_fields,
            keys: payload.map_or_else(Vec::new, |data| self.fields.keys(&data.value)),
        }
    }

    /// The number of a field whose index is whole.
    pub(crate) fn ready(&self, of: &Promoted) -> Option<i64> {
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
                column: Column::Promoted(of),
                is,
                negated,
            }) => match self.ready(of) {
                None => Condition::All,
                Some(field) => Condition::Test(Test {
                    column: Column::Promoted(Promoted {
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

/// Whether a condition asks for promoted fields.
pub(crate) fn is_asked(condition: &Condition) -> bool {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().any(is_asked),
        Condition::Test(test) => matches!(test.column, Column::Promoted(_)),
        Condition::All | Condition::Nothing => false,
    }
}
