//! Workflows of Jobs, `workflows.hindsight.dev`: the schema of the kind, which workflows are valid, how they
//! may change, and what is to be done next about one.
//!
//! Everything here is a pure function; the controller and the webhook do what touches the cluster.

pub mod admission;
mod change;
pub mod crd;
pub mod custom;
pub mod describe;
mod graph;
mod job;
mod next;
mod object;
mod pass;
pub mod pipeline;
mod selector;
mod spec;
mod status;
mod validate;

pub use change::check_change;
pub use graph::{cycle, in_order};
pub use job::{End, Job, job_manifest, job_name};
pub use next::{Delete, Event, Next, Severity};
pub use object::{FINALIZER, Workflow};
pub use pass::{JobSeen, Pass, TargetSeen};
pub use spec::{LabelSelector, ObjectReference, Requirement, Spec, Step, TemplateMetadata};
pub use status::{Condition, Reason, Status, StepStatus};
pub use validate::check_spec;

/// The API group of workflows.
pub const GROUP: &str = "hindsight.dev";
/// The version of the API group.
pub const VERSION: &str = "v1alpha1";
/// The kind of workflows.
pub const KIND: &str = "Workflow";
/// The name of the kind in URLs.
pub const PLURAL: &str = "workflows";
/// Label of a Job: name of its workflow, cut to 63 characters.
pub const WORKFLOW_LABEL: &str = "hindsight.dev/workflow";
/// Label of a Job: UID of its workflow.
pub const UID_LABEL: &str = "hindsight.dev/workflow-uid";
/// Label of a Job: name of its step.
pub const STEP_LABEL: &str = "hindsight.dev/step";
/// Most steps of a workflow.
pub const MAX_STEPS: usize = 500;

#[cfg(test)]
mod tests;
