//! A socket that lingers: after its last write it is closed only when its peer has read everything.
//!
//! A socket that is closed while bytes of the peer are on their way resets the connection, and the
//! peer loses what it has not read yet.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::oneshot,
    time::timeout,
};

/// How long a peer may take to close its end.
const LINGER: Duration = Duration::from_secs(1);

/// A socket that is sent to its [`Returned`] when it is dropped after a shutdown.
#[derive(Debug)]
pub(super) struct LingeringSocket {
    stream: Option<TcpStream>,
    back: Option<oneshot::Sender<TcpStream>>,
    /// Whether the peer was told that nothing more comes.
    ended: bool,
}

/// Receives the socket for its linger.
pub(super) type Returned = oneshot::Receiver<TcpStream>;

/// Lends `stream` for as long as the first is held; it is returned if its shutdown was complete.
pub(super) fn lend(stream: TcpStream) -> (LingeringSocket, Returned) {
    let (back, comes) = oneshot::channel();
    let socket = LingeringSocket {
        stream: Some(stream),
        back: Some(back),
        ended: false,
    };
    (socket, comes)
}

/// Waits, for at most [`LINGER`], until the peer has read all and closes too.
pub(super) async fn linger(back: Returned) {
    let Ok(mut stream) = back.await else { return };
    let unheard = async {
        let mut bytes = [0; 1024];
        while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
    };
    if timeout(LINGER, unheard).await.is_err() {
        tracing::debug!("a peer did not close its end of a connection");
    }
}

impl LingeringSocket {
    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.stream.as_mut().expect("it is there until the drop"))
    }
}

impl Drop for LingeringSocket {
    fn drop(&mut self) {
        if let (true, Some(stream), Some(back)) = (self.ended, self.stream.take(), self.back.take())
        {
            // Without a receiver it is closed.
            drop(back.send(stream));
        }
    }
}

impl AsyncRead for LingeringSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl AsyncWrite for LingeringSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = self.stream().poll_shutdown(cx);
        self.ended |= matches!(ended, Poll::Ready(Ok(())));
        ended
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(TcpStream::is_write_vectored)
    }
}
