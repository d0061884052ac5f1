//! The messages of a stream of encoded replies, one after the other.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};

use super::{
    answer::{Refusal, refused},
    call::split_message,
};

/// A stream of replies, with what was read of it and is no whole message yet.
pub(super) struct Replies {
    body: Body,
    read: BytesMut,
    is_over: bool,
}

impl Replies {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            read: BytesMut::new(),
            is_over: false,
        }
    }

    /// The next message; none after the last one, and after a refusal, which is how a stream ends that fails.
    pub(super) fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Refusal>> {
        loop {
            if self.is_over {
                return Poll::Ready(Ok(None));
            }
            if let Some(message) = split_message(&mut self.read) {
                return Poll::Ready(Ok(Some(message)));
            }
            let refusal = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.read.extend_from_slice(&data);
                        continue;
                    }
                    Err(frame) => frame.trailers_ref().map_or(Ok(()), refused).err(),
                },
                Some(Err(error)) => {
                    let why = format!("the stream broke off: {error}");
                    Some(Refusal::internal(why))
                }
                None => Some(Refusal::internal("the stream has no status")),
            };
            self.is_over = true;
            if let Some(refusal) = refusal {
                return Poll::Ready(Err(refusal));
            }
        }
    }

    /// Gives nothing more.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}
