//! What workflows owe to the custom runs that control them.

use hindsight_cluster::ClusterError;

use crate::{
    object::{OwningRun, RunObject, WorkflowObject},
    shared::Shared,
};

/// Whether the run that controls a workflow is yet to note how it ended. Until then the finalizer of the
/// workflow stays, so that its end is not lost.
pub(crate) async fn is_awaited(
    shared: &Shared,
    workflow: &WorkflowObject,
) -> Result<bool, ClusterError> {
    let Some(run) = controlling(shared, workflow) else {
        return Ok(false);
    };
    let name = kube::ResourceExt::name_any(workflow);
    match read(shared, workflow, run).await {
        Ok(Some(found)) => Ok(found
            .read(run.form)
            .is_ok_and(|run| run.status.awaits(&name))),
        Ok(None) => Ok(false),
        // Who may not see the run does not note anything on it either.
        Err(ClusterError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the run that controls a workflow is gone. A garbage collector deletes the workflow too, where the
/// cluster has one.
pub(crate) async fn is_abandoned(
    shared: &Shared,
    workflow: &WorkflowObject,
) -> Result<bool, ClusterError> {
    let Some(run) = controlling(shared, workflow) else {
        return Ok(false);
    };
    let namespace = kube::ResourceExt::namespace(workflow).unwrap_or_default();
    if shared.following.knows(&namespace, run) {
        return Ok(false);
    }
    match read(shared, workflow, run).await {
        Ok(found) => Ok(found.is_none()),
        Err(ClusterError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn controlling<'w>(shared: &Shared, workflow: &'w WorkflowObject) -> Option<&'w OwningRun> {
    workflow.run.as_ref().filter(|_| shared.config.custom_tasks)
}

async fn read(
    shared: &Shared,
    workflow: &WorkflowObject,
    run: &OwningRun,
) -> Result<Option<RunObject>, ClusterError> {
    let namespace = kube::ResourceExt::namespace(workflow).unwrap_or_default();
    shared
        .cluster
        .run(run.form, &namespace, &run.name, &run.uid)
        .await
}
