//! What the cluster says to a call, and what follows from it.

use std::time::Duration;

use hindsight_runtime::error::report;
use kube::core::Status;
use tokio::time::timeout;

use crate::retry_after;

/// How long one call may take.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Why the cluster did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no such object, or it is another one or another version by now.
    #[error("the object is not there any more as it was")]
    Moved,
    /// It will not work until something is changed.
    #[error("the cluster refuses ({code}): {message}")]
    Refused {
        /// Status of the answer.
        code: u16,
        /// What the API server says.
        message: String,
    },
    /// It may work in a while.
    #[error("the cluster is unavailable or busy: {message}")]
    Passing {
        /// What is wrong.
        message: String,
        /// How long it asks clients to wait.
        retry_after: Option<Duration>,
    },
}

impl ClusterError {
    /// How long the cluster wants to be left alone, if it says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Passing { retry_after, .. } => *retry_after,
            Self::Moved | Self::Refused { .. } => None,
        }
    }
}

/// What follows from an error of the client.
#[must_use]
pub fn classify(error: &kube::Error) -> ClusterError {
    match error {
        kube::Error::Api(status) => match status.code {
            404 | 409 | 410 => ClusterError::Moved,
            // The UID of an object cannot be changed: another one has taken the name.
            422 if is_about(status, "metadata.uid") => ClusterError::Moved,
            408 | 429 | 500.. => ClusterError::Passing {
                message: format!("{} {}", status.code, status.message),
                retry_after: retry_after::of(status),
            },
            code => ClusterError::Refused {
                code,
                message: status.message.clone(),
            },
        },
        error => ClusterError::Passing {
            message: report(error),
            retry_after: retry_after::of_header(error),
        },
    }
}

/// Whether `field` is a cause of what the API server says.
fn is_about(status: &Status, field: &str) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == field)
}

/// Makes a call that fails when it takes longer than [`DEADLINE`].
pub async fn call<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClusterError> {
    match timeout(DEADLINE, request).await {
        Ok(answer) => answer.map_err(|error| classify(&error)),
        Err(_elapsed) => Err(ClusterError::Passing {
            message: format!("no answer in {} s", DEADLINE.as_secs()),
            retry_after: None,
        }),
    }
}
