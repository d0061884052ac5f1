//! Finalizers: put on, taken off, and looked for.

use std::collections::BTreeMap;

use hindsight_run::{Kind, keys};
use kube::{
    api::{ListParams, Patch, PatchParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};

use super::{Address, Cluster, resource};
use crate::cluster::{ClusterError, call};

/// How many objects are looked at at once for their finalizers.
const HELD_A_PAGE: u32 = 500;

/// Field manager of finalizers; Tekton Results' watcher takes off what this one put on.
const FINALIZERS: &str = "tekton-results-watcher/finalizers";

/// An object with finalizers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) finalizers: Vec<String>,
}

impl Held {
    fn of(meta: ObjectMeta) -> Option<Self> {
        Some(Self {
            namespace: meta.namespace.unwrap_or_default(),
            name: meta.name?,
            uid: meta.uid?,
            version: meta.resource_version?,
            finalizers: meta.finalizers.filter(|all| !all.is_empty())?,
        })
    }
}

impl Cluster {
    /// Puts a finalizer on the object, and returns it.
    ///
    /// It is one forced server-side apply. Because the UID is part of it, it can neither hit
    /// another object of the same name nor make one.
    pub(crate) async fn add_finalizer(
        &self,
        at: &Address,
        uid: &str,
        finalizer: &str,
    ) -> Result<Value, ClusterError> {
        let patch = json!({
            "apiVersion": at.kind.api_version(),
            "kind": at.kind.kind,
            "metadata": {
                "name": at.name, "namespace": at.namespace, "uid": uid,
                "finalizers": [finalizer],
            },
        });
        let params = PatchParams::apply(FINALIZERS).force();
        let object = call(self.api(at).patch(&at.name, &params, &Patch::Apply(patch))).await?;
        Ok(object.into_value(&resource(at.kind)))
    }

    /// Leaves only the finalizers `left` on the object, whoever put the others there, and puts
    /// `annotations` on it, in one write, if it has this UID and version, and returns it.
    pub(crate) async fn remove_finalizers(
        &self,
        at: &Address,
        uid: &str,
        resource_version: &str,
        left: &[String],
        annotations: &BTreeMap<String, String>,
    ) -> Result<Value, ClusterError> {
        let mut patch = json!({
            "metadata": {
                "uid": uid, "resourceVersion": resource_version, "finalizers": left,
            },
        });
        let mut manager = FINALIZERS;
        if !annotations.is_empty() {
            patch["metadata"]["annotations"] = json!(annotations);
            manager = keys::FIELD_MANAGER;
        }
        self.merge(at, manager, patch).await
    }

    /// A page of the objects of `kind` that have finalizers, and the token of the next one.
    pub(crate) async fn held(
        &self,
        kind: &Kind,
        token: Option<String>,
    ) -> Result<(Vec<Held>, Option<String>), ClusterError> {
        let mut params = ListParams::default().limit(HELD_A_PAGE);
        params.continue_token = token;
        let page = call(self.watched(kind).list_metadata(&params)).await?;
        let held = page
            .items
            .into_iter()
            .filter_map(|item| Held::of(item.metadata));
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        Ok((held.collect(), next))
    }

    /// The finalizers of one object, if it is there and has some.
    pub(crate) async fn held_by(&self, at: &Address) -> Result<Option<Held>, ClusterError> {
        match call(self.api(at).get_metadata(&at.name)).await {
            Ok(found) => Ok(Held::of(found.metadata)),
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
