//! Delegated PipelineRuns of Tekton: passes over those whose `spec.managedBy` is ours.

mod follow;
mod reconcile;

pub(crate) use follow::serve;
