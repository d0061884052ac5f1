//! Bodies of answers: they are sent in small parts, and dropped with all that they hold when the peer
//! reads nothing for too long.
//!
//! HTTP/2 takes whatever a body gives it and keeps it until the peer grants a window, and asks
//! for no more meanwhile. So a body that was asked for everything may still be in memory whole, and one
//! that waits is never called. Hence the small parts, which are copies, and the watch beside it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

/// The largest part, which is also what a frame of HTTP/2 has.
const PART: usize = 16 << 10;

/// An answer that is dropped when its peer takes nothing of it for `patience`. `held` is dropped
/// with it.
pub(super) fn with_timeout(body: Body, held: impl Send + 'static, patience: Duration) -> Body {
    if HttpBody::is_end_stream(&body) {
        return body;
    }
    Body::new(TimedBody {
        shared: Arc::new(Mutex::new(Some(Pending {
            body,
            left: Bytes::new(),
            given: None,
            _held: Box::new(held),
        }))),
        patience,
        watch: None,
    })
}

struct TimedBody {
    /// Nothing, once it was dropped.
    shared: Arc<Mutex<Option<Pending>>>,
    patience: Duration,
    watch: Option<AbortOnDropHandle<()>>,
}

struct Pending {
    body: Body,
    /// Bytes of the body that are not sent yet.
    left: Bytes,
    /// When a part was sent that the peer may not have read.
    given: Option<Instant>,
    _held: Box<dyn Send>,
}

fn locked(shared: &Mutex<Option<Pending>>) -> MutexGuard<'_, Option<Pending>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.given = None;
        while self.left.is_empty() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.left = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let part = self.left.split_to(PART.min(self.left.len()));
        self.given = Some(Instant::now());
        // A slice would keep the whole alive for as long as the peer likes.
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&part)))))
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = match &mut *locked(&self.shared) {
            Some(pending) => pending.poll(cx),
            None => Poll::Ready(Some(Err(axum::Error::new(
                "nothing of the answer was taken within client_timeout",
            )))),
        };
        if self.watch.is_none() && matches!(polled, Poll::Ready(Some(Ok(_)))) {
            let watch = watch(Arc::downgrade(&self.shared), self.patience);
            self.watch = Some(AbortOnDropHandle::new(tokio::spawn(watch)));
        }
        polled
    }

    /// Never before the last part was asked for beyond: until then it may not be taken.
    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        let Some(pending) = &*locked(&self.shared) else {
            return SizeHint::default();
        };
        let (hint, left) = (
            HttpBody::size_hint(&pending.body),
            pending.left.len() as u64,
        );
        let mut all = SizeHint::new();
        all.set_lower(hint.lower() + left);
        if let Some(upper) = hint.upper() {
            all.set_upper(upper + left);
        }
        all
    }
}

/// Drops what is pending once the peer has taken nothing of it for `patience`.
async fn watch(shared: Weak<Mutex<Option<Pending>>>, patience: Duration) {
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let since = match &*locked(&shared) {
            None => return,
            // Nothing waits for the peer.
            Some(pending) => pending.given.unwrap_or_else(Instant::now),
        };
        if since.elapsed() >= patience {
            let dropped = locked(&shared).take();
            tracing::debug!(?patience, "nothing of an answer was taken; it was dropped");
            drop(dropped);
            return;
        }
        // What is answered meanwhile is gone at once.
        drop(shared);
        sleep_until(since + patience).await;
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_which_nothing_is_taken_is_dropped_with_what_it_holds() {
        let held = Arc::new(());
        let whole = Body::from(vec![7; 5 * PART]);
        let mut body = with_timeout(whole, Arc::clone(&held), PATIENCE);
        for _ in 0..3 {
            let part = body.frame().await.unwrap().unwrap();
            assert_eq!(part.data_ref().unwrap().len(), PART);
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            assert_eq!(Arc::strong_count(&held), 2, "it is slow, and goes on");
        }
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(Arc::strong_count(&held), 1);
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("client_timeout"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_has_nothing_to_say_for_long_is_kept() {
        let (say, said) = tokio::sync::mpsc::channel(1);
        let said = tokio_stream::wrappers::ReceiverStream::new(said);
        let held = Arc::new(());
        let mut body = with_timeout(Body::from_stream(said), Arc::clone(&held), PATIENCE);
        say.send(Ok::<_, axum::Error>("a")).await.unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        let waits = tokio::spawn(async move {
            let next = body.frame().await.unwrap().unwrap();
            (next, body)
        });
        tokio::time::sleep(PATIENCE * 5).await;
        say.send(Ok("b")).await.unwrap();
        let (next, body) = waits.await.unwrap();
        assert_eq!(next.data_ref().unwrap(), "b");
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn parts_and_trailers_come_as_they_are_and_the_length_is_known() {
        let mut trailers = axum::http::HeaderMap::new();
        trailers.insert("grpc-status", axum::http::HeaderValue::from_static("0"));
        let text = "x".repeat(PART + 1);
        let whole = Full::new(Bytes::from(text.clone()));
        let after = trailers.clone();
        let whole = whole.with_trailers(async move { Some(Ok(after)) });
        let body = with_timeout(Body::new(whole), (), PATIENCE);
        let came = body.collect().await.unwrap();
        assert_eq!(came.trailers(), Some(&trailers));
        assert_eq!(came.to_bytes(), text);
        let body = with_timeout(Body::from(text.clone()), (), PATIENCE);
        assert_eq!(HttpBody::size_hint(&body).exact(), Some(text.len() as u64));
    }
}
