//! Custom tasks of Tekton that are workflows: passes over CustomRuns, and Runs of Tekton's older form, where the
//! cluster has the kinds.

mod follow;
pub(crate) mod owners;
mod reconcile;

pub(crate) use follow::serve;
