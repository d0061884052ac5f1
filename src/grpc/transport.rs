//! What the transport refuses before any handler sees it, said as everything else is said.
//!
//! It calls a message over the limit OUT_OF_RANGE, and bytes that are no message INTERNAL; to
//! clients of this API the one is RESOURCE_EXHAUSTED, and the other is their own mistake. These
//! refusals are rewritten and nothing else is touched.

use std::{
    borrow::Cow,
    task::{Context, Poll},
};

use axum::http::{HeaderMap, HeaderValue, Request, Response};
use futures::future::BoxFuture;
use percent_encoding::percent_decode;
use tonic::{Code, Status, server::NamedService};
use tower_service::Service;

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
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
    let code = headers
        .get(STATUS)
        .map(|status| Code::from_bytes(status.as_bytes()));
    let Some(code @ (Code::OutOfRange | Code::Internal)) = code else {
        return;
    };
    let said = headers.get(MESSAGE).map_or(Cow::Borrowed(&[][..]), |said| {
        percent_decode(said.as_bytes()).into()
    });
    if let Some(code) = mended(code, &String::from_utf8_lossy(&said)) {
        headers.insert(STATUS, HeaderValue::from(code as i32));
    }
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
}
