//! Why a pass ended before there was nothing left to do.

use std::time::Duration;

use hindsight_cluster::ClusterError;
use kube::runtime::controller::Action;
use tracing::{debug, warn};

use crate::metrics::Counter;

/// Why a pass ended before there was nothing to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interrupted {
    /// What was known is not the newest.
    #[error("it was changed at the same time")]
    Overtaken,
    /// The API server does not do what it was asked.
    #[error(transparent)]
    Cluster(ClusterError),
    /// The object is not what it should be.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl From<ClusterError> for Interrupted {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Moved => Self::Overtaken,
            error => Self::Cluster(error),
        }
    }
}

/// What is counted and said of passes over the runs of a kind that ended early.
pub(crate) struct Troubles<'m> {
    pub(crate) kind: &'static str,
    pub(crate) conflicts: &'m Counter,
    pub(crate) errors: &'m Counter,
}

impl Troubles<'_> {
    /// What becomes of a run over which a pass failed: another one after `wait`, if that may help.
    pub(crate) fn after(
        &self,
        error: &Interrupted,
        namespace: Option<&str>,
        of: &str,
        wait: Duration,
    ) -> Action {
        let kind = self.kind;
        match error {
            Interrupted::Overtaken => {
                self.conflicts.inc();
                debug!(
                    kind,
                    run.namespace = namespace,
                    run.name = of,
                    "pass over `{of}` ended: {error}"
                );
            }
            Interrupted::Cluster(_) => {
                self.errors.inc();
                warn!(
                    kind,
                    run.namespace = namespace,
                    run.name = of,
                    "pass over `{of}` will be retried: {error}"
                );
            }
            Interrupted::Unreadable(_) => {
                self.errors.inc();
                warn!(
                    kind,
                    run.namespace = namespace,
                    run.name = of,
                    "`{of}` is left alone: {error}"
                );
                return Action::await_change();
            }
        }
        Action::requeue(wait)
    }
}
