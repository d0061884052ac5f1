//! What the transport refuses before any handler sees it, said as everything else is said.
//!
//! It calls a message over the limit OUT_OF_RANGE, and bytes that are no message INTERNAL; to
//! clients of this API the one is RESOURCE_EXHAUSTED, and the other is their own mistake. These
//! refusals are rewritten. Texts that repeat much of a request are cut, since they travel in headers,
//! of which clients take so much and no more.

use std::task::{Context, Poll};

use axum::http::{HeaderMap, HeaderValue, Request, Response};
use futures::future::BoxFuture;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};
use tonic::{Code, Status, server::NamedService};
use tower_service::Service;

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
/// Most bytes of a text on the wire; clients take 8 to 16 KiB of headers.
const LONGEST: usize = 4 << 10;
/// What of a text has to be escaped in a header.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');
/// How the transport's texts begin, by the code that it gives them and the one that they get.
const MENDED: [(Code, &str, Code); 6] = [
    (
        Code::OutOfRange,
        "Error, decoded message length too large",
        Code::ResourceExhausted,
    ),
    (
        Code::Internal,
        "failed to decode Protobuf message",
        Code::InvalidArgument,
    ),
    (Code::Internal, "protocol error: ", Code::InvalidArgument),
    (
        Code::Internal,
        "Error decompressing: ",
        Code::InvalidArgument,
    ),
    (
        Code::Internal,
        "Unexpected EOF decoding stream",
        Code::InvalidArgument,
    ),
    (
        Code::Internal,
        "Missing request message",
        Code::InvalidArgument,
    ),
];

/// A service whose transport's refusals are mended.
#[derive(Debug, Clone)]
pub struct TransportStatus<S>(pub S);

impl<S: NamedService> NamedService for TransportStatus<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Q, R> Service<Request<Q>> for TransportStatus<S>
where
    S: Service<Request<Q>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            mend(answer.headers_mut());
            Ok(answer)
        })
    }
}

fn mend(headers: &mut HeaderMap) {
    let Some(said) = headers.get(MESSAGE) else {
        return;
    };
    let long = said.len() > LONGEST;
    let code = headers
        .get(STATUS)
        .map(|status| Code::from_bytes(status.as_bytes()));
    if !long && !matches!(code, Some(Code::OutOfRange | Code::Internal)) {
        return;
    }
    let said = percent_decode(said.as_bytes())
        .decode_utf8_lossy()
        .into_owned();
    if let Some(code) = code.and_then(|code| mended(code, &said)) {
        headers.insert(STATUS, HeaderValue::from(code as i32));
    }
    if long && let Ok(cut) = HeaderValue::from_str(&cut(&said)) {
        headers.insert(MESSAGE, cut);
    }
}

/// As much of a text as may go over the wire, as it goes there.
fn cut(text: &str) -> String {
    let mut escaped = String::new();
    let mut each = [0; 4];
    for letter in text.chars().chain(std::iter::once('…')) {
        let letter = utf8_percent_encode(letter.encode_utf8(&mut each), ESCAPED).to_string();
        if escaped.len() + letter.len() > LONGEST - 9 {
            return escaped + "%E2%80%A6";
        }
        escaped += &letter;
    }
    escaped
}

/// What a refusal of the transport is; nothing, if it is fine or not the transport's.
fn mended(code: Code, said: &str) -> Option<Code> {
    let row = MENDED
        .iter()
        .find(|(given, begins, _)| *given == code && said.starts_with(begins))?;
    Some(row.2)
}

/// The same of a refusal in the middle of a stream.
pub(super) fn of_stream(status: Status) -> Status {
    match mended(status.code(), status.message()) {
        Some(code) => Status::new(code, status.message()),
        None => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_of_the_transport_are_mended() {
        let cases = [
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 9",
                8,
            ),
            (
                Code::Internal,
                "failed to decode Protobuf message: a b: c%",
                3,
            ),
            (Code::Internal, "the rows contradict each other", 13),
            (Code::OutOfRange, "a page that is not there", 11),
            (Code::NotFound, "protocol error: no", 5),
        ];
        for (code, said, expected) in cases {
            let mut answer = Status::new(code, said).into_http::<()>();
            mend(answer.headers_mut());
            assert_eq!(
                answer.headers()[STATUS].as_bytes(),
                expected.to_string().as_bytes(),
                "{said}"
            );
            let status = of_stream(Status::new(code, said));
            assert_eq!((status.code() as i32, status.message()), (expected, said));
        }
    }

    #[test]
    fn a_text_that_repeats_a_long_request_is_cut() {
        for letter in ["x", "%", "é", "\u{1f980}"] {
            let said = letter.repeat(20_000);
            let mut answer = Status::new(Code::InvalidArgument, &said).into_http::<()>();
            mend(answer.headers_mut());
            let status = Status::from_header_map(answer.headers()).unwrap();
            assert_eq!(status.code(), Code::InvalidArgument);
            let kept = status.message().strip_suffix('…').unwrap();
            assert!(
                said.starts_with(kept) && kept.len() > 1000,
                "{}",
                kept.len()
            );
            assert!(answer.headers()[MESSAGE].len() <= LONGEST);
        }
    }
}
