//! Why a pass ended before there was nothing left to do.

use std::time::Duration;

use hindsight_cluster::ClusterError;
use kube::{
    Resource,
    runtime::{controller::Action, reflector::ObjectRef},
};
use tracing::{debug, warn};

use crate::{cluster::Cluster, metrics::Counter};

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

/// What is counted and said of passes over the objects of a kind that ended early.
pub(crate) struct Troubles<'m> {
    pub(crate) kind: &'static str,
    pub(crate) cluster: &'m Cluster,
    pub(crate) conflicts: &'m Counter,
    pub(crate) errors: &'m Counter,
}

impl Troubles<'_> {
    /// What becomes of an object over which a pass failed: another pass after `wait`, if that may help.
    pub(crate) fn after<K: Resource>(
        &self,
        error: &Interrupted,
        of: &ObjectRef<K>,
        wait: Duration,
    ) -> Action {
        let kind = self.kind;
        let (namespace, name) = (of.namespace.as_deref(), of.name.as_str());
        match error {
            Interrupted::Overtaken => {
                self.conflicts.inc();
                debug!(
                    kind,
                    object.namespace = namespace,
                    object.name = name,
                    "pass over `{name}` ended: {error}"
                );
            }
            Interrupted::Cluster(refused) => {
                self.errors.inc();
                self.cluster.spare(refused);
                warn!(
                    kind,
                    object.namespace = namespace,
                    object.name = name,
                    "pass over `{name}` will be retried: {error}"
                );
            }
            Interrupted::Unreadable(_) => {
                self.errors.inc();
                warn!(
                    kind,
                    object.namespace = namespace,
                    object.name = name,
                    "`{name}` is left alone: {error}"
                );
                return Action::await_change();
            }
        }
        Action::requeue(wait)
    }
}
