//! HTTP answers: a reply or a refusal in JSON, compressed when the client takes that.

use std::{io::Write as _, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use hindsight_proto::{Message as _, rpc};
use hindsight_runtime::error::{ErrorKind, http_status};

/// Answers below this gain nothing by compression.
const SMALL: usize = 1 << 10;

/// How it is said that a message is too large, in either direction.
const TOO_LARGE: [&str; 3] = [
    "too large: ",
    "Error, decoded message length too large",
    "Error, encoded message length too large",
];

/// Why a request gets no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) http: u16,
    /// Number of the gRPC code.
    pub(super) code: i32,
    pub(super) message: String,
    /// The code and the bare reason, where clients look for it.
    pub(super) reason: Option<(i32, String)>,
    /// When it may be tried again.
    pub(super) retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<[Reason<'a>; 1]>,
}

/// A message of google.rpc.Status among the details of another one.
#[derive(Serialize)]
struct Reason<'a> {
    #[serde(rename = "@type")]
    kind: &'static str,
    code: i32,
    message: &'a str,
}

/// What a reason is among the details of a status.
const REASON: &str = "type.googleapis.com/google.rpc.Status";

/// The reason among the details of a status.
fn reason(details: &[u8]) -> Option<(i32, String)> {
    let details = rpc::Status::decode(details).ok()?.details;
    let reason = details
        .into_iter()
        .find(|detail| detail.type_url == REASON)?;
    let reason = rpc::Status::decode(&*reason.value).ok()?;
    Some((reason.code, reason.message))
}

impl Refusal {
    fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            http: kind.http_status(),
            code: kind.grpc_code(),
            message: message.into(),
            reason: None,
            retry_after: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Invalid, message)
    }

    pub(super) fn denied(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Denied, message)
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Unsupported, message)
    }

    /// A body in a form that is not read.
    pub(super) fn unsupported_media(message: impl Into<String>) -> Self {
        Self {
            http: StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16(),
            ..Self::of(ErrorKind::Invalid, message)
        }
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Internal, message)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::of(
            ErrorKind::TooLarge,
            format!(
                "the request is larger than the {limit} bytes that this server takes as a message"
            ),
        )
    }

    /// The words that clients of Tekton Results know.
    pub(super) fn unknown_path() -> Self {
        Self::of(ErrorKind::Missing, "Not Found")
    }

    /// The words that clients of Tekton Results know.
    pub(super) fn wrong_verb() -> Self {
        Self::of(ErrorKind::Unsupported, "Method Not Allowed")
    }

    /// What is told of it, in JSON.
    pub(super) fn body(&self) -> Vec<u8> {
        let told = ErrorBody {
            code: self.code,
            message: &self.message,
            details: self.reason.as_ref().map(|(code, message)| {
                [Reason {
                    kind: REASON,
                    code: *code,
                    message,
                }]
            }),
        };
        serde_json::to_vec(&told).expect("a number and a text are JSON")
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = json(self.body());
        *response.status_mut() =
            StatusCode::from_u16(self.http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if response.status() == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        if let Some(after) = self.retry_after {
            // Whole seconds, and not too few.
            let seconds = after.as_millis().div_ceil(1000).max(1);
            let seconds = HeaderValue::from_str(&seconds.to_string());
            let seconds = seconds.expect("digits are a header value");
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let code = status.code();
        let retry = status.get_details_retry_info();
        Self {
            retry_after: retry.and_then(|retry| retry.retry_delay),
            reason: reason(status.details()),
            // What is too large is told apart from what may be tried again.
            http: match TOO_LARGE
                .iter()
                .any(|large| status.message().starts_with(large))
            {
                true => ErrorKind::TooLarge.http_status(),
                false => http_status(code as i32),
            },
            code: code as i32,
            message: match status.message() {
                "" => code.description().to_owned(),
                message => message.to_owned(),
            },
        }
    }
}

/// What a status is here: nothing, if it is OK.
pub(super) fn refused(headers: &HeaderMap) -> Result<(), Refusal> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status.into()),
        _ => Ok(()),
    }
}

pub(super) fn json(body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Whether the client takes gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let named = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("gzip") || name == "*");
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            named && weight.is_none_or(|q| q.parse().is_ok_and(|q: f32| q > 0.0))
        })
}

/// A JSON answer to a client that takes gzip if `gzip`.
pub(super) fn packed(body: Vec<u8>, gzip: bool) -> Response<Body> {
    let mut response = match gzip && body.len() >= SMALL {
        true => {
            let mut response = json(compressed(&body));
            let coding = HeaderValue::from_static("gzip");
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, coding);
            response
        }
        false => json(body),
    };
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().insert(header::VARY, vary);
    response
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder
        .write_all(body)
        .and_then(|()| encoder.finish())
        .expect("memory takes what is written to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_http_status_that_gateways_give_it() {
        let cases = [
            (Code::Cancelled, 499),
            (Code::Unknown, 500),
            (Code::InvalidArgument, 400),
            (Code::DeadlineExceeded, 504),
            (Code::NotFound, 404),
            (Code::AlreadyExists, 409),
            (Code::PermissionDenied, 403),
            (Code::ResourceExhausted, 429),
            (Code::FailedPrecondition, 400),
            (Code::Aborted, 409),
            (Code::OutOfRange, 410),
            (Code::Unimplemented, 501),
            (Code::Internal, 500),
            (Code::Unavailable, 503),
            (Code::DataLoss, 500),
            (Code::Unauthenticated, 401),
        ];
        for (code, http) in cases {
            let response = Refusal::from(Status::new(code, "why")).into_response();
            assert_eq!(response.status().as_u16(), http, "{code:?}");
            let asks = response.headers().contains_key(header::WWW_AUTHENTICATE);
            assert_eq!(asks, http == 401, "{code:?}");
        }
        assert_eq!(Refusal::too_large(5).into_response().status(), 413);
    }

    #[test]
    fn a_reason_among_the_details_of_a_status_is_in_the_body() {
        let reason = rpc::Status {
            code: 3,
            message: "name is required".to_owned(),
            details: Vec::new(),
        };
        let status = rpc::Status {
            details: vec![prost_types::Any {
                type_url: REASON.to_owned(),
                value: reason.encode_to_vec(),
            }],
            ..rpc::Status::default()
        };
        let details = status.encode_to_vec().into();
        let refusal =
            Status::with_details(Code::InvalidArgument, "Failed: name is required", details);
        let body = String::from_utf8(Refusal::from(refusal).body()).unwrap();
        assert_eq!(
            body,
            r#"{"code":3,"message":"Failed: name is required","details":[{"@type":"type.googleapis.com/google.rpc.Status","code":3,"message":"name is required"}]}"#
        );
        let without = Refusal::from(Status::new(Code::NotFound, "why")).body();
        assert_eq!(without, br#"{"code":5,"message":"why"}"#);
    }

    #[test]
    fn gzip_is_taken_when_it_is_named_and_not_ruled_out() {
        let cases = [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
