//! Delegated PipelineRuns of Tekton: passes over those whose `spec.managedBy` is ours, where the cluster has the
//! kinds.

mod follow;
mod reconcile;

pub(crate) use follow::serve;
