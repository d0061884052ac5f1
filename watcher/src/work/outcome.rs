//! How work on a run ends.

use std::time::Duration;

use jiff::Timestamp;

use crate::cluster::ClusterError;

/// Why work on a run ended before its end.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The watcher stops; what is left is stored after the next start.
    Abandoned,
    /// It has to be tried again.
    Later {
        error: String,
        is_rare: bool,
        /// The server does not take it.
        is_refused: bool,
        /// How long the cluster asks clients to wait.
        retry_after: Option<Duration>,
    },
    /// It is refused for this run and others, and tried again when it may work.
    Refused { error: String },
    /// The server does not answer.
    Unavailable { error: String },
}

/// How executing a plan ended.
#[derive(Debug)]
pub(super) enum Next {
    /// Things are no longer as they were when it was made.
    Replan,
    /// Work on the run ended.
    End(End),
}

/// How work on a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is nothing to do before this time, if there is one.
    Done(Option<Timestamp>),
    /// What comes next is for workers of another lane.
    HandOver,
}

impl Next {
    pub(super) const DONE: Self = Self::End(End::Done(None));
}

impl Interrupted {
    pub(super) fn passing(error: impl ToString) -> Self {
        Self::Later {
            error: error.to_string(),
            is_rare: false,
            is_refused: false,
            retry_after: None,
        }
    }

    /// What went wrong, if anything did.
    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::Abandoned => None,
            Self::Later { error, .. } | Self::Refused { error } | Self::Unavailable { error } => {
                Some(error)
            }
        }
    }

    /// Trying again helps only when something else changes.
    pub(super) fn rare(error: impl ToString) -> Self {
        Self::Later {
            error: error.to_string(),
            is_rare: true,
            is_refused: false,
            retry_after: None,
        }
    }
}

impl From<ClusterError> for Interrupted {
    fn from(error: ClusterError) -> Self {
        let is_rare = matches!(error, ClusterError::Refused { .. });
        Self::Later {
            error: error.to_string(),
            is_rare,
            is_refused: false,
            retry_after: error.retry_after(),
        }
    }
}
