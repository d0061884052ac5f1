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

/// A kind of custom runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfKind {
    pub(crate) kind: &'static str,
}

/// A handle for every metric of custom runs.
#[derive(Debug)]
pub(crate) struct CustomMetrics {
    pub(crate) passes: Counter,
    pub(crate) errors: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) status_writes: Counter,
    pub(crate) workflows_created: Counter,
    pub(crate) workflows_deleted: Counter,
    pub(crate) retries: Counter,
    pub(crate) ended: Family<OfEnd, Counter>,
    pub(crate) following: Family<OfKind, Gauge>,
}

impl CustomMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            passes: registry.register("custom_run_passes", "Passes over custom runs"),
            errors: registry.register(
                "custom_run_errors",
                "Passes over custom runs that the API server ended with an error",
            ),
            conflicts: registry.register(
                "custom_run_conflicts",
                "Passes over custom runs that ended because the object was changed at the same time",
            ),
            status_writes: registry.register(
                "custom_run_status_writes",
                "Writes of the status of a custom run",
            ),
            workflows_created: registry.register(
                "custom_run_workflows_created",
                "Workflows created for custom runs",
            ),
            workflows_deleted: registry.register(
                "custom_run_workflows_deleted",
                "Workflows deleted because their attempt ended",
            ),
            retries: registry.register("custom_run_retries", "Attempts that failed and are repeated"),
            ended: registry.register("custom_run_ended", "Custom runs that ended, by reason"),
            following: registry.register(
                "custom_run_following",
                "1 while the runs of the kind are followed",
            ),
        }
    }
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
    pub(crate) events_dropped: Counter,
    pub(crate) ended: Family<OfEnd, Counter>,
    pub(crate) leading: Gauge,
    pub(crate) custom: CustomMetrics,
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
            events_dropped: registry.register(
                "workflow_events_dropped",
                "Events that were not posted because too many waited",
            ),
            ended: registry.register("workflow_ended", "Workflows that ended, by reason"),
            leading: registry.register(
                "workflow_leading",
                "1 unless this replica stands by for another one",
            ),
            custom: CustomMetrics::register(registry),
        }
    }
}

/// The label of a reason; one that is not ours is `other`.
pub(crate) fn reason(text: Option<&str>) -> &'static str {
    text.map_or("Complete", |text| known(&FAILURES, text))
}

/// The label of the reason of a custom run.
pub(crate) fn custom_reason(is_successful: bool, text: Option<&str>) -> &'static str {
    if is_successful {
        return "Succeeded";
    }
    let text = text.unwrap_or_default();
    // The same of both kinds.
    match text
        .strip_prefix("Custom")
        .filter(|rest| rest.starts_with("Run"))
        .unwrap_or(text)
    {
        "RunCancelled" => "Cancelled",
        "RunTimedOut" => "TimedOut",
        "RunWorkspaceNotSupported" => "WorkspaceNotSupported",
        "RunPodTemplateNotSupported" => "PodTemplateNotSupported",
        text => match known(&FAILURES, text) {
            "other" => known(&CUSTOM_FAILURES, text),
            known => known,
        },
    }
}

const FAILURES: [&str; 5] = [
    "StepFailed",
    "DeadlineExceeded",
    "ExternalWorkflowFailed",
    "InvalidSpec",
    "JobNameConflict",
];

const CUSTOM_FAILURES: [&str; 4] = [
    "WorkflowDeleted",
    "WorkflowNameConflict",
    "WorkflowNotFound",
    "WorkflowRefused",
];

fn known(reasons: &[&'static str], text: &str) -> &'static str {
    let mut reasons = reasons.iter();
    reasons
        .find(|known| **known == text)
        .copied()
        .unwrap_or("other")
}
