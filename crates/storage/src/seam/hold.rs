//! Results that retention leaves alone.

use hindsight_filter::model::{Etag, ResultName, RunResult};
use jiff::Timestamp;

/// Why a result is not to be deleted by retention, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The result that is kept, with all its records.
    pub result: ResultName,
    /// Why, in the words of the caller.
    pub reason: String,
    /// Who asked for it.
    pub caller: String,
    /// When it was asked for.
    pub create_time: Timestamp,
    /// When it ends by itself; none: when it is removed.
    pub expire_time: Option<Timestamp>,
}

impl Hold {
    /// Whether it keeps the result at `now`.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.expire_time.is_none_or(|end| end > now)
    }
}

/// The version of a result with all its records. Another version differs from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeVersion {
    /// The etag of the result, as it was when its records were counted.
    pub etag: Etag,
    /// How many records it has.
    pub records: u64,
    /// What the update times of these are after the create time of the result, added up in microseconds:
    /// each update of a record makes it more.
    pub age: i64,
    /// The archive file that has its records. Then the two numbers are 0.
    pub file: Option<i64>,
}

impl WholeVersion {
    /// The version of `result`, whose records have these update times.
    pub fn of(result: &RunResult, updates: impl IntoIterator<Item = Timestamp>) -> Self {
        let base = result.create_time.as_microsecond();
        let mut version = Self {
            etag: result.etag.clone(),
            records: 0,
            age: 0,
            file: None,
        };
        for update in updates {
            version.records += 1;
            version.age += update.as_microsecond() - base;
        }
        version
    }

    /// The version of `result`, whose records are in an archive file.
    pub fn archived(result: &RunResult, file: i64) -> Self {
        Self {
            file: Some(file),
            ..Self::of(result, [])
        }
    }
}
