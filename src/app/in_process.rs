//! A transport for what runs in the same process: connections that never leave it. Requests are
//! answered as on the port; only TLS, slots and the age of connections have no meaning here.

use std::{
    future::{Ready, ready},
    io,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, http::Uri};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::transport::{Channel, Endpoint};

/// What is on its way in each direction at most.
const ON_THE_WAY: usize = 256 << 10;
/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Connections within the process, which the server accepts like those of its port.
#[derive(Debug)]
pub(super) struct InProcessTransport {
    outer: UnboundedSender<DuplexStream>,
    inner: UnboundedReceiver<DuplexStream>,
}

impl InProcessTransport {
    pub(super) fn new() -> Self {
        let (outer, inner) = unbounded_channel();
        Self { outer, inner }
    }

    /// A channel over this transport; connects when it is first used. Needs a runtime.
    pub(super) fn channel(&self) -> Channel {
        let outer = self.outer.clone();
        Endpoint::from_static("http://inside")
            .timeout(DEADLINE)
            .connect_with_connector_lazy(Connector { outer })
    }

    /// Answers with `router` until `stop`, then until the last request that was taken is answered.
    pub(super) async fn serve(
        self,
        router: Router,
        builder: auto::Builder<TokioExecutor>,
        stop: CancellationToken,
    ) {
        let mut inner = self.inner;
        let open = TaskTracker::new();
        loop {
            let end = tokio::select! {
                () = stop.cancelled() => break,
                // Not all senders are gone: one is in `self`.
                Some(end) = inner.recv() => end,
            };
            open.spawn(answer(end, router.clone(), builder.clone(), stop.clone()));
        }
        open.close();
        open.wait().await;
    }
}

async fn answer(
    end: DuplexStream,
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    stop: CancellationToken,
) {
    let service = TowerToHyperService::new(router);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(end), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection within the process broke off");
    }
}

/// Makes connections by handing one end of each to the server.
#[derive(Debug)]
struct Connector {
    outer: UnboundedSender<DuplexStream>,
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _address: Uri) -> Self::Future {
        let (ours, theirs) = duplex(ON_THE_WAY);
        let sent = self.outer.send(theirs);
        let gone = || io::Error::new(io::ErrorKind::ConnectionRefused, "the server has stopped");
        ready(sent.map(|()| TokioIo::new(ours)).map_err(|_theirs| gone()))
    }
}
