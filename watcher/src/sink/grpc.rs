//! A sink that is a server of `tekton.results.v1alpha2`, ours or another.

use std::{
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::time::Instant;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;
use tracing::{Instrument as _, Span, info_span};

use hindsight_client as client;
use hindsight_client::{Client, Options};
use hindsight_proto::{
    names::{Parent, RecordName},
    v1::{
        AppendLogRequest, DescribeLogRequest, ListRunsRequest, LogContainer, LogSource,
        ReadLogRequest, RunRow,
    },
};
use hindsight_run::{Kinds, Upload};

use super::{LineTimes, Severity, Sink, SinkError, Unended, UnendedPage};
use renewal::{Renewal, Ways, read};

/// Runs that did not end, and were not closed.
const UNENDED: &str = "run.outcome == UNKNOWN && !has(run.end_time)";

/// How many of them are asked for at once.
const PAGE: i32 = 200;

/// Stores runs on a server, by gRPC: those that wait at the same time over one stream, or by plain
/// calls where the server has no such stream.
#[derive(Debug)]
pub struct GrpcSink {
    ways: Mutex<Ways>,
    renewal: Option<Renewal>,
    plain_calls: bool,
    kinds: Kinds,
}

/// Why a sink cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with the token cannot be read.
    #[error("the token file `{}` cannot be read", path.display())]
    Token {
        /// The file as the configuration names it.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The server cannot be called like that.
    #[error("the server cannot be called")]
    Client {
        /// What is wrong with the address or the token.
        #[source]
        source: client::Error,
    },
}

impl GrpcSink {
    /// A sink that calls the server through `client`, for the built-in kinds.
    pub fn new(client: Client) -> Self {
        Self {
            ways: Mutex::new(client.into()),
            renewal: None,
            plain_calls: false,
            kinds: Kinds::built_in(),
        }
    }

    /// Stores each run by calls of its own, also on a server that has the stream.
    #[must_use]
    pub fn with_plain_calls(self) -> Self {
        Self {
            plain_calls: true,
            ..self
        }
    }

    /// Stores runs of `kinds`, which may be more than those that are built in.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Kinds) -> Self {
        let ways = self.ways().plain.with_kinds(kinds.clone());
        self.ways = Mutex::new(ways.into());
        self.kinds = kinds;
        self
    }

    /// Uses the token in a file, and another one once there is another one.
    ///
    /// # Errors
    /// If the file cannot be read, or the address or token cannot be used.
    pub fn with_token_file(options: Options, path: PathBuf) -> Result<Self, Error> {
        Self::renewing(path, move |token| {
            Client::new(&Options {
                token: Some(token.to_owned()),
                ..options.clone()
            })
        })
    }

    /// Uses a channel that is there already.
    ///
    /// # Errors
    /// If the token cannot be used.
    pub fn over(channel: Channel, token: Option<&str>) -> Result<Self, Error> {
        let client = Client::over(channel, token).map_err(|source| Error::Client { source })?;
        Ok(Self::new(client))
    }

    /// The same with the token in a file, and another one once there is another one.
    ///
    /// # Errors
    /// If the file cannot be read or the token cannot be used.
    pub fn over_with_token_file(channel: Channel, path: PathBuf) -> Result<Self, Error> {
        Self::renewing(path, move |token| {
            Client::over(channel.clone(), Some(token))
        })
    }

    fn renewing(
        path: PathBuf,
        client: impl Fn(&str) -> Result<Client, client::Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let token = read(&path).map_err(|source| Error::Token {
            path: path.clone(),
            source,
        })?;
        let first = client(&token).map_err(|source| Error::Client { source })?;
        let renewal = Renewal {
            client: Box::new(client),
            path,
            read: Mutex::new((token, Instant::now())),
        };
        Ok(Self {
            ways: Mutex::new(first.into()),
            renewal: Some(renewal),
            plain_calls: false,
            kinds: Kinds::built_in(),
        })
    }

    fn ways(&self) -> Ways {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newer) = self.renewal.as_ref().and_then(Renewal::newer) {
            *ways = newer.with_kinds(self.kinds.clone()).into();
        }
        ways.clone()
    }
}

/// One call, as a part of a trace.
fn span(call: &'static str, record: &RecordName) -> Span {
    info_span!("sink", otel.kind = "client", call, %record)
}

#[async_trait]
impl Sink for GrpcSink {
    async fn store(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError> {
        let ways = self.ways();
        let span = span("store", &upload.grouping.record);
        let stored = if self.plain_calls {
            ways.plain.store(upload, value).instrument(span).await
        } else {
            ways.batched
                .store(upload, value.to_vec())
                .instrument(span)
                .await
        };
        stored.map(|_| ()).map_err(|status| classify(&status))
    }

    async fn store_again(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError> {
        let ways = self.ways();
        let span = span("store_again", &upload.grouping.record);
        let stored = if self.plain_calls {
            ways.plain.store_again(upload, value).instrument(span).await
        } else {
            ways.batched
                .store_again(upload, value.to_vec())
                .instrument(span)
                .await
        };
        stored.map(|_| ()).map_err(|status| classify(&status))
    }

    async fn stored(&self, record: &RecordName) -> Result<Option<Vec<u8>>, SinkError> {
        let record = self
            .ways()
            .plain
            .record(record)
            .instrument(span("stored", record))
            .await
            .map_err(|status| classify(&status))?;
        Ok(record.map(|record| {
            record
                .data
                .map(|data| data.value.to_vec())
                .unwrap_or_default()
        }))
    }

    async fn unended(&self, parent: Option<&Parent>, page: &str) -> Result<UnendedPage, SinkError> {
        let request = ListRunsRequest {
            parent: format!("{}/results/-", parent.map_or("-", Parent::as_str)),
            filter: UNENDED.to_owned(),
            page_size: PAGE,
            page_token: page.to_owned(),
            ..ListRunsRequest::default()
        };
        let mut runs = self.ways().plain.runs();
        let found = runs.list_runs(request).await;
        let found = found.map_err(|status| classify(&status))?.into_inner();
        let run = |row: RunRow| {
            Some(Unended {
                record: row.record.parse().ok()?,
                data_type: row.r#type,
                uid: row.uid,
                namespace: row.namespace,
            })
        };
        Ok(UnendedPage {
            runs: found.runs.into_iter().filter_map(run).collect(),
            next: found.next_page_token,
        })
    }

    async fn append_log(&self, messages: Vec<AppendLogRequest>) -> Result<(), SinkError> {
        let mut logs = self.ways().plain.logs();
        let appended = logs.append_log(futures::stream::iter(messages)).await;
        appended.map(|_| ()).map_err(|status| classify(&status))
    }

    async fn describe_log(&self, log: &str) -> Result<Vec<LogContainer>, SinkError> {
        let name = log.to_owned();
        let mut logs = self.ways().plain.logs();
        let found = logs
            .describe_log(DescribeLogRequest {
                name,
                only_stored: true,
            })
            .await;
        let found = found.map_err(|status| classify(&status))?;
        Ok(found.into_inner().containers)
    }

    async fn log_times(
        &self,
        log: &str,
        source: &LogSource,
        since: Timestamp,
    ) -> Result<LineTimes, SinkError> {
        let found = log_times(&self.ways().plain, log, source, since).await;
        found.map_err(|status| classify(&status))
    }
}

/// Times of lines that are looked at; of a second that has more, the last ones.
const TIMES: i64 = 1 << 20;

async fn log_times(
    client: &Client,
    log: &str,
    source: &LogSource,
    since: Timestamp,
) -> Result<LineTimes, Status> {
    let request = ReadLogRequest {
        name: log.to_owned(),
        pod: source.pod.clone(),
        containers: vec![source.container.clone()],
        restart: Some(source.restart),
        tail: TIMES,
        since: Some(hindsight_proto::time::to_wire(since)),
        ..ReadLogRequest::default()
    };
    let mut found = LineTimes::default();
    let mut parts = client.logs().read_log(request).await?.into_inner();
    let mut count = 0;
    while let Some(part) = parts.message().await? {
        let Some(lines) = part.lines.filter(|_| part.source.as_ref() == Some(source)) else {
            continue;
        };
        let mut time: i64 = 0;
        for (number, after) in (lines.first_line..).zip(&lines.times) {
            time = time.wrapping_add(*after);
            count += 1;
            if !lines.holes.contains(&number) {
                found.times.push(time);
            }
        }
    }
    found.is_cut = count >= TIMES;
    Ok(found)
}

/// What follows from a status.
///
/// A connection that breaks in the middle of a call shows as one of several codes, but always
/// with its cause, which a status that the server sent never has. A token that is not accepted
/// is no property of one run, so everything waits for a better one; nor is a budget that is spent,
/// of which the server says when there is some again.
fn classify(status: &Status) -> SinkError {
    let (code, severity) = match status.code() {
        Code::Ok => ("OK", Severity::Passing),
        Code::Unavailable => ("UNAVAILABLE", Severity::Unavailable),
        Code::Unauthenticated => ("UNAUTHENTICATED", Severity::Unavailable),
        Code::Unknown => ("UNKNOWN", Severity::Passing),
        Code::Cancelled => ("CANCELLED", Severity::Passing),
        Code::DeadlineExceeded => ("DEADLINE_EXCEEDED", Severity::Passing),
        Code::Internal => ("INTERNAL", Severity::Passing),
        Code::Aborted => ("ABORTED", Severity::Passing),
        Code::AlreadyExists => ("ALREADY_EXISTS", Severity::Passing),
        Code::FailedPrecondition => ("FAILED_PRECONDITION", Severity::Passing),
        Code::ResourceExhausted => ("RESOURCE_EXHAUSTED", Severity::Passing),
        Code::InvalidArgument => ("INVALID_ARGUMENT", Severity::Lasting),
        Code::NotFound => ("NOT_FOUND", Severity::Lasting),
        Code::PermissionDenied => ("PERMISSION_DENIED", Severity::Denied),
        Code::OutOfRange => ("OUT_OF_RANGE", Severity::Lasting),
        Code::Unimplemented => ("UNIMPLEMENTED", Severity::Lasting),
        Code::DataLoss => ("DATA_LOSS", Severity::Lasting),
    };
    let retry_after = retry_after(status);
    let is_broken = severity == Severity::Passing && std::error::Error::source(status).is_some();
    let severity = match status.code() {
        _ if is_broken => Severity::Unavailable,
        Code::ResourceExhausted if retry_after.is_some() => Severity::Unavailable,
        Code::ResourceExhausted if is_too_large(status.message()) => Severity::Lasting,
        _ => severity,
    };
    SinkError {
        code,
        message: status.message().to_owned(),
        severity,
        retry_after,
    }
}

/// When the server wants to be called again: in the details, or as proxies say it.
fn retry_after(status: &Status) -> Option<Duration> {
    let told = status.get_details_retry_info();
    let told = told.and_then(|info| info.retry_delay);
    told.or_else(|| {
        let seconds = status.metadata().get("retry-after")?.to_str().ok()?;
        seconds.trim().parse().ok().map(Duration::from_secs)
    })
}

/// Whether it is the size of a message that is refused. The code does not tell, and libraries of
/// other languages have no more than their words: `received message larger than max` in Go, C++ and
/// Python, `message length too large` in Rust, `message exceeds maximum size` in Java.
fn is_too_large(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["larger than max", "too large", "exceeds maximum size"]
        .iter()
        .any(|words| message.contains(words))
}

mod renewal;
#[cfg(test)]
mod tests;
