//! What an API server that is busy says about when to come again. The client keeps what is in the
//! body of an answer, but its limits of fairness say it only in the header `Retry-After`.

use std::time::Duration;

use http::{Response, StatusCode, header::RETRY_AFTER};
use kube::{
    Client,
    client::Body,
    core::{Status, response::StatusDetails},
};

/// The longest that is believed.
const LONGEST: Duration = Duration::from_mins(1);

/// An answer that says when to come again.
#[derive(Debug, thiserror::Error)]
#[error("{status}, to be asked again in {} s", after.as_secs())]
struct Busy {
    status: StatusCode,
    after: Duration,
}

/// `client`, with errors that keep the header.
#[must_use]
pub fn kept(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request| {
        let client = client.clone();
        async move {
            let response = client.send(request).await?;
            match busy(&response) {
                Some(busy) => Err(Box::<dyn std::error::Error + Send + Sync>::from(busy)),
                None => Ok(response),
            }
        }
    });
    Client::new(service, namespace)
}

fn busy(response: &Response<Body>) -> Option<Busy> {
    let status = response.status();
    let is_busy = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let after = response.headers().get(RETRY_AFTER).filter(|_| is_busy)?;
    let after = after.to_str().ok()?.trim().parse().ok()?;
    Some(Busy {
        status,
        after: Duration::from_secs(after),
    })
}

/// What the body of an answer says.
pub(crate) fn of(status: &Status) -> Option<Duration> {
    let details: &StatusDetails = status.details.as_ref()?;
    let seconds = u64::from(details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST))
}

/// What the header of an answer said.
pub(crate) fn of_header(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Service(error) = error else {
        return None;
    };
    let busy = error.downcast_ref::<Busy>()?;
    Some(busy.after.min(LONGEST))
}
