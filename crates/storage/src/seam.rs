//! The seam: what every durable store of results and records can do, whatever it is made of.
//!
//! A write is a value: a [`Batch`] of changes with preconditions, all of which happen or none. A
//! store never sees a filter's text, only a
//! [`Condition`](hindsight_filter::condition::Condition) on columns, and never makes up an
//! error: what it cannot do is an [`Error`], never an empty answer.

mod aggregate;
mod archive;
mod change;
mod columns;
mod encoded;
mod error;
mod explain;
mod failed_log;
mod feed;
mod hold;
mod logs;
mod maintenance;
mod pipelines;
mod query;
mod traced;

use std::{fmt::Debug, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;

pub use self::{
    aggregate::AggregateQuery, aggregate::GroupKey, aggregate::MAX_KEYS, aggregate::Quantity,
    aggregate::Summed, archive::ArchiveFile, archive::ArchiveIndex, archive::ArchiveState,
    archive::Beside, archive::Condemn, change::Batch, change::Change, columns::RecordColumns,
    encoded::EncodedBody, encoded::EncodedRecord, error::Error, explain::Estimate, explain::Plan,
    failed_log::FailedPart, failed_log::failed_log, failed_log::log_tail, failed_log::signing_log,
    feed::ChangedRecord, feed::FeedPage, feed::FeedPosition, hold::Hold, hold::WholeVersion,
    logs::ListedLog, logs::LogAppend, logs::LogChunks, logs::LogKey, logs::LogKind,
    logs::LogSource, logs::LogStore, logs::StoredLog, maintenance::Connections,
    maintenance::Filled, maintenance::IndexedPath, maintenance::MAX_INDEXES,
    maintenance::Maintenance, maintenance::Purge, maintenance::Purged, pipelines::PipelineChange,
    pipelines::PipelineColumn, pipelines::PipelineComparison, pipelines::PipelineKey,
    pipelines::PipelineQuery, pipelines::PipelineRow, pipelines::PipelineRows,
    pipelines::PipelineScope, pipelines::PipelineTables, pipelines::PipelineTest,
    pipelines::PipelineValue, pipelines::VersionRow, query::ListQuery, query::Listed,
    query::Priority, query::Projection, traced::Traced,
};
use hindsight_filter::condition::{Ability, Test};
use hindsight_filter::measure::Group;
use hindsight_filter::model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult};

/// Durable storage of results and records. A call that returned has happened; a write that
/// returned survives the loss of power.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Reads one result; `None` if it does not exist.
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error>;

    /// Reads one record with its payload.
    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error>;

    /// Lists results. Every row that `condition` accepts comes once, in order; tests for which
    /// [`Store::ability`] is not exact may let others through.
    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error>;

    /// Lists records, with the same guarantees as [`Store::list_results`].
    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error>;

    /// Lists records likewise, their payloads still encoded.
    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error>;

    /// Lists records likewise, with the columns of their payloads in the place of the bytes; no
    /// payload is read, whatever `bodies` says.
    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error>;

    /// Adds up records in groups, all as of one moment, in the order of their keys.
    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error>;

    /// Does all of `batch`, durably, or nothing.
    async fn commit(&self, batch: &Batch) -> Result<(), Error>;

    /// Does each of `changes` by itself, durably, and says what became of each, in order. One
    /// that is refused leaves the others alone. They happen in no particular order, so no two
    /// may be about the same row.
    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>>;

    /// How a list would be answered. Rows are counted to `most` at most, if the database
    /// has no estimate.
    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error>;

    /// At most `most` holds of results within a parent, or of all, after a row, in the order of their rows. Those
    /// that have expired are among them.
    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error>;

    /// The place after all changes of records that can be read: a feed that begins there tells only later ones.
    async fn feed_end(&self) -> Result<FeedPosition, Error>;

    /// The place before all changes of records that are kept.
    async fn feed_begin(&self) -> Result<FeedPosition, Error>;

    /// At most `most` changes of records after a place, each record as it is stored, or with
    /// [`Error::Expired`] if changes after the place are not kept any more.
    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error>;

    /// Looks up which payload fields are indexed, unless that was less than a second ago.
    /// [`Store::ability`] answers by what was looked up last.
    async fn refresh_indexes(&self) -> Result<(), Error>;

    /// How well `test` is answered by lists.
    fn ability(&self, test: &Test) -> Ability;

    /// What it is made of, if records of old results are in files; none if all are in one database.
    fn parts(&self) -> Option<StoreParts>;
}

/// The two parts of a store whose old records are in files.
#[derive(Debug, Clone)]
pub struct StoreParts {
    /// The database, whose lists of records leave out those in files.
    pub database: Arc<dyn Store>,
    /// Which results have their records in files.
    pub index: Arc<dyn ArchiveIndex>,
}
