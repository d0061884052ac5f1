//! What is known of promoted fields, without asking the database each time.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::Promotion;
use crate::{
    Error,
    row::Claim,
    sql::{
        cells::{Cells as _, Row},
        condition,
        read::{corrupt, text},
    },
};
use hindsight_filter::model::Record;
use hindsight_filter::{
    condition::{Ability, Column, Condition, Test},
    promoted::{Fields, Path, Promoted},
};

/// How long what was read is taken for what is. A write that was prepared from an older set of
/// fields does not happen, and is prepared again.
const TRUSTED: Duration = Duration::from_secs(1);

/// The promoted fields as they were at some time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    generation: i64,
    all: Vec<Promotion>,
    fields: Fields,
}

impl Known {
    /// What the rows of [`known`](crate::sql::promoted::known) say.
    pub(crate) fn read(rows: &[Row]) -> Result<Self, Error> {
        let number = |row: &Row, at, what| {
            row.int(at)?
                .ok_or_else(|| Error::Corrupt(format!("a promoted field without `{what}`")))
        };
        let mut known = Self::default();
        for row in rows {
            known.generation = number(row, 0, "generation")?;
            let Some(id) = row.int(1)? else { continue };
            let path = text(row, 2)?.unwrap_or_default();
            let kind = text(row, 3)?.unwrap_or_default();
            let added = number(row, 4, "added_us")?;
            known.all.push(Promotion {
                id,
                path: path.parse().map_err(corrupt)?,
                kind: kind.parse().map_err(corrupt)?,
                added: Timestamp::from_microsecond(added).map_err(corrupt)?,
                ready: number(row, 5, "ready")? != 0,
                done_row: number(row, 6, "done_row")?,
                until_row: number(row, 7, "until_row")?,
            });
        }
        let all = known.all.iter();
        let fields = all.map(|one| (one.id, one.path.clone(), one.kind));
        known.fields = Fields::new(fields.collect());
        Ok(known)
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
    fn ready(&self, of: &Promoted) -> Option<i64> {
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

/// What a process knows of promoted fields.
#[derive(Debug, Default)]
pub(crate) struct Promotions {
    last: Mutex<Option<(Instant, Arc<Known>)>>,
}

impl Promotions {
    fn last(&self) -> MutexGuard<'_, Option<(Instant, Arc<Known>)>> {
        // What is in it is replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read not long ago.
    pub(super) fn recent(&self) -> Option<Arc<Known>> {
        let last = self.last();
        let (at, known) = last.as_ref()?;
        (at.elapsed() < TRUSTED).then(|| Arc::clone(known))
    }

    /// Takes what was read for what is, whatever happens meanwhile.
    #[cfg(test)]
    pub(super) fn keep_for_long(&self, known: &Arc<Known>) {
        let later = Instant::now() + Duration::from_hours(1);
        *self.last() = Some((later, Arc::clone(known)));
    }

    /// Forgets what was read, because it turned out to be outdated.
    pub(crate) fn forget(&self) {
        *self.last() = None;
    }

    /// Takes down what was read.
    pub(super) fn keep(&self, known: &Arc<Known>) {
        *self.last() = Some((Instant::now(), Arc::clone(known)));
    }

    /// How well a test is answered, as far as is known. Should it turn out that a field is gone,
    /// its tests are left out.
    pub(crate) fn ability(&self, test: &Test) -> Ability {
        let Column::Promoted(of) = &test.column else {
            return condition::ability(test);
        };
        let last = self.last();
        match last.as_ref().and_then(|(_, known)| known.ready(of)) {
            Some(_) => condition::ability(test),
            None => Ability::None,
        }
    }
}
