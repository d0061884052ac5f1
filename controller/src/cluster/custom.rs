//! What is asked of the API server about custom runs, and about the workflows that they control.

use hindsight_cluster::{ClusterError, call};
use hindsight_workflow::custom::{CustomRun, Form, Owned, OwnedSeen, TemplateSeen};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde_json::Value;

use super::{Cluster, posted};
use crate::object::{RunObject, WorkflowObject};

impl Cluster {
    /// The runs that are followed, those of others among them.
    pub(crate) fn runs(&self, form: Form) -> Api<RunObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &form),
            None => Api::all_with(self.client.clone(), &form),
        }
    }

    fn runs_in(&self, form: Form, namespace: &str) -> Api<RunObject> {
        Api::namespaced_with(self.client.clone(), namespace, &form)
    }

    /// Whether the cluster has the kind.
    pub(crate) async fn has(&self, form: Form) -> Result<bool, ClusterError> {
        has(&self.runs(form)).await
    }

    /// The run, if it is there and still the one with this UID.
    pub(crate) async fn run(
        &self,
        form: Form,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Option<RunObject>, ClusterError> {
        match call(self.runs_in(form, namespace).get(name)).await {
            Ok(object) => {
                let is_it = kube::Resource::meta(&object).uid.as_deref() == Some(uid);
                Ok(is_it.then_some(object))
            }
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status of a run; of its version alone.
    pub(crate) async fn write_run_status(
        &self,
        of: &CustomRun,
        object: &RunObject,
    ) -> Result<RunObject, ClusterError> {
        self.turn().await;
        let api = self.runs_in(of.form, &of.namespace);
        call(api.replace_status(&of.name, &posted(), object)).await
    }

    /// The workflow of this name.
    pub(crate) async fn owned(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<OwnedSeen, ClusterError> {
        match call(self.workflows_in(namespace).get(name)).await {
            Ok(found) => Ok(OwnedSeen::There(read_owned(&found)?)),
            Err(ClusterError::Moved) => Ok(OwnedSeen::Gone),
            Err(error) => Err(error),
        }
    }

    /// The spec of the workflow of this name.
    pub(crate) async fn template(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<TemplateSeen, ClusterError> {
        match call(self.workflows_in(namespace).get(name)).await {
            Ok(found) => Ok(match found.value() {
                Ok(value) => TemplateSeen::There(value["spec"].clone()),
                Err(why) => TemplateSeen::Unreadable(format!("{name}: {why}")),
            }),
            Err(ClusterError::Moved) => Ok(TemplateSeen::Gone),
            Err(error) => Err(error),
        }
    }

    /// Creates a workflow. One of this name that is there already is as good: whose it is, it says itself.
    /// Returns also whether it was created here.
    pub(crate) async fn create_workflow(
        &self,
        namespace: &str,
        manifest: &Value,
    ) -> Result<(OwnedSeen, bool), ClusterError> {
        self.turn().await;
        let object = WorkflowObject::of(manifest).map_err(unreadable)?;
        match call(self.workflows_in(namespace).create(&posted(), &object)).await {
            Ok(object) => Ok((OwnedSeen::There(read_owned(&object)?), true)),
            // There is one of the name, or the namespace or the kind is not there any more.
            Err(ClusterError::Moved) => {
                let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
                match self.owned(namespace, name).await? {
                    OwnedSeen::Gone => Err(ClusterError::Moved),
                    seen => Ok((seen, false)),
                }
            }
            // What the run says is not valid, and will not be.
            Err(ClusterError::Refused {
                code: 400 | 422,
                message,
            }) => Ok((OwnedSeen::Refused(message), false)),
            Err(error) => Err(error),
        }
    }

    /// Deletes a workflow, if it still is the one with this UID. One that is gone is as good.
    pub(crate) async fn delete_workflow(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(), ClusterError> {
        self.turn().await;
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        });
        match call(self.workflows_in(namespace).delete(name, &params)).await {
            Ok(_) | Err(ClusterError::Moved) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the cluster has a kind.
pub(super) async fn has<K>(api: &Api<K>) -> Result<bool, ClusterError>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match call(api.list(&ListParams::default().limit(1))).await {
        Ok(_) => Ok(true),
        Err(ClusterError::Moved) => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_owned(object: &WorkflowObject) -> Result<Owned, ClusterError> {
    let value = object.value().map_err(unreadable)?;
    Owned::read(&value).map_err(unreadable)
}

pub(super) fn unreadable(message: String) -> ClusterError {
    ClusterError::Refused { code: 0, message }
}
