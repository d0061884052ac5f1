//! Sockets.

use std::net::SocketAddr;

use futures::{Stream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;

use super::Error;

/// Takes `address`, which the flag `flag` sets.
pub(super) async fn bind(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen {
            address,
            flag,
            source,
        })
}

/// Connections as they come. A connection that cannot be accepted (its peer is gone, or no file
/// descriptor is left) is logged and does not end the server.
pub(super) fn accept(listener: TcpListenerStream) -> impl Stream<Item = TcpStream> {
    listener.filter_map(|connection| async move {
        match connection {
            Ok(stream) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection keeps its delay");
                }
                Some(stream)
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                None
            }
        }
    })
}
