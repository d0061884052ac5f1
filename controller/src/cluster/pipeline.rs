//! What is asked of the API server about delegated PipelineRuns and their children.

use hindsight_cluster::{ClusterError, call};
use hindsight_workflow::pipeline::{ChildKind, ChildName, ChildSeen, PipelineRun};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tracing::debug;

use super::{
    Cluster, NAME,
    custom::{has, unreadable},
    posted,
};
use crate::object::pipeline::{ChildObject, PipelineObject};

impl Cluster {
    /// The PipelineRuns that are followed, those of others among them.
    pub(crate) fn pipeline_runs(&self) -> Api<PipelineObject> {
        self.watched()
    }

    fn pipeline_runs_in(&self, namespace: &str) -> Api<PipelineObject> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// All children of PipelineRuns that are followed, and others.
    pub(crate) fn children(&self, kind: ChildKind) -> Api<ChildObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        }
    }

    fn children_in(&self, kind: ChildKind, namespace: &str) -> Api<ChildObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }

    /// Whether the cluster has PipelineRuns and the kinds of their children.
    pub(crate) async fn has_pipeline_runs(&self) -> Result<bool, ClusterError> {
        for kind in ChildKind::ALL {
            if !has(&self.children(kind)).await? {
                return Ok(false);
            }
        }
        has(&self.pipeline_runs()).await
    }

    /// The PipelineRun, if it is there and still the one with this UID.
    pub(crate) async fn pipeline_run(
        &self,
        of: &PipelineRun,
    ) -> Result<Option<PipelineObject>, ClusterError> {
        match call(self.pipeline_runs_in(&of.namespace).get(&of.name)).await {
            Ok(object) => {
                let is_it = kube::Resource::meta(&object).uid.as_deref() == Some(of.uid.as_str());
                Ok(is_it.then_some(object))
            }
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status of a PipelineRun; of its version alone.
    pub(crate) async fn write_pipeline_status(
        &self,
        of: &PipelineRun,
        object: &PipelineObject,
    ) -> Result<PipelineObject, ClusterError> {
        self.turn().await;
        let api = self.pipeline_runs_in(&of.namespace);
        call(api.replace_status(&of.name, &posted(), object)).await
    }

    /// The child of this name.
    pub(crate) async fn child(
        &self,
        namespace: &str,
        name: &ChildName,
    ) -> Result<ChildSeen, ClusterError> {
        match call(self.children_in(name.kind, namespace).get(&name.name)).await {
            Ok(found) => found.child.map(ChildSeen::There).map_err(unreadable),
            Err(ClusterError::Moved) => Ok(ChildSeen::Gone),
            Err(error) => Err(error),
        }
    }

    /// Creates a child. One of this name that is there already is as good: whose it is, it says itself. Returns
    /// also whether it was created here.
    pub(crate) async fn create_child(
        &self,
        namespace: &str,
        name: &ChildName,
        manifest: &Value,
    ) -> Result<(ChildSeen, bool), ClusterError> {
        self.turn().await;
        let body = serde_json::to_vec(manifest).map_err(|error| unreadable(error.to_string()))?;
        let url = format!(
            "/apis/{}/{}/namespaces/{namespace}/{}",
            ChildKind::GROUP,
            name.kind.version(),
            name.kind.plural()
        );
        let request = kube::core::Request::new(url).create(&posted(), body);
        let request = request.map_err(|error| unreadable(error.to_string()))?;
        match call(self.client.request::<ChildObject>(request)).await {
            Ok(made) => Ok((ChildSeen::There(made.child.map_err(unreadable)?), true)),
            // There is one of the name, or the namespace or the kind is not there any more.
            Err(ClusterError::Moved) => match self.child(namespace, name).await? {
                ChildSeen::Gone => Err(ClusterError::Moved),
                seen => Ok((seen, false)),
            },
            // What the task says is not valid, and will not be.
            Err(ClusterError::Refused {
                code: 400 | 422,
                message,
            }) => Ok((ChildSeen::Refused(message), false)),
            Err(error) => Err(error),
        }
    }

    /// Asks a child to end, if it still is the one with this UID. Returns whether it was asked: one that is gone
    /// or has ended, whose spec Tekton does not let change, is as good.
    pub(crate) async fn cancel_child(
        &self,
        namespace: &str,
        name: &ChildName,
        uid: &str,
        message: &str,
    ) -> Result<bool, ClusterError> {
        self.turn().await;
        let patch = json!({
            "metadata": {"uid": uid},
            "spec": {"status": name.kind.cancelled(), "statusMessage": message},
        });
        let params = PatchParams {
            field_manager: Some(NAME.to_owned()),
            ..PatchParams::default()
        };
        let api = self.children_in(name.kind, namespace);
        match call(api.patch(&name.name, &params, &Patch::Merge(patch))).await {
            Ok(_) => Ok(true),
            Err(ClusterError::Moved) => Ok(false),
            Err(ClusterError::Refused {
                code: 400 | 422,
                message,
            }) => {
                debug!(
                    child.namespace = namespace,
                    child.name = name.name,
                    "not cancelled: {message}"
                );
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
