//! Where runs are stored: the one seam between the watcher and a server.

mod grpc;

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;

use hindsight_proto::{
    names::{Parent, RecordName},
    v1::{AppendLogRequest, LogContainer, LogSource},
};
use hindsight_run::Upload;
use jiff::Timestamp;

pub use grpc::{Error, GrpcSink};

/// What a server can be asked. All calls are idempotent, and may be made again when their
/// answer was lost.
#[async_trait]
pub trait Sink: Debug + Send + Sync + 'static {
    /// Stores a run whose JSON is `value`. When it returns, that is durable.
    async fn store(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError>;

    /// The same, for a run of which something is probably stored. A sink for which that makes
    /// no difference needs not know.
    async fn store_again(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError> {
        self.store(upload, value).await
    }

    /// The bytes that are stored as `record`.
    async fn stored(&self, record: &RecordName) -> Result<Option<Vec<u8>>, SinkError>;

    /// A page of the runs that are stored below `parent`, or anywhere, and did not end: the first
    /// one, or the one after `page`. A sink that cannot tell says that there are none.
    async fn unended(
        &self,
        _parent: Option<&Parent>,
        _page: &str,
    ) -> Result<UnendedPage, SinkError> {
        Ok(UnendedPage::default())
    }

    /// Appends lines to logs. When it returns, they are durable.
    async fn append_log(&self, _messages: Vec<AppendLogRequest>) -> Result<(), SinkError> {
        Err(SinkError::no_logs())
    }

    /// What is held of each container of a log.
    async fn describe_log(&self, _log: &str) -> Result<Vec<LogContainer>, SinkError> {
        Err(SinkError::no_logs())
    }

    /// When the lines were written that are held of a container since a time.
    async fn log_times(
        &self,
        _log: &str,
        _source: &LogSource,
        _since: Timestamp,
    ) -> Result<LineTimes, SinkError> {
        Err(SinkError::no_logs())
    }
}

/// When lines were written, in microseconds since 1970; without those that stand for missing ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTimes {
    /// The time of each line, in the order of the lines.
    pub times: Vec<i64>,
    /// Whether these are only the last ones.
    pub is_cut: bool,
}

/// Runs that are stored and did not end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnendedPage {
    /// The runs of this page.
    pub runs: Vec<Unended>,
    /// What the next page is asked for by; empty if this is the last one.
    pub next: String,
}

/// A run that is stored and did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unended {
    /// Where it is stored.
    pub record: RecordName,
    /// Type of the record.
    pub data_type: String,
    /// `metadata.uid` of its object.
    pub uid: String,
    /// `metadata.namespace` of its object.
    pub namespace: String,
}

/// What follows from a server's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The server serves no one now. Everything waits until it recovers, and at least for as long
    /// as it says.
    Unavailable,
    /// This call may work in a while.
    Passing,
    /// This call will not work until something is changed.
    Lasting,
    /// The caller may not do that in this namespace, with no run.
    Denied,
}

/// Why a server did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server answers {code}: {message}")]
pub struct SinkError {
    /// The name of the gRPC code.
    pub code: &'static str,
    /// What the server says about it.
    pub message: String,
    /// What follows for this call and others.
    pub severity: Severity,
    /// How long to wait before the next call, if the server says so.
    pub retry_after: Option<Duration>,
}

impl SinkError {
    /// Of a server that keeps no logs.
    fn no_logs() -> Self {
        Self {
            code: "UNIMPLEMENTED",
            message: "no logs are kept here".to_owned(),
            severity: Severity::Lasting,
            retry_after: None,
        }
    }
}
