//! The stream of `AppendLog`: what has arrived is stored together, while more arrives.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use hindsight_logs::Lines;
use hindsight_proto::v1::{self as pb, AppendLogRequest, AppendLogResponse};
use hindsight_storage::{LogKey, LogSource, StoredLog};
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

use super::{container, of};
use crate::grpc::{
    ResultsServer, call::credentials, convert, lifetime::RECHECK, status::status,
    transport::of_stream,
};
use crate::service::{AppendAsk, Error};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Credentials, Grant, Guarded, Verb};
use hindsight_access::budget::{Arrival, MemoryPermit};
use hindsight_filter::model::{LogName, Parent, ParentPattern, Resource, ResultName};
use hindsight_runtime::error::HasKind as _;

const METHOD: &str = "AppendLog";
/// Bytes after which nothing more joins what is stored together.
const HEAVY: usize = 8 << 20;
/// Most messages that are stored together.
const MOST: usize = 256;
/// Most sources that one call names, since the answer has them all.
const SOURCES: usize = 10_000;
/// What a message takes beside its text, in bytes.
const OVERHEAD: usize = 1 << 10;

pub(super) async fn append_log(
    server: &ResultsServer,
    request: Request<Streaming<AppendLogRequest>>,
) -> Result<Response<AppendLogResponse>, Status> {
    let (metadata, _, requests) = request.into_parts();
    let arrival =
        Arrival::current().ok_or_else(|| Status::internal("the stream was not authenticated"))?;
    let streaming = arrival.streams();
    let _streaming = streaming.map_err(|exceeded| status(METHOD, &exceeded))?;
    let ongoing = server.metrics.start(METHOD);
    let mut appending = Appending {
        server,
        caller: credentials(metadata.as_ref()),
        by: RequestContext::default(),
        arrival,
        grants: BTreeMap::new(),
        stored: BTreeMap::new(),
        order: Vec::new(),
        results: BTreeSet::new(),
        touched: BTreeSet::new(),
    };
    let outcome = appending.run(requests).await;
    appending.audit(&outcome).await;
    match outcome {
        Ok(()) => {
            ongoing.finish(0);
            Ok(Response::new(appending.answer()))
        }
        Err(Ended::Refused(error)) => {
            ongoing.finish(error.kind().grpc_code());
            Err(status(METHOD, &error))
        }
        Err(Ended::Broken(broken)) => {
            ongoing.finish(broken.code().into());
            Err(broken)
        }
    }
}

/// Why a stream ended before its end.
enum Ended {
    Refused(Error),
    Broken(Status),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A stream that is under way.
struct Appending<'s> {
    server: &'s ResultsServer,
    caller: Credentials,
    by: RequestContext,
    arrival: Arrival,
    /// What the caller may, and when that was asked.
    grants: BTreeMap<Parent, (Grant, Instant)>,
    stored: BTreeMap<LogKey, StoredLog>,
    /// In which order sources came first.
    order: Vec<LogKey>,
    /// Results that are there.
    results: BTreeSet<ResultName>,
    /// Which logs were asked to change.
    touched: BTreeSet<LogName>,
}

impl Appending<'_> {
    async fn run(&mut self, mut requests: Streaming<AppendLogRequest>) -> Result<(), Ended> {
        loop {
            let stopping = self.server.stopping.clone();
            let first = tokio::select! {
                message = requests.message() => message,
                () = stopping.cancelled() => Err(Status::unavailable(
                    "the server is stopping; begin again after the lines that are stored",
                )),
            };
            let Some(first) = first.map_err(of_stream).map_err(Ended::Broken)? else {
                return Ok(());
            };
            let (mut broken, mut is_end) = (None, false);
            let (mut batch, mut rooms, mut bytes) = (Vec::new(), Vec::new(), 0);
            let mut next = Some(first);
            while let Some(message) = next.take() {
                bytes += self.join(message, &mut batch, &mut rooms)?;
                if bytes >= HEAVY || batch.len() >= MOST {
                    break;
                }
                // What has arrived already, and nothing that would have to be waited for.
                match requests.message().now_or_never() {
                    Some(Ok(message)) => {
                        is_end = message.is_none();
                        next = message;
                    }
                    Some(Err(error)) => broken = Some(of_stream(error)),
                    None => {}
                }
            }
            self.store(batch).await?;
            drop(rooms);
            if let Some(broken) = broken {
                return Err(Ended::Broken(broken));
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Makes a message part of a batch, and says how many bytes it takes.
    fn join(
        &mut self,
        message: AppendLogRequest,
        batch: &mut Vec<AppendAsk>,
        rooms: &mut Vec<MemoryPermit>,
    ) -> Result<usize, Ended> {
        rooms.push(self.arrival.of_message());
        let ask = read(message)?;
        ask.check()?;
        self.touched.insert(ask.name.clone());
        let bytes = OVERHEAD + ask.lines.text.len() + ask.lines.times.len() * 8;
        batch.push(ask);
        Ok(bytes)
    }

    async fn store(&mut self, batch: Vec<AppendAsk>) -> Result<(), Ended> {
        for ask in &batch {
            self.permit(&ask.name).await?;
        }
        let quota = self
            .server
            .budgets
            .enter_in_turn(self.arrival.caller())
            .await;
        let grants = self.grants.values().map(|(grant, _)| grant.clone());
        let grants: Vec<_> = grants.collect();
        let service = &self.server.service;
        for ask in &batch {
            let result = ask.name.record().result();
            if !self.results.contains(result) {
                if !service.has_result(result).await? {
                    self.make(result.clone()).await?;
                }
                self.results.insert(result.clone());
            }
        }
        let stored = service.append_logs(&self.by, &grants, batch).await;
        drop(quota);
        for log in stored? {
            if self.stored.insert(log.key.clone(), log.clone()).is_none() {
                self.order.push(log.key);
            }
        }
        if self.order.len() > SOURCES {
            let many = format!("a call names {SOURCES} sources at most; begin another one");
            return Err(Error::Invalid(many).into());
        }
        Ok(())
    }

    /// Asks whether the caller may append to this log, unless that was asked of its parent lately.
    async fn permit(&mut self, name: &LogName) -> Result<(), Error> {
        let parent = name.record().result().parent();
        let asked = self.grants.get(parent).map(|(_, asked)| *asked);
        if asked.is_some_and(|asked| asked.elapsed() < RECHECK) {
            return Ok(());
        }
        let server = self.server;
        let grant = server
            .allow(&self.caller, Verb::Update, Guarded::Logs, of(name))
            .await?;
        self.by.caller = std::sync::Arc::clone(grant.caller());
        self.grants.insert(parent.clone(), (grant, Instant::now()));
        Ok(())
    }

    /// Makes the result of a run that is not stored yet, if the caller may.
    async fn make(&self, result: ResultName) -> Result<(), Error> {
        let server = self.server;
        let parent = ParentPattern::Exact(result.parent().clone());
        let grant = server
            .allow(&self.caller, Verb::Create, Resource::Results, parent)
            .await?;
        server.service.make_result(&self.by, &grant, result).await
    }

    async fn audit(&self, outcome: &Result<(), Ended>) {
        let ended = match outcome {
            Err(Ended::Refused(error)) => Err(error),
            Ok(()) | Err(Ended::Broken(_)) => Ok(()),
        };
        for name in &self.touched {
            let service = &self.server.service;
            service
                .audit_change(&self.by, Verb::Update, name, ended)
                .await;
        }
    }

    fn answer(&mut self) -> AppendLogResponse {
        let order = std::mem::take(&mut self.order);
        let stored = order.iter().filter_map(|key| self.stored.remove(key));
        AppendLogResponse {
            containers: stored.map(container).collect(),
        }
    }
}

/// What a message asks for.
fn read(message: AppendLogRequest) -> Result<AppendAsk, Error> {
    let name: LogName = convert::name("name", &message.name)?;
    let source = convert::required("source", message.source)?;
    let given = message.lines.unwrap_or_default();
    Ok(AppendAsk {
        name,
        source: LogSource {
            pod: source.pod,
            container: source.container,
            restart: source.restart,
        },
        lines: lines(given)?,
        seal: message.seal,
    })
}

/// Lines of which the times are differences.
fn lines(given: pb::LogLines) -> Result<Lines, Error> {
    let (first, text) = (given.first_line, given.text.into());
    Lines::of_differences(first, text, given.times, given.holes)
        .map_err(|wrong| Error::Invalid(format!("lines: {wrong}")))
}
