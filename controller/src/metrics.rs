//! What the controller measures. Counters get their `_total` when they are written.

use hindsight_runtime::telemetry::Registry;
pub(crate) use prometheus_client::metrics::counter::Counter;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
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

/// A handle for every metric of delegated PipelineRuns.
#[derive(Debug)]
pub(crate) struct PipelineMetrics {
    pub(crate) passes: Counter,
    pub(crate) errors: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) status_writes: Counter,
    pub(crate) children_created: Family<OfKind, Counter>,
    pub(crate) children_cancelled: Family<OfKind, Counter>,
    pub(crate) ended: Family<OfEnd, Counter>,
    pub(crate) following: Gauge,
}

impl PipelineMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            passes: registry.register("pipeline_run_passes", "Passes over delegated PipelineRuns"),
            errors: registry.register(
                "pipeline_run_errors",
                "Passes over PipelineRuns that the API server ended with an error",
            ),
            conflicts: registry.register(
                "pipeline_run_conflicts",
                "Passes over PipelineRuns that ended because the object was changed at the same time",
            ),
            status_writes: registry.register(
                "pipeline_run_status_writes",
                "Writes of the status of a PipelineRun",
            ),
            children_created: registry.register(
                "pipeline_run_children_created",
                "TaskRuns and CustomRuns created for PipelineRuns",
            ),
            children_cancelled: registry.register(
                "pipeline_run_children_cancelled",
                "TaskRuns and CustomRuns cancelled because their PipelineRun ended",
            ),
            ended: registry.register("pipeline_run_ended", "PipelineRuns that ended, by reason"),
            following: registry.register(
                "pipeline_run_following",
                "1 while delegated PipelineRuns are followed",
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
    pub(crate) pipelines: PipelineMetrics,
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
            pipelines: PipelineMetrics::register(registry),
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

/// The label of the reason of a PipelineRun.
pub(crate) fn pipeline_reason(text: Option<&str>) -> &'static str {
    known(&PIPELINE_REASONS, text.unwrap_or_default())
}

const PIPELINE_REASONS: [&str; 15] = [
    "Cancelled",
    "CouldntGetPipelineResult",
    "CreateRunFailed",
    "Failed",
    "InvalidPipelineResultReference",
    "InvalidTaskResultReference",
    "ObjectParameterMissKeys",
    "ParamArrayIndexingInvalid",
    "ParameterMissing",
    "ParameterTypeMismatch",
    "PipelineInvalidGraph",
    "PipelineRunTimeout",
    "PipelineValidationFailed",
    "Succeeded",
    "UnsupportedFeature",
];

fn known(reasons: &[&'static str], text: &str) -> &'static str {
    let mut reasons = reasons.iter();
    reasons
        .find(|known| **known == text)
        .copied()
        .unwrap_or("other")
}
