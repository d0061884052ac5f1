//! The validating webhook: AdmissionReviews over HTTPS, answered by what the crate `workflow` says.

mod tls;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::Listener,
};
use hindsight_run::json;
use hindsight_workflow::admission::review;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub(crate) use tls::Tls;

/// Path of the webhook; what follows it after a `?` has no meaning.
const PATH: &str = "/validate";

/// Most bytes of a review, which has the object before and after.
const LARGEST: usize = 8 << 20;

/// Most reviews that are read at once.
const AT_ONCE: usize = 8;

/// Most connections that are being secured.
const HANDSHAKES: usize = 64;

/// Time for a handshake, and for the body of a review. An API server waits no longer than 30 seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that are secure.
struct Secured {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    addr: SocketAddr,
}

impl Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // Those who accept have ended, and so does the server.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }
}

/// Serves the webhook until `stop`; certificates are read again when their files change.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<Tls>,
    stop: CancellationToken,
) -> io::Result<()> {
    let addr = listener.local_addr()?;
    let (secured, connections) = mpsc::channel(HANDSHAKES);
    let accepting = accept(listener, Arc::clone(&tls), secured);
    let router = Router::new()
        .route(PATH, post(answer))
        .with_state(Arc::new(Semaphore::new(AT_ONCE)));
    let serving = axum::serve(Secured { connections, addr }, router);
    tokio::select! {
        served = serving.with_graceful_shutdown(stop.clone().cancelled_owned()) => served,
        () = accepting => Ok(()),
        () = tls.follow() => Ok(()),
    }
}

/// Accepts and secures connections, a bounded number at once.
async fn accept(
    listener: TcpListener,
    tls: Arc<Tls>,
    secured: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let Ok(turn) = Arc::clone(&handshakes).acquire_owned().await else {
            return;
        };
        let (stream, addr) = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                // As when there are too many files; others close meanwhile.
                debug!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (tls, secured) = (Arc::clone(&tls), secured.clone());
        tokio::spawn(async move {
            match timeout(PATIENCE, tls.accept(stream)).await {
                Ok(Ok(stream)) => drop(secured.send((stream, addr)).await),
                Ok(Err(error)) => debug!(%error, "handshake failed"),
                Err(_elapsed) => debug!("handshake took too long"),
            }
            drop(turn);
        });
    }
}

async fn answer(State(turns): State<Arc<Semaphore>>, request: Request<Body>) -> Response {
    let Ok(_turn) = turns.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let body = match timeout(PATIENCE, to_bytes(request.into_body(), LARGEST)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return refusal(&error.to_string()),
        Err(_elapsed) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let asked = json::parse(&body).map_err(|error| error.to_string());
    match asked.and_then(|asked| review(&asked)) {
        Ok(answer) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, answer.to_string()).into_response()
        }
        Err(why) => refusal(&why),
    }
}

fn refusal(why: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response()
}
