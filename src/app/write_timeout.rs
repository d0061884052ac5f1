//! A timeout of writes, for peers that do not read what they are sent.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use super::{conn_state::ConnState, heads::ConnHeads};

/// A connection whose writes fail when its peer reads nothing for `patience`.
#[derive(Debug)]
pub(super) struct WriteTimeout<I> {
    io: I,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    state: Arc<ConnState>,
    heads: Arc<ConnHeads>,
}

impl<I> WriteTimeout<I> {
    /// Wraps `io`; reads are noted in `state`, and fail where `heads` have no room.
    pub(super) fn new(
        io: I,
        patience: Duration,
        state: Arc<ConnState>,
        heads: Arc<ConnHeads>,
    ) -> Self {
        Self {
            io,
            patience,
            waiting: None,
            state,
            heads,
        }
    }

    /// Passes on what came of a write, unless nothing came of it for too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, came: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if came.is_ready() {
            self.waiting = None;
            return came;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        waiting.as_mut().reset(Instant::now() + patience);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WriteTimeout<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if let Some(new @ [_, ..]) = buffer.filled().get(before..) {
            self.state.heard(new);
            if !self.heads.have_room(new.len()) {
                return Poll::Ready(Err(io::Error::other(
                    "heads that are not whole take all memory there is for them",
                )));
            }
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, came)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.io).poll_flush(cx);
        self.judge(cx, came)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let came = Pin::new(&mut self.io).poll_shutdown(cx);
        self.judge(cx, came)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let came = Pin::new(&mut self.io).poll_write_vectored(cx, parts);
        self.judge(cx, came)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up_and_one_that_is_slow_is_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = WriteTimeout::new(
            near,
            Duration::from_secs(10),
            Arc::default(),
            Arc::default(),
        );
        near.write_all(b"1234").await.unwrap();
        let slow = tokio::spawn(async move {
            for _ in 0..3 {
                sleep(Duration::from_secs(9)).await;
                tokio::io::AsyncReadExt::read_u32(&mut far).await.unwrap();
            }
            far
        });
        near.write_all(b"12345678").await.unwrap();
        let far = slow.await.unwrap();
        near.write_all(b"1234").await.unwrap();
        let error = near.write_all(b"5").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
