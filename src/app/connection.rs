//! One connection, from the first byte to the last.
//!
//! A connection is drained so that its peer loses nothing: requests that came are answered, HTTP/2
//! gets GOAWAY, and HTTP/1.1, which has no such frame, may send one more request within
//! [`DRAIN_IDLE`]. Then the socket lingers until the peer has read what was sent.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderValue, Request, Response, Version, header},
};
use futures::{FutureExt as _, future::BoxFuture};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    conn_state::ConnState,
    gate::Source,
    heads::{ConnHeads, Heads},
    lingering_socket,
    metrics::Open,
    throttle::Standing,
    tls::Tls,
    write_timeout::WriteTimeout,
};

/// Idle time after which a connection of HTTP/1.1 that is drained is closed.
const DRAIN_IDLE: Duration = Duration::from_millis(300);

/// What one connection needs.
pub(super) struct ConnectionTask {
    pub(super) builder: auto::Builder<TokioExecutor>,
    pub(super) router: Router,
    /// For how long the peer may be slow.
    pub(super) patience: Duration,
    /// When it is given up.
    pub(super) age: Option<Duration>,
    /// Cancelled when all connections are given up.
    pub(super) leave: CancellationToken,
    pub(super) open: Open,
    pub(super) standing: Standing,
    pub(super) heads: Arc<Heads>,
}

impl ConnectionTask {
    /// Answers on `stream`, within TLS if there is any. Has the slot for as long.
    pub(super) async fn secured(
        self,
        stream: TcpStream,
        _slot: OwnedSemaphorePermit,
        tls: Option<Arc<Tls>>,
    ) {
        let source = stream.peer_addr().ok().map(|peer| Source(peer.ip()));
        let (stream, back) = lingering_socket::lend(stream);
        match tls {
            None => self.answer(stream, source).await,
            Some(tls) => {
                let late = async {
                    self.leave.cancelled().await;
                    sleep(DRAIN_IDLE).await;
                };
                let secured = tokio::select! {
                    // Nothing was asked yet, so nothing is lost.
                    () = late => return,
                    secured = self.standing.metered(tls.accept(stream)) => secured,
                };
                match secured {
                    Ok(stream) => self.answer(stream, source).await,
                    Err(error) => tracing::debug!(%error, "a connection was not secured"),
                }
            }
        }
        lingering_socket::linger(back).await;
    }

    /// Answers until the peer goes, and takes no more requests once all are given up, the
    /// connection is old, or nothing was asked on it in time. What was taken is answered.
    async fn answer(
        self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        source: Option<Source>,
    ) {
        let state = Arc::new(ConnState::default());
        let heads = Arc::new(ConnHeads::new(&self.heads));
        let service = TrackRequests {
            router: self.router,
            state: Arc::clone(&state),
            source,
            standing: self.standing.clone(),
            heads: Arc::clone(&heads),
        };
        let io = WriteTimeout::new(io, self.patience, Arc::clone(&state), heads);
        let io = TokioIo::new(io);
        let connection = self
            .builder
            .serve_connection(io, TowerToHyperService::new(service));
        let mut connection = self.standing.metered(connection);
        let mut silence = std::pin::pin!(sleep(self.patience));
        let mut age = std::pin::pin!(after(self.age));
        let mut drain_idle = std::pin::pin!(sleep(DRAIN_IDLE));
        let (mut wanted, mut called, mut patient) = (true, false, true);
        loop {
            tokio::select! {
                ended = &mut connection => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "a connection broke off");
                    }
                    break;
                }
                () = self.leave.cancelled(), if wanted => {}
                () = age.as_mut(), if wanted => {}
                () = drain_idle.as_mut(), if called => {
                    called = state.expects_a_request();
                }
                () = silence.as_mut(), if patient => {
                    patient = false;
                    if state.was_asked() {
                        continue;
                    }
                    (wanted, called) = (false, false);
                }
            }
            if wanted {
                wanted = false;
                state.give_up();
                called = !state.is_two();
            }
            if called {
                drain_idle.as_mut().reset(Instant::now() + DRAIN_IDLE);
            } else {
                connection.work().graceful_shutdown();
            }
        }
        drop(self.open);
    }
}

/// After about `age`, so that what came together does not go together; never without one.
async fn after(age: Option<Duration>) {
    let Some(age) = age else {
        return std::future::pending().await;
    };
    let by_chance = u32::from(uuid::Uuid::new_v4().as_bytes()[0]) + 1;
    sleep(age - age / 10 * by_chance / 256).await;
}

/// The router with a count of its requests; it adds `connection: close` to answers while it drains.
#[derive(Clone)]
struct TrackRequests {
    router: Router,
    state: Arc<ConnState>,
    source: Option<Source>,
    standing: Standing,
    heads: Arc<ConnHeads>,
}

impl<B> tower_service::Service<Request<B>> for TrackRequests
where
    Router: tower_service::Service<Request<B>, Response = Response<axum::body::Body>>,
    <Router as tower_service::Service<Request<B>>>::Future: Send + 'static,
{
    type Response = <Router as tower_service::Service<Request<B>>>::Response;
    type Error = <Router as tower_service::Service<Request<B>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.router.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(source) = self.source {
            request.extensions_mut().insert(source);
        }
        let state = Arc::clone(&self.state);
        let is_two = request.version() == Version::HTTP_2;
        state.asked(is_two);
        let (taken, heads) = (self.standing.request(), Arc::clone(&self.heads));
        let on_its_way = heads.asked();
        let answer = self.standing.metered(self.router.call(request));
        answer
            .map(move |answer| {
                if let Ok(answer) = &answer
                    && taken.answered(answer.status(), answer.headers(), answer.extensions())
                {
                    heads.know();
                }
                drop(on_its_way);
                state.answered();
                answer.map(|mut answer| {
                    if !is_two && state.is_unwanted() {
                        let close = HeaderValue::from_static("close");
                        answer.headers_mut().insert(header::CONNECTION, close);
                    }
                    answer
                })
            })
            .boxed()
    }
}
