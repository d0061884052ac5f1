//! Writes as values.

use hindsight_filter::model::{Etag, Record, RecordName, ResultName, RunResult};
use jiff::Timestamp;

use super::{Hold, WholeVersion};

/// One change, with what must be true for it to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new result; [`Error::Exists`] if the name is taken.
    InsertResult(RunResult),
    /// Everything but name, uid and create time of the result whose etag is `expect`.
    ReplaceResult {
        /// The etag it must have.
        expect: Etag,
        /// The new state; its name tells which result it replaces.
        value: RunResult,
    },
    /// The result and all its records.
    DeleteResult {
        /// Full name of the result to delete.
        name: ResultName,
        /// The etag it must have, if any is wanted.
        expect: Option<Etag>,
    },
    /// The result and all its records; [`Error::Stale`](super::Error::Stale) if something of them has changed, or a
    /// hold is in force.
    ExpireResult {
        /// Full name of the result to delete.
        name: ResultName,
        /// The version that it must have.
        version: WholeVersion,
        /// The time at which no hold may be in force.
        now: Timestamp,
    },
    /// The records of a result are in an archive file, and not in the store any more;
    /// [`Error::Stale`](super::Error::Stale) as for [`Change::ExpireResult`].
    ArchiveResult {
        /// Full name of the result whose records are moved.
        name: ResultName,
        /// The version that it must have, which is what the file has.
        version: WholeVersion,
        /// The time at which no hold may be in force.
        now: Timestamp,
        /// The number of the file.
        file: i64,
    },
    /// The records of a result are no longer in an archive file, and may be inserted again;
    /// [`Error::Missing`](super::Error::Missing) if they are not in that file.
    ReturnResult {
        /// Full name of the result.
        name: ResultName,
        /// The number of the file.
        file: i64,
    },
    /// A hold of a result; [`Error::Exists`](super::Error::Exists) if another is in force
    /// when this one is created.
    InsertHold(Hold),
    /// Ends the hold of a result, after which retention may delete that.
    DeleteHold {
        /// Full name of the result.
        name: ResultName,
    },
    /// A new record; [`Error::Missing`] if its result is not there.
    InsertRecord(Record),
    /// A record that comes back from an archive file, after [`Change::ReturnResult`].
    ReturnRecord {
        /// The number that its row had. It has another one if that was given to another row since.
        number: i64,
        /// The record as it was.
        value: Record,
    },
    /// Everything but name, uid and create time of the record whose etag is `expect`.
    ReplaceRecord {
        /// The etag it must have.
        expect: Etag,
        /// The new state; its name tells which record it replaces.
        value: Record,
    },
    /// One record and its payload; its result stays.
    DeleteRecord {
        /// Full name of the record to delete.
        name: RecordName,
        /// The etag it must have, if any is wanted.
        expect: Option<Etag>,
    },
}

/// Changes that happen together or not at all, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The changes, in the order in which they are done.
    pub changes: Vec<Change>,
}

impl From<Change> for Batch {
    fn from(change: Change) -> Self {
        Self {
            changes: vec![change],
        }
    }
}
