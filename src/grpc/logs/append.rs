//! The stream of `AppendLog`: what has arrived is stored together, while more arrives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::FutureExt as _;
use hindsight_logs::Lines;
use hindsight_proto::v1::{self as pb, AppendLogRequest, AppendLogResponse};
use hindsight_storage::{LogKey, LogSource, StoredLog};
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument as _;

use super::{container, of};
use crate::grpc::{
    ResultsServer, call::credentials, convert, lifetime::RECHECK, status::status,
    transport::of_stream,
};
use crate::service::{AppendAsk, Error};
use hindsight_access::RequestContext;
use hindsight_access::auth::{self, Caller, Credentials, Grant, Guarded, Verb};
use hindsight_access::budget::{Arrival, MemoryPermit};
use hindsight_filter::model::{LogName, Parent, ParentPattern, RecordName, Resource, ResultName};
use hindsight_runtime::error::HasKind as _;
use hindsight_storage as storage;

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
        by: known(&arrival),
        arrival,
        grants: BTreeMap::new(),
        stored: BTreeMap::new(),
        order: Vec::new(),
        results: BTreeSet::new(),
        told: BTreeSet::new(),
    };
    match appending.run(requests).await {
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

/// Who sends a stream, as far as that is known before it is asked what they may.
fn known(arrival: &Arrival) -> RequestContext {
    RequestContext::of(Arc::new(Caller {
        name: arrival.caller().to_owned(),
        ..Caller::default()
    }))
}

/// Messages that are stored in one call of the service, in the order in which they came.
#[derive(Default)]
struct Batch {
    asks: Vec<AppendAsk>,
    /// Set aside for their texts until they are stored.
    rooms: Vec<MemoryPermit>,
    bytes: usize,
}

/// A stream that is under way.
struct Appending<'s> {
    server: &'s ResultsServer,
    caller: Credentials,
    /// Who that is, for the audit log.
    by: RequestContext,
    arrival: Arrival,
    /// What the caller may, and when that was asked.
    grants: BTreeMap<Parent, (Grant, Instant)>,
    stored: BTreeMap<LogKey, StoredLog>,
    /// In which order sources came first.
    order: Vec<LogKey>,
    /// Results that are there.
    results: BTreeSet<ResultName>,
    /// Runs of whose logs the audit log says that they were changed.
    told: BTreeSet<RecordName>,
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
            let (mut batch, mut ended) = (Batch::default(), None);
            let mut next = Some(first);
            while let Some(message) = next.take() {
                if let Err(refused) = self.join(message, &mut batch).await {
                    // What came before it is kept.
                    ended = Some(Err(Ended::Refused(refused)));
                    break;
                }
                if batch.bytes >= HEAVY || batch.asks.len() >= MOST {
                    break;
                }
                // What has arrived already, and nothing that would have to be waited for.
                match requests.message().now_or_never() {
                    Some(Ok(None)) => ended = Some(Ok(())),
                    Some(Ok(message)) => next = message,
                    Some(Err(error)) => ended = Some(Err(Ended::Broken(of_stream(error)))),
                    None => {}
                }
            }
            self.store(batch).await?;
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Makes a message part of a batch. One that is refused is told to the audit log, if it has a name; the caller is
    /// judged before the rest of the message is.
    async fn join(&mut self, message: AppendLogRequest, batch: &mut Batch) -> Result<(), Error> {
        batch.rooms.push(self.arrival.of_message());
        let name: LogName = convert::name("name", &message.name)?;
        let may = self.permit(&name).await;
        let asked = may.and_then(|()| read(name.clone(), message));
        let service = &self.server.service;
        let asked = service.audited(&self.by, Verb::Update, &name, asked);
        let ask = asked.await?;
        batch.bytes += OVERHEAD + ask.lines.text.len() + ask.lines.times.len() * 8;
        batch.asks.push(ask);
        Ok(())
    }

    /// Stores a batch, and tells the audit log what came of it. Once that is begun it is done, also if the caller goes
    /// away.
    async fn store(&mut self, batch: Batch) -> Result<(), Ended> {
        let Batch { asks, rooms, .. } = batch;
        if asks.is_empty() {
            return Ok(());
        }
        let quota = self
            .server
            .budgets
            .enter_in_turn(self.arrival.caller())
            .await;
        self.make_results(&asks).await?;
        let grants = self.grants.values().map(|(grant, _)| grant.clone());
        let grants: Vec<_> = grants.collect();
        let (service, by) = (self.server.service.clone(), self.by.clone());
        let mut told = std::mem::take(&mut self.told);
        let work = async move {
            let stored = service.append_logs(&by, &grants, asks, &mut told).await;
            drop((quota, rooms));
            (stored, told)
        };
        let task = tokio::spawn(work.in_current_span());
        let (stored, told) = task.await.map_err(stopped)?;
        self.told = told;
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

    /// Makes the results of runs that are not stored yet. If that is refused, so is the whole batch.
    async fn make_results(&mut self, asks: &[AppendAsk]) -> Result<(), Error> {
        let made = self.make_missing(asks).await;
        if let Err(why) = &made {
            let names: BTreeSet<_> = asks.iter().map(|ask| &ask.name).collect();
            for name in names {
                let service = &self.server.service;
                service
                    .audit_refused(&self.by, Verb::Update, name, why)
                    .await;
            }
        }
        made
    }

    async fn make_missing(&mut self, asks: &[AppendAsk]) -> Result<(), Error> {
        for ask in asks {
            let result = ask.name.record().result();
            if !self.results.contains(result) {
                if !self.server.service.has_result(result).await? {
                    self.make(result.clone()).await?;
                }
                self.results.insert(result.clone());
            }
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
        let allowed = server
            .allow(&self.caller, Verb::Update, Guarded::Logs, of(name))
            .await;
        // They may act for another one, which their arrival does not tell.
        let caller = match &allowed {
            Ok(grant) => Some(grant.caller()),
            Err(auth::Error::Denied { caller }) => Some(caller),
            Err(_) => None,
        };
        if let Some(caller) = caller {
            self.by.caller = Arc::clone(caller);
        }
        let grant = allowed?;
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

    fn answer(&mut self) -> AppendLogResponse {
        let order = std::mem::take(&mut self.order);
        let stored = order.iter().filter_map(|key| self.stored.remove(key));
        AppendLogResponse {
            containers: stored.map(container).collect(),
        }
    }
}

/// Only a server that stops gives up what it stores.
fn stopped(broken: tokio::task::JoinError) -> Error {
    Error::Store(storage::Error::Unavailable {
        what: "appending lines",
        source: broken.into(),
    })
}

/// What a message asks for, which has this name.
fn read(name: LogName, message: AppendLogRequest) -> Result<AppendAsk, Error> {
    let source = convert::required("source", message.source)?;
    let given = message.lines.unwrap_or_default();
    let ask = AppendAsk {
        name,
        source: LogSource {
            pod: source.pod,
            container: source.container,
            restart: source.restart,
        },
        lines: lines(given)?,
        seal: message.seal,
    };
    ask.check()?;
    Ok(ask)
}

/// Lines of which the times are differences.
fn lines(given: pb::LogLines) -> Result<Lines, Error> {
    let (first, text) = (given.first_line, given.text.into());
    Lines::of_differences(first, text, given.times, given.holes)
        .map_err(|wrong| Error::Invalid(format!("lines: {wrong}")))
}
