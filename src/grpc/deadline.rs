//! `grpc-timeout`, and the longest that the server gives to any call: a call that outlives either
//! is dropped and answered with DEADLINE_EXCEEDED.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use axum::http::{HeaderMap, Request, Response};
use futures::future::BoxFuture;
use tonic::{Status, body::Body, server::NamedService};
use tower_service::Service;

const HEADER: &str = "grpc-timeout";
/// Most digits the protocol allows.
const DIGITS: usize = 8;

/// A service whose calls end at their deadline.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    most: Option<Duration>,
}

impl<S> Deadline<S> {
    /// Ends calls of `inner` when clients ask for it.
    pub fn asked(inner: S) -> Self {
        Self { inner, most: None }
    }

    /// Ends calls of `inner` when clients ask for it, and in any case after `most`.
    pub fn within(inner: S, most: Duration) -> Self {
        Self {
            inner,
            most: Some(most),
        }
    }
}

impl<S: NamedService> NamedService for Deadline<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Q> Service<Request<Q>> for Deadline<S>
where
    S: Service<Request<Q>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let given = match given(request.headers()) {
            Ok(given) => given,
            Err(status) => return Box::pin(async move { Ok(status.into_http()) }),
        };
        let given = given.map(|patience| (patience, "grpc-timeout"));
        let most = self.most.map(|patience| (patience, "request_timeout"));
        let Some((patience, whose)) = given.into_iter().chain(most).min() else {
            return Box::pin(self.inner.call(request));
        };
        let answer = tokio::time::timeout(patience, self.inner.call(request));
        Box::pin(async move {
            answer.await.unwrap_or_else(|_elapsed| {
                let text = format!("no answer within the {patience:?} of {whose}");
                Ok(Status::deadline_exceeded(text).into_http())
            })
        })
    }
}

/// For how long a client says to wait; none if it does not say.
pub(super) fn asked(headers: &HeaderMap) -> Option<Duration> {
    given(headers).ok().flatten()
}

fn given(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    match value.to_str().ok().and_then(parse) {
        Some(patience) => Ok(Some(patience)),
        None => Err(Status::invalid_argument(format!(
            "grpc-timeout: {value:?} is not a time; want up to {DIGITS} digits and one of \
             H M S m u n"
        ))),
    }
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit)?;
    if digits.len() > DIGITS || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(amount * 3600),
        'M' => Duration::from_secs(amount * 60),
        'S' => Duration::from_secs(amount),
        'm' => Duration::from_millis(amount),
        'u' => Duration::from_micros(amount),
        'n' => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that is always ready and whose calls stay pending.
    #[derive(Clone)]
    struct Busy;

    impl Service<Request<()>> for Busy {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Pending<Result<Response<Body>, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            std::future::pending()
        }
    }

    #[tokio::test]
    async fn a_call_that_outlives_its_deadline_is_told_so() {
        for (timeout, code) in [("1m", "4"), ("soon", "3")] {
            let request = Request::builder().header(HEADER, timeout).body(()).unwrap();
            let answer = Deadline::asked(Busy).call(request).await.unwrap();
            assert_eq!(answer.headers()["grpc-status"], code, "{timeout}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_takes_longer_than_the_server_gives_it() {
        let most = Duration::from_mins(5);
        for (asked, waited, whose) in [
            (None, most, "request_timeout"),
            (Some("99999999H"), most, "request_timeout"),
            (Some("7S"), Duration::from_secs(7), "grpc-timeout"),
        ] {
            let mut request = Request::builder();
            if let Some(asked) = asked {
                request = request.header(HEADER, asked);
            }
            let began = tokio::time::Instant::now();
            let call = Deadline::within(Busy, most).call(request.body(()).unwrap());
            let answer = call.await.unwrap();
            assert_eq!(began.elapsed().as_secs(), waited.as_secs(), "{asked:?}");
            assert_eq!(answer.headers()["grpc-status"], "4");
            let told = answer.headers()["grpc-message"].to_str().unwrap();
            assert!(told.ends_with(whose), "{told}");
        }
    }

    #[test]
    fn a_timeout_is_up_to_eight_digits_and_a_unit() {
        let cases = [
            ("2H", Some(Duration::from_secs(7200))),
            ("1M", Some(Duration::from_secs(60))),
            ("10S", Some(Duration::from_secs(10))),
            ("99999999m", Some(Duration::from_millis(99_999_999))),
            ("5u", Some(Duration::from_micros(5))),
            ("5n", Some(Duration::from_nanos(5))),
            ("999999999m", None),
            ("", None),
            ("S", None),
            ("5", None),
            ("+5S", None),
            ("5é", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
