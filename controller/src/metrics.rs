//! What the controller measures. Counters get their `_total` when they are written.

use hindsight_runtime::telemetry::Registry;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
};

/// How a workflow ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfEnd {
    /// `Complete`, or the reason of a failure.
    pub(crate) reason: &'static str,
}

/// A handle for every metric.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) passes: Counter,
    pub(crate) errors: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) status_writes: Counter,
    pub(crate) jobs_created: Counter,
    pub(crate) jobs_deleted: Counter,
    pub(crate) ended: Family<OfEnd, Counter>,
    pub(crate) leading: Gauge,
}

impl Metrics {
    /// Registers all of them.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        Self {
            passes: registry.register("workflow_passes", "Passes over workflows"),
            errors: registry.register(
                "workflow_errors",
                "Passes that the API server ended with an error",
            ),
            conflicts: registry.register(
                "workflow_conflicts",
                "Passes that ended because the object was changed at the same time",
            ),
            status_writes: registry.register(
                "workflow_status_writes",
                "Writes of the status of a workflow",
            ),
            jobs_created: registry.register("workflow_jobs_created", "Jobs created"),
            jobs_deleted: registry.register(
                "workflow_jobs_deleted",
                "Jobs deleted because their workflow ended",
            ),
            ended: registry.register("workflow_ended", "Workflows that ended, by reason"),
            leading: registry.register(
                "workflow_leading",
                "1 unless this replica stands by for another one",
            ),
        }
    }
}

/// The label of a reason; one that is not ours is `other`.
pub(crate) fn reason(text: Option<&str>) -> &'static str {
    const KNOWN: [&str; 5] = [
        "StepFailed",
        "DeadlineExceeded",
        "ExternalWorkflowFailed",
        "InvalidSpec",
        "JobNameConflict",
    ];
    match text {
        None => "Complete",
        Some(text) => KNOWN
            .into_iter()
            .find(|known| *known == text)
            .unwrap_or("other"),
    }
}
