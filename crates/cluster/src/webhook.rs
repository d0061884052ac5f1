//! Admission webhooks: AdmissionReviews over HTTPS, each path answered by a function. Certificates are read again when
//! their files change; connections and large reviews are bounded.

mod tls;

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{StreamExt, future::BoxFuture};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub use tls::Tls;

/// What answers a review: the bytes of an AdmissionReview become those of another, or are none.
pub type Answer = Arc<dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Most bytes of a review, which has the object before and after.
const LARGEST: usize = 8 << 20;

/// Bytes of a review that each connection may hold; of larger ones few are held at once.
const SMALL: usize = 64 << 10;

/// Most reviews of more than [`SMALL`] bytes that are held at once.
const LARGE_AT_ONCE: usize = 4;

/// Most connections; further ones wait until one ends.
const CONNECTIONS: usize = 256;

/// Time for a handshake, and for the head and the body of a review. An API server waits no longer than 30 seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves webhooks at their paths until `stop`; what follows a path after a `?` has no meaning.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<Tls>,
    webhooks: Vec<(&'static str, Answer)>,
    stop: CancellationToken,
) {
    let large = Arc::new(Semaphore::new(LARGE_AT_ONCE));
    let mut router = Router::new();
    for (path, answer) in webhooks {
        let state = (Arc::clone(&large), answer);
        router = router.merge(Router::new().route(path, post(review)).with_state(state));
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = accept(listener, &tls, router, &stop) => {}
        () = tls.follow() => {}
    }
}

/// Accepts connections, a bounded number at once.
async fn accept(listener: TcpListener, tls: &Arc<Tls>, router: Router, stop: &CancellationToken) {
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(open) = Arc::clone(&open).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // As when there are too many files; others close meanwhile.
                debug!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (tls, router, stop) = (Arc::clone(tls), router.clone(), stop.clone());
        tokio::spawn(async move {
            converse(stream, &tls, router, &stop).await;
            drop(open);
        });
    }
}

/// Secures a connection and answers one review on it.
async fn converse(stream: TcpStream, tls: &Tls, router: Router, stop: &CancellationToken) {
    let stream = match timeout(PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "handshake failed"),
        Err(_elapsed) => return debug!("handshake took too long"),
    };
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        // A connection that is closed while it is idle may lose the next review, which then counts as passed.
        .keep_alive(false);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(error, "a connection broke off");
    }
}

async fn review(
    State((large, answer)): State<(Arc<Semaphore>, Answer)>,
    request: Request<Body>,
) -> Response {
    let read = timeout(PATIENCE, read(request.into_body(), &large));
    let (body, _large) = match read.await {
        Ok(Ok(read)) => read,
        Ok(Err(why)) => return refusal(&why),
        Err(_elapsed) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    match answer(body).await {
        Ok(answer) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, answer).into_response()
        }
        Err(why) => refusal(&why),
    }
}

/// Reads a body. A large one waits for its turn.
async fn read(
    body: Body,
    large: &Semaphore,
) -> Result<(Vec<u8>, Option<SemaphorePermit<'_>>), String> {
    let mut turn = None;
    let mut read = Vec::new();
    let mut body = body.into_data_stream();
    while let Some(bytes) = body.next().await {
        read.extend_from_slice(&bytes.map_err(|error| error.to_string())?);
        if read.len() > LARGEST {
            return Err(format!("a review has more than {LARGEST} bytes"));
        }
        if read.len() > SMALL && turn.is_none() {
            let acquired = large.acquire().await;
            turn = Some(acquired.map_err(|error| error.to_string())?);
        }
    }
    Ok((read, turn))
}

fn refusal(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response()
}
