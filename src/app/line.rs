//! One connection, from the first byte to the last.
//!
//! A connection is given up so that its peer loses nothing: what was asked is answered, HTTP/2 is
//! told to go away, and HTTP/1.1, where nobody can be told before they ask, is given a while to ask
//! once more. Then the peer is let read what was sent before the socket is gone.

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
    gate::Source, lent, metrics::Open, patience::Patient, signs::Signs, throttle::Standing,
    tls::Tls,
};

/// How long a connection of HTTP/1.1 that is given up is silent before it is closed.
const LAST_CALL: Duration = Duration::from_millis(300);

/// What one connection needs.
pub(super) struct Line {
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
}

impl Line {
    /// Answers on `stream`, within TLS if there is any. Has the slot for as long.
    pub(super) async fn secured(
        self,
        stream: TcpStream,
        _slot: OwnedSemaphorePermit,
        tls: Option<Arc<Tls>>,
    ) {
        let source = stream.peer_addr().ok().map(|peer| Source(peer.ip()));
        let (stream, back) = lent::lend(stream);
        match tls {
            None => self.answer(stream, source).await,
            Some(tls) => {
                let late = async {
                    self.leave.cancelled().await;
                    sleep(LAST_CALL).await;
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
        lent::part(back).await;
    }

    /// Answers until the peer goes, and takes no more requests once all are given up, the
    /// connection is old, or nothing was asked on it in time. What was taken is answered.
    async fn answer(
        self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        source: Option<Source>,
    ) {
        let signs = Arc::new(Signs::default());
        let service = Noticing {
            router: self.router,
            signs: Arc::clone(&signs),
            source,
            standing: self.standing.clone(),
        };
        let io = TokioIo::new(Patient::new(io, self.patience, Arc::clone(&signs)));
        let connection = self
            .builder
            .serve_connection(io, TowerToHyperService::new(service));
        let mut connection = self.standing.metered(connection);
        let mut silence = std::pin::pin!(sleep(self.patience));
        let mut age = std::pin::pin!(after(self.age));
        let mut last_call = std::pin::pin!(sleep(LAST_CALL));
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
                () = last_call.as_mut(), if called => {
                    called = signs.expects_a_request();
                }
                () = silence.as_mut(), if patient => {
                    patient = false;
                    if signs.was_asked() {
                        continue;
                    }
                    (wanted, called) = (false, false);
                }
            }
            if wanted {
                wanted = false;
                signs.give_up();
                called = !signs.is_two();
            }
            if called {
                last_call.as_mut().reset(Instant::now() + LAST_CALL);
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

/// The router, which notices that it was asked, and says when it is not to be asked again.
#[derive(Clone)]
struct Noticing {
    router: Router,
    signs: Arc<Signs>,
    source: Option<Source>,
    standing: Standing,
}

impl<B> tower_service::Service<Request<B>> for Noticing
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
        let signs = Arc::clone(&self.signs);
        let is_two = request.version() == Version::HTTP_2;
        signs.asked(is_two);
        let taken = self.standing.request();
        let answer = self.standing.metered(self.router.call(request));
        answer
            .map(move |answer| {
                if let Ok(answer) = &answer {
                    taken.answered(answer.status(), answer.headers(), answer.extensions());
                }
                signs.answered();
                answer.map(|mut answer| {
                    if !is_two && signs.is_unwanted() {
                        let close = HeaderValue::from_static("close");
                        answer.headers_mut().insert(header::CONNECTION, close);
                    }
                    answer
                })
            })
            .boxed()
    }
}
