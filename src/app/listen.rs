//! Sockets.

use std::{net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpStream};

use super::Error;
use crate::config::Config;

/// Takes `address`, which the flag `flag` sets, and tells the one that was taken.
pub(super) async fn bind(
    address: SocketAddr,
    flag: &'static str,
) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen {
            address,
            flag,
            source,
        })?;
    let taken = listener.local_addr().unwrap_or(address);
    Ok((listener, taken))
}

/// The same for pages of operators, unless they are off.
pub(super) async fn admin(config: &Config) -> Result<Option<(TcpListener, SocketAddr)>, Error> {
    match config.metrics_listen {
        Some(address) => Ok(Some(bind(address, "metrics-listen").await?)),
        None => Ok(None),
    }
}

/// Connections as they come. A connection that cannot be accepted (its peer is gone, or no file
/// descriptor is left) is logged and does not end the server.
#[derive(Debug)]
pub(super) struct Listener(pub(super) TcpListener);

impl Listener {
    pub(super) async fn next(&self) -> TcpStream {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => return prompt(stream),
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Takes none any more, and answers those that the system has taken already: to close the
    /// socket would reset them.
    pub(super) fn rest(self) -> Vec<TcpStream> {
        let mut taken = Vec::new();
        // Asked of the system itself: what the runtime knows may be a moment old.
        let Ok(listener) = self.0.into_std() else {
            return taken;
        };
        while let Ok((stream, _)) = listener.accept() {
            let stream = stream
                .set_nonblocking(true)
                .and_then(|()| TcpStream::from_std(stream));
            match stream {
                Ok(stream) => taken.push(prompt(stream)),
                Err(error) => tracing::warn!(%error, "connection not accepted"),
            }
        }
        taken
    }
}

fn prompt(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    stream
}
