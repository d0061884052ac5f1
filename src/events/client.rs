//! Requests to one receiver.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};

use super::{
    event::Event,
    receivers::{FileError, Receiver},
    verdict::{Outcome, retry_after},
};
use crate::outgoing::{self, HttpClient, Secret};
use hindsight_runtime::{clock::Clock, error::report};

/// Most bytes of an answer that are read, so that its connection can be used again.
const ANSWER: usize = 64 << 10;
/// What sends to one receiver.
#[derive(Debug)]
pub(super) struct Client {
    inner: HttpClient,
    uri: Uri,
    timeout: Duration,
    token: Option<Secret>,
    key: Option<Secret>,
}

impl Client {
    /// It fails if a file that the receiver names cannot be used.
    pub(super) fn new(receiver: &Receiver) -> Result<Self, FileError> {
        let url = receiver.url.as_str();
        let uri = url.parse();
        let uri = uri.map_err(|error| FileError::new(Path::new(url), format!("{error}")))?;
        // What is not connected by then counts as away, and a request that takes longer does not.
        let ca = receiver.ca_file.as_deref();
        let inner = outgoing::client(ca, receiver.timeout / 2);
        let inner = inner.map_err(|why| FileError::new(ca.unwrap_or(Path::new(url)), why))?;
        let secret = |path: &Option<PathBuf>| {
            let read = |path: &Path| Secret::read(path).map_err(|why| FileError::new(path, why));
            path.as_deref().map(read).transpose()
        };
        Ok(Self {
            inner,
            uri,
            timeout: receiver.timeout,
            token: secret(&receiver.token_file)?,
            key: secret(&receiver.hmac_key_file)?,
        })
    }

    /// Posts an event once.
    pub(super) async fn post(&self, event: &Event, clock: &dyn Clock) -> Outcome {
        let request = match self.request(event) {
            Ok(request) => request,
            Err(why) => return Outcome::NotSent(why),
        };
        let ends = tokio::time::Instant::now() + self.timeout;
        let answer = tokio::time::timeout_at(ends, self.inner.request(request)).await;
        let answer = match answer {
            Err(_elapsed) => {
                let why = format!("no answer within {:?}", self.timeout);
                return Outcome::Unanswered(why);
            }
            Ok(Err(error)) if error.is_connect() => {
                return Outcome::NotSent(format!("cannot connect: {}", report(&error)));
            }
            Ok(Err(error)) => {
                return Outcome::Unanswered(format!("no answer: {}", report(&error)));
            }
            Ok(Ok(answer)) => answer,
        };
        let status = answer.status().as_u16();
        let wait = answer.headers().get(header::RETRY_AFTER);
        let wait = wait.and_then(|value| value.to_str().ok());
        let wait = wait.and_then(|text| retry_after(text, clock.now()));
        let body = Limited::new(answer.into_body(), ANSWER).collect();
        if !matches!(tokio::time::timeout_at(ends, body).await, Ok(Ok(_))) {
            tracing::debug!(status, "the rest of an answer to an event is not read");
        }
        Outcome::Answered(status, wait)
    }

    fn request(&self, event: &Event) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::post(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .header(
                header::USER_AGENT,
                concat!("hindsight/", env!("CARGO_PKG_VERSION")),
            );
        for (name, value) in &event.attributes {
            request = request.header(*name, value);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.bearer()?);
        }
        if let Some(key) = &self.key {
            let signature = signature(&key.now()?, &event.body);
            request = request.header("x-hub-signature-256", signature);
        }
        let request = request.body(Full::new(event.body.clone()));
        request.map_err(|error| format!("cannot make a request: {error}"))
    }
}

/// `sha256=` and the HMAC of a body in hexadecimal digits.
fn signature(key: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = hmac::sign(&key, body);
    let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("sha256=".to_owned())
        .chain(digits)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_github() {
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(
            signature("It's a Secret to Everybody", b"Hello, World!"),
            expected
        );
    }
}
