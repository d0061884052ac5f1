//! Streams of replies as server-sent events, in the form of the HTML standard: one event for a message,
//! whose `data` is the message in JSON and whose `id` is its field `cursor`. A stream that fails ends
//! with an event `error` that has the refusal as its data.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, HeaderValue, Response, header},
};
use bytes::Bytes;
use http_body::Frame;

use super::{answer::Refusal, json_of, replies::Replies, routes::Route, wire};

pub(super) const CONTENT_TYPE: &str = "text/event-stream";
/// The field that says from where a stream goes on, in requests and in replies.
const CURSOR: &str = "cursor";
/// The header that stands for it.
const LAST_EVENT_ID: &str = "last-event-id";
/// How long a browser waits before it connects again, in milliseconds.
const RETRY: &str = "retry: 2000\n\n";

/// Goes on after the last event that a client says it had, whatever its address says.
pub(super) fn resume(
    headers: &HeaderMap,
    query: &mut Vec<(String, String)>,
) -> Result<(), Refusal> {
    let Some(last) = headers.get(LAST_EVENT_ID).filter(|last| !last.is_empty()) else {
        return Ok(());
    };
    let last = last
        .to_str()
        .map_err(|_odd| Refusal::invalid("Last-Event-ID: is no cursor"))?;
    query.retain(|(key, _)| key != CURSOR);
    query.push((CURSOR.to_owned(), last.to_owned()));
    Ok(())
}

/// The events of a stream of encoded replies.
pub(super) fn answer(route: Route, replies: Body) -> Response<Body> {
    let mut response = Response::new(Body::new(Events {
        route,
        replies: Replies::new(replies),
        begins: true,
    }));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static(CONTENT_TYPE);
    headers.insert(header::CONTENT_TYPE, kind);
    let fresh = HeaderValue::from_static("no-cache, no-transform");
    headers.insert(header::CACHE_CONTROL, fresh);
    response
}

/// The body of an answer.
struct Events {
    route: Route,
    replies: Replies,
    begins: bool,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if std::mem::take(&mut self.begins) {
            return given(RETRY);
        }
        let event = match ready!(self.replies.poll_message(cx)) {
            Ok(Some(message)) => event(&self.route, &message),
            Ok(None) => return Poll::Ready(None),
            Err(refusal) => Err(refusal),
        };
        given(event.unwrap_or_else(|refusal| {
            self.replies.end();
            failed(&refusal)
        }))
    }
}

fn given(text: impl Into<Bytes>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
    Poll::Ready(Some(Ok(Frame::data(text.into()))))
}

/// The event of a message. JSON has no line breaks, and a cursor with one is left out.
fn event(route: &Route, message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut event = Vec::new();
    if let Some(cursor) = cursor(route, message)
        && !cursor.contains(['\n', '\r', '\0'])
    {
        event.extend_from_slice(b"id: ");
        event.extend_from_slice(cursor.as_bytes());
        event.push(b'\n');
    }
    event.extend_from_slice(b"data: ");
    event.extend(json_of(route, message)?);
    event.extend_from_slice(b"\n\n");
    Ok(event)
}

/// The field of a reply that says from where the stream goes on, if the reply has one.
fn cursor<'a>(route: &Route, message: &'a [u8]) -> Option<&'a str> {
    let number = route.method.output().get_field_by_name(CURSOR)?.number();
    let fields = wire::fields(message).ok()?;
    let mut cursors = fields.iter().filter(|(field, _)| *field == number);
    cursors.next_back()?.1.text().ok()
}

/// The last event of a stream that fails.
fn failed(refusal: &Refusal) -> Vec<u8> {
    let mut event = b"event: error\ndata: ".to_vec();
    event.extend(refusal.body());
    event.extend_from_slice(b"\n\n");
    event
}

#[cfg(test)]
mod tests {
    use hindsight_proto::{
        FILE_DESCRIPTOR_SET, Message as _,
        v1::{RunEvent, RunRow, run_event::Kind},
    };
    use http_body_util::{BodyExt as _, Full};
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::routes::Routes;

    fn framed(event: &RunEvent) -> Vec<u8> {
        let message = event.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap();
        [&[0][..], &length.to_be_bytes(), &message].concat()
    }

    async fn events(replies: Vec<u8>, status: &'static str) -> String {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let routes = Routes::read(&pool).unwrap();
        let route = routes
            .all()
            .iter()
            .find(|route| route.method.name() == "WatchRuns");
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(status));
        // Messages come in any parts.
        let parts = replies
            .chunks(7)
            .map(|part| Ok(Frame::data(Bytes::copy_from_slice(part))));
        let parts: Vec<Result<_, axum::Error>> = parts.collect();
        let mut body = Body::new(Full::new(Bytes::new()));
        for part in parts.into_iter().rev() {
            let data = part.unwrap().into_data().unwrap();
            body = Body::new(Before(Some(data), body));
        }
        let body = body.with_trailers(async move { Some(Ok(trailers)) });
        let response = answer(route.unwrap().clone(), Body::new(body));
        assert_eq!(response.headers()["content-type"], CONTENT_TYPE);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// A part before others.
    struct Before(Option<Bytes>, Body);

    impl HttpBody for Before {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            match self.0.take() {
                Some(part) => given(part),
                None => Pin::new(&mut self.1).poll_frame(cx),
            }
        }
    }

    #[tokio::test]
    async fn a_message_is_an_event_whatever_its_texts_are() {
        let hostile = "a\n\ndata: {}\r\nevent: x\u{1b}[31m\u{2028}".to_owned();
        let run = RunRow {
            name: hostile,
            ..RunRow::default()
        };
        let change = RunEvent {
            kind: Kind::Changed.into(),
            run: Some(run),
            cursor: "1.AA".to_owned(),
        };
        let bookmark = RunEvent {
            kind: Kind::Bookmark.into(),
            run: None,
            cursor: "1.AB\nid: forged".to_owned(),
        };
        let replies = [framed(&change), framed(&bookmark)].concat();
        let text = events(replies, "0").await;
        let parts: Vec<_> = text.split("\n\n").collect();
        assert_eq!(parts.len(), 4, "{text}");
        assert_eq!(parts[0], "retry: 2000");
        let data = parts[1].strip_prefix("id: 1.AA\ndata: {\"kind\":\"CHANGED\",");
        assert!(
            data.is_some_and(|data| !data.contains(['\n', '\r'])),
            "{text}"
        );
        assert!(
            parts[2].starts_with("data: {\"kind\":\"BOOKMARK\""),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_stream_that_fails_says_why() {
        let text = events(Vec::new(), "7").await;
        assert!(text.contains("event: error\ndata: {\"code\":7,"), "{text}");
    }
}
