//! Too large messages are RESOURCE_EXHAUSTED.
//!
//! The transport refuses a message over the limit before any handler sees it, with
//! OUT_OF_RANGE; clients of other servers of this API know such a refusal as
//! RESOURCE_EXHAUSTED. This layer rewrites that one status and touches nothing else.

use std::task::{Context, Poll};

use axum::http::{HeaderMap, HeaderValue, Request, Response};
use futures::future::BoxFuture;
use tonic::{Code, server::NamedService};
use tower_service::Service;

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
/// What the transport says of a message over its limit, percent-encoded as it is on the wire.
const TOO_LARGE: [&str; 2] = [
    "decoded%20message%20length%20too%20large",
    "decoded message length too large",
];

/// A service whose refusals of large messages are mended.
#[derive(Debug, Clone)]
pub struct SizeStatus<S>(pub S);

impl<S: NamedService> NamedService for SizeStatus<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Q, R> Service<Request<Q>> for SizeStatus<S>
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
    let out_of_range = (Code::OutOfRange as i32).to_string();
    if headers
        .get(STATUS)
        .is_none_or(|status| status.as_bytes() != out_of_range.as_bytes())
    {
        return;
    }
    let message = headers
        .get(MESSAGE)
        .and_then(|m| m.to_str().ok())
        .unwrap_or_default();
    if TOO_LARGE.iter().any(|text| message.contains(text)) {
        headers.insert(STATUS, HeaderValue::from(Code::ResourceExhausted as i32));
    }
}
