//! A socket that comes back from whoever used it, to be closed only when its peer has read all.
//!
//! To close a socket while bytes of the peer are on their way tells the peer that the connection
//! was reset, and what it has not read yet is lost.

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

/// How long a peer may take to notice that all was said.
const PARTING: Duration = Duration::from_secs(1);

/// The socket while it is used.
#[derive(Debug)]
pub(super) struct Lent {
    stream: Option<TcpStream>,
    back: Option<oneshot::Sender<TcpStream>>,
    /// Whether the peer was told that nothing more comes.
    ended: bool,
}

/// Where it comes back to.
pub(super) type Back = oneshot::Receiver<TcpStream>;

/// Gives `stream` away for as long as the first is held; it comes back if all was written.
pub(super) fn lend(stream: TcpStream) -> (Lent, Back) {
    let (back, comes) = oneshot::channel();
    let lent = Lent {
        stream: Some(stream),
        back: Some(back),
        ended: false,
    };
    (lent, comes)
}

/// Waits, for a while, until the peer has read all and closes too.
pub(super) async fn part(back: Back) {
    let Ok(mut stream) = back.await else { return };
    let unheard = async {
        let mut bytes = [0; 1024];
        while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
    };
    if timeout(PARTING, unheard).await.is_err() {
        tracing::debug!("a peer did not close its end of a connection");
    }
}

impl Lent {
    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(self.stream.as_mut().expect("it is there until the drop"))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (true, Some(stream), Some(back)) = (self.ended, self.stream.take(), self.back.take())
        {
            // Where nobody waits for it, it is closed.
            drop(back.send(stream));
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Lent {
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
