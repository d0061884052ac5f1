//! Annotation, label and finalizer names that Hindsight reads or writes on cluster objects.
//! They are those of Tekton Results, so that either watcher can take over from the other.

/// Full name of the result a run is grouped into.
pub const RESULT: &str = "results.tekton.dev/result";
/// Full name of the record a run is stored as.
pub const RECORD: &str = "results.tekton.dev/record";
/// `"true"` once the final state is stored, `"false"` while it is not.
pub const STORED: &str = "results.tekton.dev/stored";
/// `spec.managedBy` of PipelineRuns that Hindsight carries out.
pub const DELEGATED: &str = "hindsight.dev/pipelinerun";
/// JSON object of annotations to put on the result.
pub const RESULT_ANNOTATIONS: &str = "results.tekton.dev/resultAnnotations";
/// JSON object of annotations to put on the result's summary.
pub const SUMMARY_ANNOTATIONS: &str = "results.tekton.dev/recordSummaryAnnotations";
/// Set on finished children, so that their owner may be collected.
pub const CHILD_READY: &str = "results.tekton.dev/childReadyForDeletion";
/// Label that groups the runs of one trigger event.
pub const EVENT_ID: &str = "triggers.tekton.dev/triggers-eventid";
/// Label naming the pipeline of a run.
pub const PIPELINE: &str = "tekton.dev/pipeline";
/// Label naming the PipelineRun of a TaskRun.
pub const PIPELINE_RUN: &str = "tekton.dev/pipelineRun";
/// Label naming the task of a TaskRun.
pub const TASK: &str = "tekton.dev/task";
/// Label naming the RayJob or RayService that a RayCluster was made for.
pub const RAY_ORIGIN: &str = "ray.io/originated-from-cr-name";
/// Annotation on the result: the name of the run it is about.
pub const OBJECT_NAME: &str = "object.metadata.name";
/// Annotation on a stored run, its result and the summary of that: why the end of the run was not
/// seen. It goes when a later state of the run is stored.
pub const CLOSED: &str = "hindsight.dev/closed";
/// Annotation on a stored run beside [`CLOSED`]: when it was found to be gone, as RFC 3339.
pub const CLOSED_AT: &str = "hindsight.dev/closed-at";
/// Annotation on a stored run beside [`CLOSED`]: the UID of the run that was closed, because a run that
/// is made from a copy of it has its annotations.
pub const CLOSED_UID: &str = "hindsight.dev/closed-uid";
/// Field manager of the annotation patches.
pub const FIELD_MANAGER: &str = "tekton-results-watcher";
