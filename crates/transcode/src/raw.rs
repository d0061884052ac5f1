//! Streams of `google.api.HttpBody` as the body of an answer, byte for byte. One that fails after it began is
//! broken off, so that what came is not taken for all of it.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderValue, Response, header},
};
use bytes::Bytes;
use hindsight_proto::{Message as _, api};
use http_body::Frame;

use super::{answer::Refusal, replies::Replies, routes::Route};

/// The message whose data is the body.
const MESSAGE: &str = "google.api.HttpBody";
/// What a body is that does not say it.
const UNKNOWN: &str = "application/octet-stream";

/// Whether the replies of a route are a body as they are.
pub(super) fn is_raw(route: &Route) -> bool {
    route.method.output().full_name() == MESSAGE
}

/// The answer that a stream of encoded replies is. It is refused if the stream fails before its first message.
pub(super) async fn answer(replies: Body) -> Result<Response<Body>, Refusal> {
    let mut raw = Raw {
        replies: Replies::new(replies),
        first: None,
    };
    let first = poll_fn(|cx| raw.poll_body(cx)).await?;
    let first = first.unwrap_or_default();
    let kind = HeaderValue::from_str(&first.content_type).ok();
    let kind = kind.filter(|kind| !kind.is_empty());
    raw.first = Some(first.data);
    let mut response = Response::new(Body::new(raw));
    let headers = response.headers_mut();
    let unknown = HeaderValue::from_static(UNKNOWN);
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(unknown));
    // A browser must not make a page of what programs wrote.
    let plain = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, plain);
    Ok(response)
}

/// The body of an answer.
struct Raw {
    replies: Replies,
    first: Option<Bytes>,
}

impl Raw {
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<api::HttpBody>, Refusal>> {
        let Some(message) = ready!(self.replies.poll_message(cx))? else {
            return Poll::Ready(Ok(None));
        };
        let body = api::HttpBody::decode(message);
        Poll::Ready(body.map(Some).map_err(|error| {
            self.replies.end();
            Refusal::internal(format!("a reply is no body: {error}"))
        }))
    }
}

impl HttpBody for Raw {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        Poll::Ready(match ready!(self.poll_body(cx)) {
            Ok(Some(body)) => Some(Ok(Frame::data(body.data))),
            Ok(None) => None,
            Err(refusal) => Some(Err(axum::Error::new(std::io::Error::other(
                refusal.message,
            )))),
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    fn frame(data: &'static [u8]) -> Vec<u8> {
        let message = api::HttpBody {
            content_type: "text/plain".to_owned(),
            data: data.into(),
            extensions: Vec::new(),
        };
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], &message].concat()
    }

    /// Replies of these parts that end with a status.
    fn replies(parts: &[&'static [u8]], status: &'static str) -> Body {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| frame(part)).collect();
        let trailers = async move {
            let status = ("grpc-status".parse().unwrap(), status.parse().unwrap());
            Some(Ok([status].into_iter().collect()))
        };
        Body::new(Full::new(Bytes::from(bytes)).with_trailers(trailers))
    }

    #[tokio::test]
    async fn bytes_come_as_they_are_with_nothing_between_parts() {
        let answer = answer(replies(&[b"a\xff", b"", b"\0b"], "0"))
            .await
            .unwrap();
        assert_eq!(answer.headers()["content-type"], "text/plain");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&*body, b"a\xff\0b");
    }

    #[tokio::test]
    async fn a_stream_that_fails_is_no_whole_answer() {
        let refused = answer(replies(&[], "5")).await.unwrap_err();
        assert_eq!(refused.code, 5);
        let begun = answer(replies(&[b"a"], "13")).await.unwrap();
        assert!(begun.into_body().collect().await.is_err());
    }
}
