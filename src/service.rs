//! The use-cases: what each method of the API does, on types, for callers with a [`Grant`].
//!
//! Rules of the resources live here (what a name, a summary or a payload may be, how updates
//! merge); wire formats do not.

mod aggregate;
mod archive;
mod claims;
mod clusters;
mod commit;
mod definitions;
mod explain;
mod feed;
mod holds;
mod known;
mod limits;
mod logs;
mod records;
mod results;
mod runs;
mod selection;
mod summary;
mod upsert;
mod write;

use std::{sync::Arc, time::Duration};

pub use crate::query::{Certain, Explanation, Rest};
pub use aggregate::{AggregateAsk, Answered, AnsweredGroup, Value as AggregateValue};
pub use archive::{LiveFile, LiveFiles};
pub use clusters::ClustersAsk;
pub use holds::Holds;
pub use limits::{MAX_TYPE_BYTES, page_size};
pub use logs::{
    AppendAsk, AskedLog, HomeError, LogHit, LogHome, LogHomes, LogMetrics, LogReading, LogText,
    Logs, LogsOfRun, MAX_APPEND, PART, ReadAsk, SearchAsk, Searched, Spool, StoredLogs, Upload,
};
pub use records::RecordChange;
pub use runs::{
    Alike, DiffAsk, Failure, FailureLog, FailureLogAsk, FailureLogLine, FailureSignature,
    FlakyPair, FlakyPipeline, FlakyPipelines, FoundRun, HistoryAsk, Regression, Regressions,
    RunDiff, RunPoint, RunSeries, RunWatch, Runs, RunsAsk, Since, SuggestAsk, Suggested,
    Suggestions, WatchAsk,
};
pub use selection::{ListRequest, Selector};
pub use summary::{Group, Measure, SummaryQuery, Value as SummaryValue};
pub use upsert::{Effect, Outcome, Upsert, UpsertGrants, Upserted};

use crate::query::{self, Engine};
use hindsight_access::audit::Audit;
use hindsight_access::auth;
use hindsight_access::budget::QuotaExceeded;
use hindsight_filter::model::Parent;
use hindsight_filter::words::WordsError;
use hindsight_filter::{ClusterNames, FilterError, Language, OrderError};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::{ErrorKind, HasKind};
use hindsight_storage as storage;
use hindsight_storage::Store;

/// Why a use-case was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not.
    #[error(transparent)]
    Auth(#[from] auth::Error),
    /// The request is wrong in itself.
    #[error("{0}")]
    Invalid(String),
    /// There is no run to compare with.
    #[error("{0}")]
    Missing(String),
    /// The filter is wrong.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The query is wrong.
    #[error(transparent)]
    Words(#[from] WordsError),
    /// The order is wrong.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The logs of a parent have as many bytes as they may.
    #[error(
        "logs of parent `{parent}` have {used} bytes, and logs_quota allows {most}; delete runs of it, or raise the quota"
    )]
    LogQuota {
        /// The parent of the logs.
        parent: String,
        /// How many bytes its logs may have.
        most: u64,
        /// How many they have.
        used: u64,
    },
    /// A quota of the caller is used up.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// The list was not answered.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// Another system that keeps logs does not give one.
    #[error("{0}")]
    LogHome(String),
    /// Logs that are read from another system take too much memory.
    #[error("{0}")]
    LogsBusy(String),
    /// A cluster of Ray was not made, shown or deleted.
    #[error(transparent)]
    Ray(#[from] hindsight_ray::Error),
    /// A pipeline or a version was not made, shown or deleted.
    #[error(transparent)]
    Kfp(#[from] hindsight_kfp::Error),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] storage::Error),
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Auth(error) => error.kind(),
            Self::Invalid(_) | Self::Filter(_) | Self::Words(_) | Self::Order(_) => {
                ErrorKind::Invalid
            }
            Self::Missing(_) => ErrorKind::Missing,
            Self::Query(error) => error.kind(),
            Self::Quota(error) => error.kind(),
            Self::LogHome(_) => ErrorKind::Unavailable,
            Self::LogsBusy(_) => ErrorKind::Exhausted,
            Self::LogQuota { .. } => ErrorKind::Exhausted,
            Self::Ray(error) => error.kind(),
            Self::Kfp(error) => error.kind(),
            Self::Store(error) => error.kind(),
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Kfp(error) => error.reason(),
            _ => None,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Quota(error) => error.retry_after(),
            Self::Query(error) => error.retry_after(),
            _ => None,
        }
    }
}

/// The use-cases over one store.
#[derive(Debug, Clone)]
pub struct Service {
    store: Arc<dyn Store>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    turns: write::KeyedLocks,
    known: known::KnownResults,
    audit: Audit,
    language: Language,
    clusters: Arc<ClusterNames>,
    /// Where definitions are that belong to no namespace.
    definitions: Option<Parent>,
    feed: feed::Feed,
    logs: Logs,
}

impl Service {
    /// The use-cases over `store` and `logs`, whose lists `engine` answers.
    pub fn new(store: Arc<dyn Store>, logs: Logs, engine: Engine, clock: Arc<dyn Clock>) -> Self {
        Self {
            feed: feed::Feed::new(Arc::clone(&store)),
            store,
            logs,
            engine,
            clock,
            turns: write::KeyedLocks::new(),
            known: known::KnownResults::default(),
            audit: Audit::default(),
            language: Language::default(),
            clusters: Arc::default(),
            definitions: None,
        }
    }

    /// The same, whose changes are written to `audit`.
    #[must_use]
    pub fn with_audit(self, audit: Audit) -> Self {
        Self { audit, ..self }
    }

    /// Filters are in `language` where callers do not say otherwise.
    #[must_use]
    pub fn with_default_language(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// Clusters may be called by these names.
    #[must_use]
    pub fn with_cluster_names(self, clusters: ClusterNames) -> Self {
        let clusters = Arc::new(clusters);
        Self { clusters, ..self }
    }

    /// Definitions that belong to no namespace are records of this parent.
    #[must_use]
    pub fn with_shared_definitions(self, parent: Parent) -> Self {
        let definitions = Some(parent);
        Self {
            definitions,
            ..self
        }
    }

    /// The name of a cluster, if it has one.
    pub fn cluster_name(&self, id: &str) -> Option<&str> {
        let mut known = self.clusters.iter();
        let (name, _) = known.find(|(_, known)| *known == id)?;
        Some(name)
    }
}
