//! What operators do to a store.

use std::{fmt::Debug, num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Error, FeedPosition};
use hindsight_filter::indexed::{Kind, Path};
use hindsight_filter::model::{Parent, RecordName, ResultName};

/// What an operator does to a store; request handlers have no business here.
#[async_trait]
pub trait Maintenance: Debug + Send + Sync + 'static {
    /// Brings the schema up to date; returns the versions applied. Several may call at once.
    async fn migrate(&self) -> Result<Vec<i64>, Error>;

    /// Removes dictionaries of bodies whose payload no record has any more, until `most` or more
    /// are gone, and says how many; bodies that refer to them are packed again. Deleting and
    /// replacing records leaves such dictionaries behind. After each step it rests for `rest`
    /// times as long as that took.
    async fn sweep(&self, most: NonZeroU32, rest: u32) -> Result<u64, Error>;

    /// Reads at most `most` of the failed runs again whose signature is missing or of older rules,
    /// writes their signatures and messages, and says of how many. None are left if it is 0. Several
    /// may do so at once.
    async fn sign(&self, most: NonZeroU32) -> Result<u64, Error>;

    /// How much [`Maintenance::purge`] would remove.
    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error>;

    /// Deletes records and removes their payloads from everything that is kept: dictionaries,
    /// objects, free pages. It takes as long as rewriting the database does.
    async fn purge(&self, what: &Purge, now: Timestamp) -> Result<Purged, Error>;

    /// Removes the objects that no body has referred to for long enough before `now`, and says
    /// how many. A statement changes `batch` rows at most. There are none where no object
    /// store is configured.
    async fn sweep_objects(&self, now: Timestamp, batch: NonZeroU32) -> Result<u64, Error>;

    /// Compresses sealed logs again that did not change for ten seconds, as small as they become, until `most`
    /// bytes of text or more are done, and says how many. Large chunks go to the object store, if there is one.
    /// Several may do so at once.
    async fn pack_logs(&self, now: Timestamp, most: NonZeroU32) -> Result<u64, Error>;

    /// The fields that are indexed, in the order in which they were added.
    async fn indexes(&self) -> Result<Vec<IndexedPath>, Error>;

    /// Creates an index: from now on its values are indexed as records are written. It is
    /// [`Error::Exists`] if it is indexed already, and [`Error::Incompatible`] if too many are.
    async fn create_index(
        &self,
        path: &Path,
        kind: Kind,
        now: Timestamp,
    ) -> Result<IndexedPath, Error>;

    /// Drops an index; [`Error::Missing`] if it was not. What is left of its index is
    /// cleared by [`Maintenance::sweep_indexes`].
    async fn drop_index(&self, path: &Path) -> Result<(), Error>;

    /// Indexes at most `most` of the records that were there before a field was indexed. It goes
    /// on where it, or another process, stopped; once all are done, filters use the index. A record
    /// whose payload cannot be read stops it, with [`Error::Corrupt`] or [`Error::MissingObject`].
    async fn build_index(&self, field: i64, most: NonZeroU32) -> Result<Filled, Error>;

    /// Clears what is left of indexes that were dropped, at most so many entries in one
    /// transaction. Says how many there were.
    async fn sweep_indexes(&self, most: NonZeroU32) -> Result<u64, Error>;

    /// Removes changes of the feed that were noted before a time, those that are oldest first and at
    /// most about `most` of them, and says how many. A feed cannot be read from before them.
    async fn prune_feed(&self, before: Timestamp, most: NonZeroU32) -> Result<u64, Error>;

    /// The place of a cursor in the feed, which `holder` holds from now on for `time`; none while it
    /// is held by another. A cursor that is new is at the end of the feed. A cursor has one holder at a
    /// time, by the clock of the database.
    async fn hold_cursor(
        &self,
        name: &str,
        holder: &str,
        time: Duration,
    ) -> Result<Option<FeedPosition>, Error>;

    /// Moves a cursor that `holder` holds, and lets them hold it for `time` from now on. False if it is
    /// another's; then it stays where it is.
    async fn advance_cursor(
        &self,
        name: &str,
        holder: &str,
        place: FeedPosition,
        time: Duration,
    ) -> Result<bool, Error>;

    /// The secret of this name, kept in the database; `candidate` becomes it if there is none.
    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error>;

    /// Whether the store answers.
    async fn ping(&self) -> Result<(), Error>;

    /// How many connections to the database there are.
    fn connections(&self) -> Connections;

    /// Finishes what is under way and lets go of files and connections.
    async fn close(&self);
}

/// Most paths that may be indexed.
pub const MAX_INDEXES: u32 = 16;

/// A part of payloads that is indexed, and how far its index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedPath {
    /// Its number, which no other field gets.
    pub id: i64,
    /// Which part of payloads.
    pub path: Path,
    /// Which values of it.
    pub kind: Kind,
    /// When it was added.
    pub added: Timestamp,
    /// Whether its index is whole; until then nobody asks it.
    pub ready: bool,
    /// The last row that was looked at, of those that were there before the field.
    pub done_row: i64,
    /// The last row that was there before the field.
    pub until_row: i64,
}

/// How far a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Records that were looked at.
    pub records: u64,
    /// How much closer to the last row it is.
    pub rows: u64,
    /// Whether the index is whole.
    pub ready: bool,
}

/// The rows that a purge removes for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Everything of a parent.
    Parent(Parent),
    /// A result, with its records.
    Result(ResultName),
    /// One record, with its payload.
    Record(RecordName),
}

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// Number of results that were deleted.
    pub results: u64,
    /// Records, also those of results.
    pub records: u64,
    /// Objects that held payloads of them.
    pub objects: u64,
    /// Bytes of payloads as clients sent them, and of logs as they are kept.
    pub bytes: u64,
    /// Why something of them is left, a sentence for each reason.
    pub left: Vec<String>,
}

/// Connections to a database that callers share; on SQLite those that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Open, and in use by a caller.
    pub busy: u32,
    /// Open, and waiting for work.
    pub idle: u32,
    /// How many may be open at once.
    pub most: u32,
}

impl std::ops::Add for Connections {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            busy: self.busy + other.busy,
            idle: self.idle + other.idle,
            most: self.most + other.most,
        }
    }
}
