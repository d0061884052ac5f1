//! Authentication of a request before its body is read.
//!
//! Body and answer are charged to the account of the caller. Without a known caller no body is read.
//! Health and reflection need no caller, and have small limits instead.

use std::{future::poll_fn, net::IpAddr, sync::Arc, task::Poll, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    http::{Method, Request, Response},
};
use tokio::sync::Semaphore;
use tonic::Status;
use tower_service::Service as _;

use super::{
    request_body::{BodyLimits, messages, whole},
    response_body::with_timeout,
    throttle::Known,
};
use crate::grpc;
use hindsight_access::auth::{self, Authorizer, Caller, Credentials};
use hindsight_access::budget::{Arrival, Budgets, QuotaExceeded};
use hindsight_runtime::error::HasKind;
use hindsight_runtime::telemetry::RequestMetrics;
use hindsight_transcode as rest;

/// Under which name requests are counted whose sender is not known.
const UNIDENTIFIED: &str = "unidentified";
/// Memory for heads of requests while their callers are looked up.
const HEADS: usize = 32 << 20;
/// What a request takes beside its head.
const OVERHEAD: usize = 8 << 10;
/// How many requests of anybody are answered at once, and beside them how many streams of each kind that may last: those
/// that follow the health of the server, and those that ask for descriptors.
const OPEN: usize = 1000;
const STREAMED: usize = 100;
/// How many requests for the health of the server are answered beside all others, so that none of them keeps a probe
/// from its answer.
const PROBES: usize = 1000;
/// The largest message that anybody may send.
const OPEN_MESSAGE: usize = 4 << 10;
/// What anybody may ask.
const OPEN_SERVICES: &str = "/grpc.";
const WATCH: &str = "/grpc.health.v1.Health/Watch";
const CHECK: &str = "/grpc.health.v1.Health/Check";
const REFLECTION: &str = "/grpc.reflection.";
const OPEN_PAGES: [&str; 4] = [
    "/healthz",
    "/openapi.json",
    "/apis/v1beta1/healthz",
    "/apis/v2beta1/healthz",
];
/// Where messages follow one another, and how deep in them the payload is.
const STREAMS: [(&str, usize); 3] = [
    ("/hindsight.v1.Ingest/Upsert", DEPTH),
    ("/hindsight.v1.Logs/AppendLog", 2),
    ("/tekton.results.v1alpha2.Logs/UpdateLog", 1),
];
/// How deep the payload of a record is.
const DEPTH: usize = 3;

/// Protocol of a request, on the one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    Rest,
}

/// IP address that a request came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source(pub(super) IpAddr);

/// Authenticates requests. Clones share their limits.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    authorizer: Arc<dyn Authorizer>,
    budgets: Budgets,
    metrics: RequestMetrics,
    heads: Arc<Semaphore>,
    open: Arc<Semaphore>,
    probes: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    reflections: Arc<Semaphore>,
    /// The largest message of a caller who is known.
    limit: usize,
    patience: Duration,
}

/// Why a request is refused before it is read.
#[derive(Debug, thiserror::Error)]
enum Rejection {
    #[error(transparent)]
    Auth(#[from] auth::Error),
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    #[error("too many callers wait to be recognised; try again")]
    QueueFull,
}

impl HasKind for Rejection {
    fn kind(&self) -> hindsight_runtime::error::ErrorKind {
        match self {
            Self::Auth(error) => error.kind(),
            Self::Quota(exceeded) => exceeded.kind(),
            Self::QueueFull => hindsight_runtime::error::ErrorKind::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Quota(exceeded) => exceeded.retry_after(),
            Self::Auth(_) | Self::QueueFull => None,
        }
    }
}

impl Gate {
    pub(super) fn new(
        authorizer: &Arc<dyn Authorizer>,
        (budgets, metrics): (Budgets, RequestMetrics),
        limit: usize,
        patience: Duration,
    ) -> Self {
        Self {
            authorizer: Arc::clone(authorizer),
            budgets,
            metrics,
            heads: Arc::new(Semaphore::new(HEADS)),
            open: Arc::new(Semaphore::new(OPEN)),
            probes: Arc::new(Semaphore::new(PROBES)),
            watches: Arc::new(Semaphore::new(STREAMED)),
            reflections: Arc::new(Semaphore::new(STREAMED)),
            limit,
            patience,
        }
    }

    /// What `router` answers, to those who get through.
    pub(super) fn before(&self, router: Router, protocol: Protocol) -> Router {
        let gate = self.clone();
        Router::new().fallback(move |request: Request<Body>| {
            let (gate, router) = (gate.clone(), router.clone());
            async move {
                let passed = match is_open(&request, protocol) {
                    true => gate.pass_anybody(router, request, protocol).await,
                    false => gate.pass(router, request, protocol).await,
                };
                passed.unwrap_or_else(|stopped| refused(&stopped, protocol))
            }
        })
    }

    async fn pass(
        &self,
        mut router: Router,
        request: Request<Body>,
        protocol: Protocol,
    ) -> Result<Response<Body>, Rejection> {
        let head = head(&request);
        let source = request.extensions().get().map(|Source(source)| *source);
        let credentials = Credentials {
            source,
            ..match protocol {
                Protocol::Grpc => grpc::credentials(request.headers()),
                Protocol::Rest => grpc::credentials(&rest::call_metadata(request.headers())),
            }
        };
        let caller = match self.identify(&credentials, head).await {
            Ok(caller) => caller,
            Err(stopped) => {
                let ongoing = self.metrics.start(UNIDENTIFIED);
                ongoing.finish(stopped.kind().grpc_code());
                return Err(stopped);
            }
        };
        let arrival = self.budgets.arrive(&caller.name, head)?;
        let request = self.measured(request, protocol, arrival.clone());
        let Ok(mut response) = arrival.clone().scope(router.call(request)).await;
        response.extensions_mut().insert(Known);
        Ok(response.map(|body| with_timeout(body, arrival, self.patience)))
    }

    async fn pass_anybody(
        &self,
        mut router: Router,
        request: Request<Body>,
        protocol: Protocol,
    ) -> Result<Response<Body>, Rejection> {
        let turns = match request.uri().path() {
            WATCH => &self.watches,
            path if path.starts_with(REFLECTION) => &self.reflections,
            path if path == CHECK || path.ends_with("/healthz") => &self.probes,
            _ => &self.open,
        };
        let turn = Arc::clone(turns).try_acquire_owned();
        let turn = turn.map_err(|_all| Rejection::QueueFull)?;
        let request = match protocol {
            Protocol::Grpc => {
                let (parts, body) = request.into_parts();
                let limits = BodyLimits {
                    arrival: None,
                    limit: OPEN_MESSAGE,
                    patience: self.patience,
                    streams: false,
                    depth: DEPTH,
                };
                let body = messages(body, &parts.headers, limits);
                Request::from_parts(parts, body)
            }
            Protocol::Rest => request,
        };
        let Ok(response) = router.call(request).await;
        Ok(response.map(|body| with_timeout(body, turn, self.patience)))
    }

    /// The caller of a request. While it is looked up elsewhere, the head takes memory.
    async fn identify(
        &self,
        credentials: &Credentials,
        head: usize,
    ) -> Result<Arc<Caller>, Rejection> {
        let mut identified = self.authorizer.identify(credentials);
        // Those who are remembered never wait for those who are not.
        let first = poll_fn(|cx| Poll::Ready(identified.as_mut().poll(cx))).await;
        if let Poll::Ready(known) = first {
            return Ok(known?);
        }
        let bytes = u32::try_from(head + OVERHEAD).unwrap_or(u32::MAX);
        let room = self.heads.try_acquire_many(bytes);
        let _room = room.map_err(|_none| Rejection::QueueFull)?;
        Ok(identified.await?)
    }

    fn measured(
        &self,
        request: Request<Body>,
        protocol: Protocol,
        arrival: Arrival,
    ) -> Request<Body> {
        if request.body().is_end_stream() {
            return request;
        }
        let (parts, body) = request.into_parts();
        let stream = STREAMS.iter().find(|(path, _)| *path == parts.uri.path());
        let mut limits = BodyLimits {
            arrival: Some(arrival),
            limit: self.limit,
            patience: self.patience,
            streams: stream.is_some(),
            depth: stream.map_or(DEPTH, |(_, depth)| *depth),
        };
        let body = match protocol {
            Protocol::Grpc => messages(body, &parts.headers, limits),
            Protocol::Rest => {
                limits.limit = rest::largest_body(self.limit);
                whole(body, &parts.headers, limits)
            }
        };
        Request::from_parts(parts, body)
    }
}

/// Whether this is for everybody.
fn is_open(request: &Request<Body>, protocol: Protocol) -> bool {
    let path = request.uri().path();
    match protocol {
        Protocol::Grpc => path.starts_with(OPEN_SERVICES),
        Protocol::Rest => OPEN_PAGES.contains(&path) || request.method() == Method::OPTIONS,
    }
}

/// How many bytes the head of a request takes.
fn head(request: &Request<Body>) -> usize {
    let target = request.uri().path_and_query();
    let fields = request.headers().iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum();
    fields + target.map_or(0, |target| target.as_str().len())
}

fn refused(stopped: &Rejection, protocol: Protocol) -> Response<Body> {
    let status: Status = grpc::refusal("a request", stopped);
    match protocol {
        Protocol::Grpc => status.into_http(),
        Protocol::Rest => rest::refusal(status),
    }
}
