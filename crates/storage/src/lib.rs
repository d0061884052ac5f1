//! The store seam: what every durable store of results and records can do.
//!
//! A write is a value: a [`Batch`] of changes with preconditions, all of which happen or none.
//! A store never sees a filter's text, only a [`Condition`] on columns, and never makes up an
//! error: what it cannot do is an [`Error`], never an empty answer.

mod aggregate;
pub mod backup;
mod body;
#[cfg(test)]
mod conformance;
mod connections;
pub mod copy;
mod driver;
mod encoded;
pub mod fsck;
mod known;
mod migrations;
pub mod objects;
mod objects_of;
mod pieces;
mod plan;
mod postgres;
pub mod promoted;
mod purge;
mod record;
pub mod resolve;
mod row;
pub mod snapshot;
mod sql;
mod sqlite;
mod store;
pub mod tekton;
mod traced;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::{fmt::Debug, num::NonZeroU32};

use async_trait::async_trait;
use jiff::Timestamp;

pub use self::{
    plan::{Estimate, Plan},
    promoted::{Filled, MOST_PROMOTED, Promotion},
    purge::{Purge, Purged},
    traced::Traced,
};

pub use aggregate::{AggregateQuery, GroupKey, MAX_KEYS, Quantity, Summed};
pub use connections::Connections;
pub use encoded::{EncodedBody, EncodedRecord};

use hindsight_filter::measure::{Group, TooManyGroups};
use hindsight_filter::model::{
    Etag, Record, RecordName, Resource, ResultName, ResultPattern, RunResult,
};
use hindsight_filter::{
    Order, Position,
    condition::{Ability, Condition, Test},
    promoted::{Kind, Path},
};
use hindsight_runtime::error::{ErrorKind, HasKind, report};

/// A row and its place in the order that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    /// The row.
    pub item: T,
    /// Where it is; a list continues after it.
    pub position: Position,
}

/// What a list is asked for.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// Which parents and results. Lists of results use only the parent, and the id if given.
    pub scope: ResultPattern,
    /// Which rows.
    pub condition: Condition,
    /// In which order.
    pub order: Order,
    /// Continue after this row.
    pub after: Option<Position>,
    /// At most so many rows.
    pub limit: NonZeroU32,
    /// Records: fetch the payload bytes too. Without them `data` holds the type and no bytes.
    pub bodies: bool,
    /// Records with bodies: nothing after the row that brings the payload bytes to so many. The
    /// first row comes whatever it holds, so a list that was cut short is never empty.
    pub max_bytes: Option<usize>,
}

/// One change, with what must be true for it to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A new result; [`Error::Exists`] if the name is taken.
    InsertResult(RunResult),
    /// Everything but name, uid and create time of the result whose etag is `expect`.
    ReplaceResult {
        /// The etag it must have.
        expect: Etag,
        /// The new state.
        value: RunResult,
    },
    /// The result and all its records.
    DeleteResult {
        /// Which.
        name: ResultName,
        /// The etag it must have, if any is wanted.
        expect: Option<Etag>,
    },
    /// A new record; [`Error::Missing`] if its result is not there.
    InsertRecord(Record),
    /// Everything but name, uid and create time of the record whose etag is `expect`.
    ReplaceRecord {
        /// The etag it must have.
        expect: Etag,
        /// The new state.
        value: Record,
    },
    /// One record.
    DeleteRecord {
        /// Which.
        name: RecordName,
        /// The etag it must have, if any is wanted.
        expect: Option<Etag>,
    },
}

/// Changes that happen together or not at all, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The changes.
    pub changes: Vec<Change>,
}

impl From<Change> for Batch {
    fn from(change: Change) -> Self {
        Self {
            changes: vec![change],
        }
    }
}

/// Why a store did not do what it was asked. One variant for each thing a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row to change, or the result to put a record into, is not there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// The name is taken.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The row has another etag than expected.
    #[error("the etag mismatches: `{name}` changed since `{expected}`; read it again and retry")]
    Stale {
        /// Which row.
        name: String,
        /// The etag that was expected.
        expected: Etag,
    },
    /// The database does not answer, is full, or refuses writes for now; try later.
    #[error("the database is not available: {what}")]
    Unavailable {
        /// What it was doing.
        what: &'static str,
        /// The driver's word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database worked on one statement for as long as it may.
    #[error(
        "the database took longer than db_statement_timeout for one statement: {what}; ask for \
         less, or for what an index answers (`hindsight explain` tells)"
    )]
    TooSlow {
        /// What it was doing.
        what: &'static str,
        /// The driver's word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The object store, where big bodies lie, does not answer or refuses; try later.
    #[error("the object store is not available: {what} `{object}`")]
    Away {
        /// What it was doing.
        what: &'static str,
        /// Of which object.
        object: String,
        /// The store's word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object that holds a body is gone, or is another one.
    #[error("{0}")]
    Lost(String),
    /// What is stored cannot be understood; nothing is repaired by guess.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The database is not one of ours, or of another version.
    #[error("{0}")]
    Unfit(String),
    /// An aggregate has more groups than can be kept.
    #[error(transparent)]
    Groups(#[from] TooManyGroups),
    /// Anything else the database said.
    #[error("the database refused: {what}")]
    Database {
        /// What it was doing.
        what: &'static str,
        /// The driver's word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The same error for another caller.
    fn repeated(&self) -> Self {
        match self {
            Self::Corrupt(why) => Self::Corrupt(why.clone()),
            Self::Lost(why) => Self::Lost(why.clone()),
            Self::Away {
                what,
                object,
                source,
            } => Self::Away {
                what,
                object: object.clone(),
                source: source.to_string().into(),
            },
            Self::Unavailable { what, source } => Self::Unavailable {
                what,
                source: source.to_string().into(),
            },
            Self::TooSlow { what, source } => Self::TooSlow {
                what,
                source: source.to_string().into(),
            },
            other => Self::Database {
                what: "writing together with others",
                source: report(other).into(),
            },
        }
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing(_) => ErrorKind::Missing,
            Self::Exists(_) => ErrorKind::Exists,
            Self::Stale { .. } => ErrorKind::StaleEtag,
            Self::Unavailable { .. } | Self::Away { .. } => ErrorKind::Unavailable,
            Self::TooSlow { .. } => ErrorKind::Timeout,
            Self::Lost(_) => ErrorKind::Lost,
            Self::Groups(_) => ErrorKind::Exhausted,
            Self::Corrupt(_) | Self::Unfit(_) | Self::Database { .. } => ErrorKind::Internal,
        }
    }
}

/// Durable storage of results and records. A call that returned has happened; a write that
/// returned survives the loss of power.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Reads one result.
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error>;

    /// Reads one record with its payload.
    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error>;

    /// Lists results. Every row that `condition` accepts comes once, in order; tests for which
    /// [`Store::ability`] is not exact may let others through.
    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error>;

    /// Lists records likewise.
    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error>;

    /// Lists records likewise, their payloads still encoded.
    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error>;

    /// Adds up records in groups, all as of one moment, in the order of their keys.
    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error>;

    /// Does all of `batch`, durably, or nothing.
    async fn commit(&self, batch: &Batch) -> Result<(), Error>;

    /// Does each of `changes` by itself, durably, and says what became of each, in order. One
    /// that is refused leaves the others alone. They happen in no particular order, so no two
    /// may be about the same row.
    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>>;

    /// How a list would be answered. Rows are counted to `most` at most, if the database has no
    /// estimate.
    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error>;

    /// Looks up which payload fields are indexed, unless that was less than a second ago.
    /// [`Store::ability`] answers by what was looked up last.
    async fn refresh_indexes(&self) -> Result<(), Error>;

    /// How well `test` is answered by lists.
    fn ability(&self, test: &Test) -> Ability;
}

/// What an operator does to a store; request handlers have no business here.
#[async_trait]
pub trait Maintenance: Debug + Send + Sync + 'static {
    /// Brings the schema up to date; returns the versions applied. Several may call at once.
    async fn migrate(&self) -> Result<Vec<i64>, Error>;

    /// Removes pieces of bodies whose payload no record has any more, until `most` or more are
    /// gone, and says how many; bodies that refer to them are packed again. Deleting and replacing
    /// records leaves such pieces behind.
    async fn sweep(&self, most: NonZeroU32) -> Result<u64, Error>;

    /// How much [`Maintenance::purge`] would remove.
    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error>;

    /// Deletes records and removes their payloads from everything that is kept: pieces, objects,
    /// free pages. It takes as long as rewriting the database does.
    async fn purge(&self, what: &Purge, now: Timestamp) -> Result<Purged, Error>;

    /// Removes the objects that no body has referred to for long enough before `now`, and says how
    /// many. A statement changes `batch` rows at most. There are none where no object store is
    /// configured.
    async fn sweep_objects(&self, now: Timestamp, batch: NonZeroU32) -> Result<u64, Error>;

    /// The fields that are promoted, in the order in which they were added.
    async fn promotions(&self) -> Result<Vec<Promotion>, Error>;

    /// Promotes a field: from now on its values are indexed as records are written. It is
    /// [`Error::Exists`] if it is promoted already, and [`Error::Unfit`] if too many are.
    async fn promote(&self, path: &Path, kind: Kind, now: Timestamp) -> Result<Promotion, Error>;

    /// Promotes a field no more; [`Error::Missing`] if it was not. What is left of its index is
    /// cleared by [`Maintenance::sweep_indexes`].
    async fn demote(&self, path: &Path) -> Result<(), Error>;

    /// Indexes at most `most` of the records that were there before a field was promoted. It goes
    /// on where it, or another process, stopped; once all are done, filters use the index. A record
    /// whose payload cannot be read stops it, with [`Error::Corrupt`] or [`Error::Lost`].
    async fn fill(&self, field: i64, most: NonZeroU32) -> Result<Filled, Error>;

    /// Clears what is left of fields that are promoted no more, at most so many entries in one
    /// transaction. Says how many there were.
    async fn sweep_indexes(&self, most: NonZeroU32) -> Result<u64, Error>;

    /// The secret of this name, kept in the database; `candidate` becomes it if there is none.
    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error>;

    /// Whether the store answers.
    async fn ping(&self) -> Result<(), Error>;

    /// How many connections to the database there are.
    fn connections(&self) -> Connections;

    /// Finishes what is under way and lets go of files and connections.
    async fn close(&self);
}
