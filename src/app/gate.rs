//! Who sends a request is asked before its body is read.
//!
//! A caller who is known has an account, at whose expense the body comes and the answer goes. Of one who
//! is not known nothing is read. Health and reflection are for everybody, so they get little.

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
    arriving::{Terms, messages, whole},
    leaving::leaving,
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
/// Memory for heads of requests while somebody is asked who sent them.
const HEADS: usize = 32 << 20;
/// What a request takes beside its head.
const OVERHEAD: usize = 8 << 10;
/// How many requests of anybody are answered at once.
const OPEN: usize = 1000;
/// The largest message that anybody may send.
const OPEN_MESSAGE: usize = 4 << 10;
/// What anybody may ask.
const OPEN_SERVICES: &str = "/grpc.";
const OPEN_PAGES: [&str; 2] = ["/healthz", "/openapi.json"];
/// Where messages follow one another.
const STREAM: &str = "/hindsight.v1.Ingest/Upsert";

/// What the port speaks to whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Grpc,
    Rest,
}

/// From which machine a request came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source(pub(super) IpAddr);

/// The gate. Clones are the same gate.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    authorizer: Arc<dyn Authorizer>,
    budgets: Budgets,
    metrics: RequestMetrics,
    heads: Arc<Semaphore>,
    open: Arc<Semaphore>,
    /// The largest message of a caller who is known.
    limit: usize,
    patience: Duration,
}

/// Why a request does not get through.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Auth(#[from] auth::Error),
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    #[error("too many callers wait to be recognised; try again")]
    Crowded,
}

impl HasKind for Stopped {
    fn kind(&self) -> hindsight_runtime::error::ErrorKind {
        match self {
            Self::Auth(error) => error.kind(),
            Self::Quota(exceeded) => exceeded.kind(),
            Self::Crowded => hindsight_runtime::error::ErrorKind::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Quota(exceeded) => exceeded.retry_after(),
            Self::Auth(_) | Self::Crowded => None,
        }
    }
}

impl Gate {
    pub(super) fn new(
        authorizer: Arc<dyn Authorizer>,
        budgets: Budgets,
        metrics: RequestMetrics,
        limit: usize,
        patience: Duration,
    ) -> Self {
        Self {
            authorizer,
            budgets,
            metrics,
            heads: Arc::new(Semaphore::new(HEADS)),
            open: Arc::new(Semaphore::new(OPEN)),
            limit,
            patience,
        }
    }

    /// What `router` answers, to those who get through.
    pub(super) fn before(&self, router: Router, speech: Speech) -> Router {
        let gate = self.clone();
        Router::new().fallback(move |request: Request<Body>| {
            let (gate, router) = (gate.clone(), router.clone());
            async move {
                let passed = match is_open(&request, speech) {
                    true => gate.pass_anybody(router, request, speech).await,
                    false => gate.pass(router, request, speech).await,
                };
                passed.unwrap_or_else(|stopped| refused(&stopped, speech))
            }
        })
    }

    async fn pass(
        &self,
        mut router: Router,
        request: Request<Body>,
        speech: Speech,
    ) -> Result<Response<Body>, Stopped> {
        let head = head(&request);
        let source = request.extensions().get().map(|Source(source)| *source);
        let credentials = Credentials {
            source,
            ..match speech {
                Speech::Grpc => grpc::credentials(request.headers()),
                Speech::Rest => grpc::credentials(&rest::call_metadata(request.headers())),
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
        let request = self.measured(request, speech, arrival.clone());
        let Ok(mut response) = arrival.clone().scope(router.call(request)).await;
        response.extensions_mut().insert(Known);
        Ok(response.map(|body| leaving(body, arrival, self.patience)))
    }

    async fn pass_anybody(
        &self,
        mut router: Router,
        request: Request<Body>,
        speech: Speech,
    ) -> Result<Response<Body>, Stopped> {
        let turn = Arc::clone(&self.open).try_acquire_owned();
        let turn = turn.map_err(|_all| Stopped::Crowded)?;
        let request = match speech {
            Speech::Grpc => {
                let (parts, body) = request.into_parts();
                let terms = Terms {
                    arrival: None,
                    limit: OPEN_MESSAGE,
                    patience: self.patience,
                    streams: false,
                };
                let body = messages(body, &parts.headers, terms);
                Request::from_parts(parts, body)
            }
            Speech::Rest => request,
        };
        let Ok(response) = router.call(request).await;
        Ok(response.map(|body| leaving(body, turn, self.patience)))
    }

    /// Asks who sent this. While somebody else has to be asked, the head takes memory.
    async fn identify(
        &self,
        credentials: &Credentials,
        head: usize,
    ) -> Result<Arc<Caller>, Stopped> {
        let mut identified = self.authorizer.identify(credentials);
        // Those who are remembered never wait for those who are not.
        let first = poll_fn(|cx| Poll::Ready(identified.as_mut().poll(cx))).await;
        if let Poll::Ready(known) = first {
            return Ok(known?);
        }
        let bytes = u32::try_from(head + OVERHEAD).unwrap_or(u32::MAX);
        let room = self.heads.try_acquire_many(bytes);
        let _room = room.map_err(|_none| Stopped::Crowded)?;
        Ok(identified.await?)
    }

    fn measured(&self, request: Request<Body>, speech: Speech, arrival: Arrival) -> Request<Body> {
        if request.body().is_end_stream() {
            return request;
        }
        let (parts, body) = request.into_parts();
        let mut terms = Terms {
            arrival: Some(arrival),
            limit: self.limit,
            patience: self.patience,
            streams: parts.uri.path() == STREAM,
        };
        let body = match speech {
            Speech::Grpc => messages(body, &parts.headers, terms),
            Speech::Rest => {
                terms.limit = rest::largest_body(self.limit);
                whole(body, &parts.headers, terms)
            }
        };
        Request::from_parts(parts, body)
    }
}

/// Whether this is for everybody.
fn is_open(request: &Request<Body>, speech: Speech) -> bool {
    let path = request.uri().path();
    match speech {
        Speech::Grpc => path.starts_with(OPEN_SERVICES),
        Speech::Rest => OPEN_PAGES.contains(&path) || request.method() == Method::OPTIONS,
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

fn refused(stopped: &Stopped, speech: Speech) -> Response<Body> {
    let status: Status = grpc::refusal("a request", stopped);
    match speech {
        Speech::Grpc => status.into_http(),
        Speech::Rest => rest::refusal(status),
    }
}
