//! The answers of the server as HTTP.

use std::{convert::Infallible, io};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

use crate::{kinds::Kind, objects::Stored, refusal::Refusal};

/// The body of an answer; a watch's goes on for as long as the watch.
pub type SimBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) type Answer = Response<SimBody>;

pub(crate) fn success(kind: &Kind, gone: &Stored) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": gone.key.name, "group": kind.group, "kind": kind.plural, "uid": gone.uid},
    })
}

pub(crate) fn refused(refusal: &Refusal) -> Answer {
    let status = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = match refusal.reason {
        // Priority and fairness, and not the API, refuses these.
        "TooManyRequests" => text(status, "Too many requests, please try again later.\n"),
        _ => json(status, &refusal.status()),
    };
    if let Some(seconds) = refusal.retry_after {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

pub(crate) fn page_not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(crate) fn text(status: StatusCode, body: &'static str) -> Answer {
    answer_with(status, "text/plain; charset=utf-8", body)
}

pub(crate) fn json(status: StatusCode, value: &Value) -> Answer {
    answer_with(status, "application/json", value.to_string())
}

pub(crate) fn json_bytes(status: StatusCode, body: Vec<u8>) -> Answer {
    answer_with(status, "application/json", body)
}

pub(crate) fn answer_with(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Answer {
    let body = Full::new(body.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    response(status, kind, body)
}

pub(crate) fn response(status: StatusCode, kind: &'static str, body: SimBody) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    answer
}
