//! The one port: HTTP/1.1 and HTTP/2 on every connection, gRPC and everything else told apart
//! by what they say they are.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request, Response, header},
};
use futures::future::Either;
use hindsight_runtime::traces;
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_service::Service as _;
use tracing::Instrument as _;

use super::{
    connection::ConnectionTask,
    heads::Heads,
    listen::Listener,
    metrics::Connections,
    throttle::{Standing, Throttle},
    tls::Tls,
};
use crate::config::{Config, Origins};
use hindsight_proto::metadata::{REQUEST_ID, WARNING};
use hindsight_transcode::{request_id, traceparent};

/// How many requests one HTTP/2 connection may have open: the least that RFC 9113 recommends.
const STREAMS: u32 = 100;
/// How much of bodies that nobody has read yet is taken of one request over HTTP/2, and of one
/// connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// How much of an answer that was not sent yet is taken from it.
const SEND_BUFFER: usize = 64 << 10;
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
    /// How long a peer may take nothing of an answer.
    pub(super) fn patience(self) -> Duration {
        self.patience
    }

    pub(super) fn of(config: &Config) -> Self {
        let unless_zero = |span: Duration| (!span.is_zero()).then_some(span);
        Self {
            connections: config.max_connections.as_usize(),
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
            .max_concurrent_streams(STREAMS)
            .adaptive_window(false)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER);
        builder
    }
}

/// Sends gRPC calls to `grpc` and everything else to `http`, each with a name that the answer
/// repeats.
pub(super) fn front(grpc: Router, http: Router) -> Router {
    Router::new().fallback(move |mut request: Request<Body>| {
        let id = request_id(request.headers());
        request.headers_mut().insert(REQUEST_ID, id.clone());
        if is_grpc(&request) {
            Either::Left(rpc(grpc.clone(), request, id))
        } else {
            let mut http = http.clone();
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

/// Whether a request says that it is gRPC.
pub(super) fn is_grpc(request: &Request<Body>) -> bool {
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
        .expose_headers([
            HeaderName::from_static(REQUEST_ID),
            HeaderName::from_static(WARNING),
            header::RETRY_AFTER,
        ])
        .max_age(PREFLIGHT)
}

/// What the port answers with, and what it takes.
pub(super) struct Port {
    pub(super) router: Router,
    pub(super) builder: auto::Builder<TokioExecutor>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) limits: Limits,
    pub(super) metrics: Connections,
}

impl Port {
    /// Answers connections until `stop`, then until the last request that was taken is answered.
    /// No connection is taken after `stop`, but those that the system took are answered too.
    /// With TLS no other protocol is understood.
    pub(super) async fn serve(self, listener: Listener, stop: CancellationToken) {
        let slots = Arc::new(Semaphore::new(self.limits.connections));
        let (open, leave) = (TaskTracker::new(), CancellationToken::new());
        let (throttle, heads) = (Arc::new(Throttle::new()), Arc::default());
        let taking = async {
            loop {
                // Those who come while there is no slot wait in the queue of the system.
                let slot = slot(&slots).await;
                let stream = listener.next().await;
                let line = self.line(&leave, &throttle, &heads);
                open.spawn(line.secured(stream, slot, self.tls.clone()));
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = taking => {}
        }
        for stream in listener.rest() {
            let (line, tls, slots) = (
                self.line(&leave, &throttle, &heads),
                self.tls.clone(),
                Arc::clone(&slots),
            );
            open.spawn(async move { line.secured(stream, slot(&slots).await, tls).await });
        }
        // Nobody is told to leave before the port is closed: they would come back.
        leave.cancel();
        open.close();
        open.wait().await;
    }

    fn line(
        &self,
        leave: &CancellationToken,
        throttle: &Arc<Throttle>,
        heads: &Arc<Heads>,
    ) -> ConnectionTask {
        ConnectionTask {
            builder: self.builder.clone(),
            router: self.router.clone(),
            patience: self.limits.patience,
            age: self.limits.age,
            leave: leave.clone(),
            open: self.metrics.open(),
            standing: Standing::new(throttle),
            heads: Arc::clone(heads),
        }
    }
}

async fn slot(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    if slots.available_permits() == 0 {
        tracing::warn!("max_connections reached; accepting again when one closes");
    }
    let slot = Arc::clone(slots).acquire_owned().await;
    slot.expect("nobody closes the slots")
}
