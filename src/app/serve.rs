//! The one port: HTTP/1.1 and HTTP/2 on every connection, gRPC and everything else told apart
//! by what they say they are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request, Response, header},
};
use futures::{Stream, StreamExt as _, future::Either};
use hindsight_proto::traces;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_service::Service as _;
use tracing::Instrument as _;

use super::{
    metrics::{Connections, Open},
    patience::{Patient, arriving},
    tls::Tls,
};
use crate::{
    config::{Config, Origins},
    rest::{REQUEST_ID, request_id, traceparent},
};

/// How many requests one HTTP/2 connection may have open.
const STREAMS: u32 = 1000;
/// How long a browser need not ask again whether it may ask.
const PREFLIGHT: Duration = Duration::from_mins(10);
/// The least that HTTP/1.1 takes for a head.
const LEAST_HEAD: usize = 8 << 10;

/// What a connection may take and keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    connections: usize,
    header_bytes: usize,
    patience: Duration,
    keepalive: Option<Duration>,
    age: Option<Duration>,
}

impl Limits {
    pub(super) fn of(config: &Config) -> Self {
        let unless_zero = |span: Duration| (!span.is_zero()).then_some(span);
        Self {
            connections: config.max_connections.get() as usize,
            header_bytes: config.max_header_bytes.as_usize().max(LEAST_HEAD),
            patience: config.client_timeout.get(),
            keepalive: unless_zero(config.keepalive.get()),
            age: unless_zero(config.connection_age.get()),
        }
    }

    pub(super) fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(self.header_bytes);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(self.keepalive)
            .keep_alive_timeout(self.patience)
            .max_header_list_size(u32::try_from(self.header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS);
        builder
    }
}

/// Sends gRPC calls to `grpc` and everything else to `http`, each with a name that the answer
/// repeats. A body for `http` has to keep arriving.
pub(super) fn front(grpc: Router, http: Router, limits: &Limits) -> Router {
    let patience = limits.patience;
    Router::new().fallback(move |mut request: Request<Body>| {
        let id = request_id(request.headers());
        request.headers_mut().insert(REQUEST_ID, id.clone());
        if is_grpc(&request) {
            Either::Left(rpc(grpc.clone(), request, id))
        } else {
            let mut http = http.clone();
            let request = request.map(|body| arriving(body, patience));
            Either::Right(async move {
                let Ok(mut response) = http.call(request).await;
                response.headers_mut().insert(REQUEST_ID, id);
                response
            })
        }
    })
}

async fn rpc(mut grpc: Router, request: Request<Body>, id: HeaderValue) -> Response<Body> {
    let span = tracing::info_span!("grpc", request.id = id.to_str().unwrap_or_default());
    traces::adopt(&span, traceparent(request.headers()));
    let Ok(mut response) = grpc.call(request).instrument(span).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

fn is_grpc(request: &Request<Body>) -> bool {
    request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Who may ask from a browser, and what they may send and read.
pub(super) fn cors(origins: &Origins) -> CorsLayer {
    let origins = match origins {
        Origins::Any => AllowOrigin::any(),
        Origins::These(origins) => {
            let values = origins.iter().filter_map(|origin| origin.parse().ok());
            AllowOrigin::list(values.collect::<Vec<HeaderValue>>())
        }
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([HeaderName::from_static(REQUEST_ID), header::RETRY_AFTER])
        .max_age(PREFLIGHT)
}

/// What the port answers with, and what it takes.
pub(super) struct Port {
    pub(super) router: Router,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: Limits,
    pub(super) metrics: Connections,
}

impl Port {
    /// Answers connections until `stop`, then until the last request that was taken is answered.
    /// No connection is taken after `stop`. With TLS no other speech is understood.
    pub(super) async fn serve(
        self,
        connections: impl Stream<Item = TcpStream>,
        stop: CancellationToken,
    ) {
        let Self {
            router,
            tls,
            limits,
            metrics,
        } = self;
        let builder = limits.builder();
        let slots = Arc::new(Semaphore::new(limits.connections));
        let open = TaskTracker::new();
        {
            let mut connections = std::pin::pin!(connections);
            loop {
                // Those who come while there is no slot wait in the queue of the system.
                let slot = tokio::select! {
                    () = stop.cancelled() => break,
                    slot = slot(&slots) => slot,
                };
                let stream = tokio::select! {
                    () = stop.cancelled() => break,
                    stream = connections.next() => match stream {
                        Some(stream) => stream,
                        None => break,
                    },
                };
                let line = Line {
                    builder: builder.clone(),
                    router: router.clone(),
                    limits,
                    stop: stop.clone(),
                    _slot: slot,
                    _open: metrics.open(),
                };
                let Some(tls) = tls.clone() else {
                    open.spawn(line.answer(stream));
                    continue;
                };
                open.spawn(async move {
                    let secured = tokio::select! {
                        // Nothing was asked yet, so nothing is lost.
                        () = line.stop.cancelled() => return,
                        secured = tls.accept(stream) => secured,
                    };
                    match secured {
                        Ok(stream) => line.answer(stream).await,
                        Err(error) => tracing::debug!(%error, "a connection was not secured"),
                    }
                });
            }
        }
        open.close();
        open.wait().await;
    }
}

async fn slot(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    if slots.available_permits() == 0 {
        tracing::warn!("max_connections are open; more are taken when one of them closes");
    }
    let slot = Arc::clone(slots).acquire_owned().await;
    slot.expect("nobody closes the slots")
}

/// What one connection needs.
struct Line {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
    _slot: OwnedSemaphorePermit,
    _open: Open,
}

impl Line {
    /// Answers until the peer goes, and takes no more requests once the server stops, the
    /// connection is old, or nothing was asked on it in time. What was taken is answered.
    async fn answer(self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let asked = Arc::new(AtomicBool::new(false));
        let service = Noticing {
            router: self.router,
            asked: Arc::clone(&asked),
        };
        let io = TokioIo::new(Patient::new(io, self.limits.patience));
        let connection = self
            .builder
            .serve_connection(io, TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        let mut silence = std::pin::pin!(tokio::time::sleep(self.limits.patience));
        let mut age = std::pin::pin!(after(self.limits.age));
        let (mut closing, mut patient) = (false, true);
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "a connection broke off");
                    }
                    return;
                }
                () = self.stop.cancelled(), if !closing => {}
                () = age.as_mut(), if !closing => {}
                () = silence.as_mut(), if patient && !closing => {
                    patient = false;
                    if asked.load(Ordering::Relaxed) {
                        continue;
                    }
                }
            }
            closing = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// After about `age`, so that what came together does not go together; never without one.
async fn after(age: Option<Duration>) {
    let Some(age) = age else {
        return std::future::pending().await;
    };
    let by_chance = u32::from(uuid::Uuid::new_v4().as_bytes()[0]) + 1;
    tokio::time::sleep(age - age / 10 * by_chance / 256).await;
}

/// The router, which notices that it was asked.
#[derive(Clone)]
struct Noticing {
    router: Router,
    asked: Arc<AtomicBool>,
}

impl<B> tower_service::Service<Request<B>> for Noticing
where
    Router: tower_service::Service<Request<B>>,
{
    type Response = <Router as tower_service::Service<Request<B>>>::Response;
    type Error = <Router as tower_service::Service<Request<B>>>::Error;
    type Future = <Router as tower_service::Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.router.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.asked.store(true, Ordering::Relaxed);
        self.router.call(request)
    }
}
