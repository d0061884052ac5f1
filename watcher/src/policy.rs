//! What the operator wants done with runs. Values only; nothing here decides.

pub mod rules;

use std::{collections::BTreeSet, str::FromStr};

use jiff::SignedDuration;

use hindsight_proto::names::{Parent, ParseNameError};
use hindsight_run::{Kind, SummaryPolicy, selector::Selector};

pub use hindsight_run::keys::CLOSED;
pub use rules::{Collect, Rule, Terms, Tightening};

/// `spec.managedBy` of runs that Tekton's own controller runs.
pub const TEKTON: &str = "tekton.dev/pipeline";
/// Annotation of a stored run: the SHA-256 of what of it is stored.
pub const STORED_DIGEST: &str = "hindsight.dev/stored-sha256";
/// Annotation that keeps a run in the cluster while it is `"true"`.
pub const HOLD: &str = "hindsight.dev/hold";
/// Annotation on a namespace that keeps all of its runs while it is `"true"`.
pub const PAUSE: &str = "hindsight.dev/pause";
/// Annotation on a namespace: the least grace of its runs, as a duration.
pub const GRACE: &str = "hindsight.dev/grace";
/// Annotation on a namespace: how many of the newest finished runs of a pipeline stay at least.
pub const KEEP_LAST: &str = "hindsight.dev/keep-last";

/// What is stored, annotated and collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Store runs as they progress, and not only once they are finished.
    pub store_incomplete: bool,
    /// Store the Kubernetes events about finished runs as well.
    pub store_events: bool,
    /// Write onto a stored run where it is stored.
    pub annotate: bool,
    /// Put a finalizer on runs, so that deletes of others wait until they are stored.
    pub finalizers: bool,
    /// How long a delete may wait for a finalizer of ours, from when it was asked for.
    pub store_deadline: SignedDuration,
    /// How long a run that ended, or is to be deleted, waits for its logs to be stored.
    pub logs_deadline: SignedDuration,
    /// Over which time after a start runs are verified that say of themselves that they are
    /// stored as they are.
    pub verify_within: SignedDuration,
    /// What is copied from a run to its result.
    pub summary: SummaryPolicy,
    /// Values of `spec.managedBy` that are not ignored, besides none, Tekton's own and ours.
    pub managed_by: BTreeSet<String>,
    /// Kinds of which only the runs with these labels are watched.
    pub selectors: Vec<(&'static Kind, Selector)>,
    /// The cluster's name, if its runs are kept apart from those of other clusters.
    pub cluster: Option<ClusterId>,
    /// Which stored runs are deleted from the cluster; `None` deletes none.
    pub collect: Option<Collect>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            store_incomplete: true,
            store_events: false,
            annotate: true,
            finalizers: false,
            store_deadline: SignedDuration::from_mins(10),
            logs_deadline: SignedDuration::from_mins(10),
            verify_within: SignedDuration::from_hours(1),
            summary: SummaryPolicy::default(),
            managed_by: BTreeSet::new(),
            selectors: Vec::new(),
            cluster: None,
            collect: None,
        }
    }
}

/// A cluster's name, legal as a segment of a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterId(String);

/// Why a text cannot name a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` cannot name a cluster: want one to 63 letters, digits or any of `.`, `_`, `~`, `-`"
)]
pub struct ClusterIdError {
    given: String,
}

impl FromStr for ClusterId {
    type Err = ClusterIdError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        if id.contains('/')
            || format!("cluster/{id}/namespace/any")
                .parse::<Parent>()
                .is_err()
        {
            return Err(ClusterIdError {
                given: id.to_owned(),
            });
        }
        Ok(Self(id.to_owned()))
    }
}

impl Policy {
    /// The tenant of a namespace: itself, or `cluster/<id>/namespace/<namespace>`.
    ///
    /// # Errors
    /// If `namespace` cannot be part of a name.
    pub fn parent(&self, namespace: &str) -> Result<Parent, ParseNameError> {
        match &self.cluster {
            Some(ClusterId(id)) => format!("cluster/{id}/namespace/{namespace}").parse(),
            None => namespace.parse(),
        }
    }
}
