//! Labels: what a metric is told apart by.

use std::hash::Hash;

use prometheus_client::encoding::EncodeLabelSet;

/// Of a stored run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfRun {
    /// The kind in lower case.
    pub kind: String,
    /// Namespace that the run was in.
    pub namespace: String,
}

/// Of a deleted run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfDelete {
    /// Namespace that the run was in.
    pub namespace: String,
    /// How it ended: `success`, `failed` or `cancelled`.
    pub status: &'static str,
    /// Its pipeline, or `anonymous`.
    pub pipeline: String,
    /// Its task, or `anonymous`; empty of what is no run of a task.
    pub task: String,
}

/// Of a server's error.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfCode {
    /// The name of the gRPC code.
    pub code: &'static str,
}

/// Of what is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfRefusal {
    /// What was tried: `store`, `read`, `annotate`, `protect`, `release` or `delete`.
    pub action: &'static str,
    /// The kind of run; empty for what the server refuses.
    pub kind: &'static str,
}

/// Labels of a number of runs in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfState {
    /// State in the ledger, or how runs left it.
    pub state: &'static str,
    /// Kind of the runs, such as `TaskRun`.
    pub kind: &'static str,
}

/// Labels of what is counted for each kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// The kind of object that was counted, as its API names it.
    pub kind: &'static str,
}

/// Of the watch of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfWatch {
    /// The kind and its group.
    pub kind: String,
}

/// Of lines that stand for lines that are missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfHole {
    /// Why lines are missing: `rotated`, `pod_deleted`, `restarted`, `run_deleted`, `too_long`, `unreadable`.
    pub reason: &'static str,
}
