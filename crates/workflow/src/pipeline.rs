//! Delegated PipelineRuns of Tekton, whose `spec.managedBy` is `hindsight.dev/pipelinerun`: each task of an inline
//! pipeline becomes a TaskRun or a CustomRun, in the order that `runAfter` and results ask for.
//!
//! As everything in this crate it is pure: which runs are carried out, what their tasks become, and what is to
//! be done next.

mod check;
mod child;
mod features;
mod manifest;
mod params;
mod pass;
mod plan;
mod run;
mod spec;
mod status;
mod variables;

pub use child::{Child, ChildKind, ChildName, Outcome};
pub use manifest::child_name;
pub use pass::{ChildSeen, Next, Pass};
pub use run::PipelineRun;

/// Label of a TaskRun or CustomRun: UID of the delegated PipelineRun that controls it.
pub const PIPELINE_RUN_UID_LABEL: &str = "hindsight.dev/pipeline-run-uid";
