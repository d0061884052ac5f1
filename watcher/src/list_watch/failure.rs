//! Why a list or a watch could not be read.

use std::time::Duration;

use hindsight_runtime::error::report;
use tokio::time::timeout;

/// What was asked for when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Which kinds there are.
    Discovery,
    /// A page of a list.
    List,
    /// The beginning of a watch, or what comes over it.
    Watch,
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    pub(crate) phase: Phase,
    /// The status, if the API server answered.
    pub(crate) code: Option<u16>,
    text: String,
}

impl Failure {
    pub(super) fn of(phase: Phase, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self {
                phase,
                code: Some(status.code),
                text: format!("{} {}", status.code, status.message),
            },
            error => Self {
                phase,
                code: None,
                text: report(error),
            },
        }
    }

    fn late(phase: Phase, deadline: Duration) -> Self {
        Self {
            phase,
            code: None,
            text: format!("no answer in {deadline:?}"),
        }
    }

    /// A watch ended at once, without an event.
    pub(super) fn early() -> Self {
        Self {
            phase: Phase::Watch,
            code: None,
            text: "the watch ended at once, without an event".to_owned(),
        }
    }

    /// There is no right to read it.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.code == Some(403)
    }

    /// The version to go on from is forgotten. That is part of the protocol.
    pub(crate) fn is_expired(&self) -> bool {
        self.code == Some(410)
    }

    /// There is no such kind.
    pub(crate) fn is_missing(&self) -> bool {
        self.code == Some(404)
    }

    /// The API server is there, and has this to say about what was asked for.
    pub(crate) fn is_about_the_kind(&self) -> bool {
        self.code
            .is_some_and(|code| !matches!(code, 401 | 408 | 429 | 502..=504))
    }
}

/// Makes one call within `deadline`.
pub(crate) async fn read<T>(
    phase: Phase,
    deadline: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    match timeout(deadline, call).await {
        Ok(answer) => answer.map_err(|error| Failure::of(phase, &error)),
        Err(_elapsed) => Err(Failure::late(phase, deadline)),
    }
}
