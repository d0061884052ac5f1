//! The one port: HTTP/1.1 and HTTP/2 on every connection, gRPC and everything else told apart
//! by what they say they are.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, header},
};
use futures::{Stream, StreamExt as _};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::tls::Tls;

/// After how much silence a connection is asked whether anybody is there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// How many requests one HTTP/2 connection may have open.
const STREAMS: u32 = 1000;

/// Sends gRPC calls to `grpc` and everything else to `http`.
pub(super) fn front(grpc: Router, http: Router) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let mut door = if is_grpc(&request) {
            grpc.clone()
        } else {
            http.clone()
        };
        async move {
            let Ok(response) = door.call(request).await;
            response
        }
    })
}

fn is_grpc(request: &Request<Body>) -> bool {
    request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Answers connections with `router` until `stop`, then until the last request that was taken
/// is answered. No connection is taken after `stop`. With `tls` no other speech is understood.
pub(super) async fn serve(
    connections: impl Stream<Item = TcpStream>,
    router: Router,
    tls: Option<Arc<Tls>>,
    stop: CancellationToken,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .max_concurrent_streams(STREAMS);
    let open = GracefulShutdown::new();
    {
        let mut connections = std::pin::pin!(connections);
        loop {
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
                open: open.watcher(),
            };
            let Some(tls) = tls.clone() else {
                tokio::spawn(line.answer(stream));
                continue;
            };
            let stop = stop.clone();
            tokio::spawn(async move {
                let secured = tokio::select! {
                    // Nothing was asked yet, so nothing is lost.
                    () = stop.cancelled() => return,
                    secured = tls.accept(stream) => secured,
                };
                match secured {
                    Ok(stream) => line.answer(stream).await,
                    Err(error) => tracing::debug!(%error, "a connection was not secured"),
                }
            });
        }
    }
    open.shutdown().await;
}

/// What one connection needs.
struct Line {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    open: Watcher,
}

impl Line {
    async fn answer(self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = TowerToHyperService::new(self.router);
        let connection = self
            .builder
            .serve_connection(TokioIo::new(io), service)
            .into_owned();
        if let Err(error) = self.open.watch(connection).await {
            tracing::debug!(error, "a connection broke off");
        }
    }
}
