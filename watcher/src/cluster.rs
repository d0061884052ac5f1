//! The few things that are asked of the Kubernetes API about one object.

mod finalizers;
mod logs;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use hindsight_cluster::DEADLINE;
use hindsight_run::{Kind, keys};

use crate::{
    list_watch::{Failure, Phase, read},
    object::Object,
};
pub(crate) use finalizers::Held;
pub(crate) use hindsight_cluster::{ClusterError, call};
pub(crate) use logs::LogOf;

/// How many events are read at once.
const EVENTS_A_PAGE: u32 = 500;

/// The cluster, as far as single objects go.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    namespace: Option<String>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Names one object in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What the cluster knows of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is served in no version.
    Absent,
    /// It is served, but in these versions alone.
    OtherVersions(Vec<String>),
    /// Its objects are in namespaces.
    Namespaced,
    /// Its objects are in none.
    ClusterScoped,
}

impl Cluster {
    pub(crate) fn new(client: Client, namespace: Option<String>) -> Self {
        let client = hindsight_cluster::kept(client);
        Self { client, namespace }
    }

    /// Whether the cluster has `kind`.
    pub(crate) async fn find(&self, kind: &Kind) -> Result<Found, Failure> {
        let version = kind.api_version();
        let discover = async {
            match kind.group {
                "" => self.client.list_core_api_resources(&version).await,
                _ => self.client.list_api_group_resources(&version).await,
            }
        };
        match read(Phase::Discovery, DEADLINE, discover).await {
            Ok(list) => {
                let found = list.resources.iter().find(|r| r.name == kind.plural);
                Ok(match found {
                    None => self.elsewhere(kind).await,
                    Some(resource) if resource.namespaced => Found::Namespaced,
                    Some(_) => Found::ClusterScoped,
                })
            }
            Err(failure) if failure.is_missing() => Ok(self.elsewhere(kind).await),
            // Discovery may be closed to us where lists are not.
            Err(failure) if failure.is_forbidden() => {
                let (api, one) = (self.watched(kind), ListParams::default().limit(1));
                match read(Phase::Discovery, DEADLINE, api.list(&one)).await {
                    Ok(_) => Ok(Found::Namespaced),
                    Err(failure) if failure.is_missing() => Ok(Found::Absent),
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// The other versions in which `kind` is served, as far as discovery tells.
    async fn elsewhere(&self, kind: &Kind) -> Found {
        if kind.group.is_empty() {
            return Found::Absent;
        }
        let groups = read(Phase::Discovery, DEADLINE, self.client.list_api_groups()).await;
        let groups = groups.map(|list| list.groups).unwrap_or_default();
        let group = groups.into_iter().find(|group| group.name == kind.group);
        let mut found = Vec::new();
        for version in group.into_iter().flat_map(|group| group.versions) {
            let resources = self.client.list_api_group_resources(&version.group_version);
            let resources = read(Phase::Discovery, DEADLINE, resources).await;
            if resources.is_ok_and(|list| list.resources.iter().any(|r| r.name == kind.plural)) {
                found.push(version.version);
            }
        }
        match found.is_empty() {
            true => Found::Absent,
            false => Found::OtherVersions(found),
        }
    }

    /// All watched objects of `kind`.
    pub(crate) fn watched(&self, kind: &Kind) -> Api<Object> {
        let resource = resource(kind);
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// The leases of a namespace, or of the one that we are in.
    pub(crate) fn leases(&self, namespace: Option<&str>) -> Api<Lease> {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::default_namespaced(self.client.clone()),
        }
    }

    /// The UID of the namespace `kube-system`, by which clusters are told apart; `None` if there is
    /// no such namespace.
    pub(crate) async fn identity(&self) -> Result<Option<String>, ClusterError> {
        match call(self.namespaces().get("kube-system")).await {
            Ok(found) => Ok(found.meta().uid.clone()),
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn namespaces(&self) -> Api<Object> {
        Api::all_with(self.client.clone(), &namespace())
    }

    fn api(&self, at: &Address) -> Api<Object> {
        Api::namespaced_with(self.client.clone(), &at.namespace, &resource(at.kind))
    }

    /// The object as it is now.
    pub(crate) async fn get(&self, at: &Address) -> Result<Option<Value>, ClusterError> {
        match call(self.api(at).get(&at.name)).await {
            Ok(object) => Ok(Some(object.into_value(&resource(at.kind)))),
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts annotations on the object, beside those that are there, and returns it.
    ///
    /// It is a merge patch, which makes no object. Because the UID is part of it, it cannot hit
    /// another object of the same name.
    pub(crate) async fn annotate(
        &self,
        at: &Address,
        uid: &str,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Value, ClusterError> {
        let patch = json!({"metadata": {"uid": uid, "annotations": annotations}});
        self.merge(at, keys::FIELD_MANAGER, patch).await
    }

    async fn merge(
        &self,
        at: &Address,
        manager: &str,
        patch: Value,
    ) -> Result<Value, ClusterError> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let object = call(self.api(at).patch(&at.name, &params, &Patch::Merge(patch))).await?;
        Ok(object.into_value(&resource(at.kind)))
    }

    /// The events that match, and the version of the list.
    pub(crate) async fn events(
        &self,
        namespace: &str,
        fields: &str,
    ) -> Result<(Vec<Value>, String), ClusterError> {
        let resource = event_resource();
        let api: Api<Object> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let mut params = ListParams::default().fields(fields).limit(EVENTS_A_PAGE);
        let mut events = Vec::new();
        loop {
            let page = call(api.list(&params)).await?;
            let items = page.items.into_iter();
            events.extend(items.map(|event| event.into_value(&resource)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok((events, page.metadata.resource_version.unwrap_or_default())),
            }
        }
    }

    /// Tells those who look at the object that something is wrong with it.
    pub(crate) async fn write_event(
        &self,
        at: &Address,
        uid: &str,
        now: Timestamp,
        message: &str,
    ) -> Result<(), ClusterError> {
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            // Of this name there is one for each run, however often the watcher starts.
            "metadata": {"name": format!("{}.not-stored", uid), "namespace": at.namespace},
            "involvedObject": {
                "apiVersion": at.kind.api_version(), "kind": at.kind.kind,
                "namespace": at.namespace, "name": at.name, "uid": uid,
            },
            "type": "Warning",
            "reason": "NotStored",
            "message": message,
            "source": {"component": "hindsight-watcher"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        let api: Api<Object> =
            Api::namespaced_with(self.client.clone(), &at.namespace, &event_resource());
        let event = serde_json::from_value(event).expect("an event is an object");
        call(api.create(&PostParams::default(), &event))
            .await
            .map(|_| ())
    }

    /// Deletes the object if it has this UID and version, and what it owns in the background.
    pub(crate) async fn delete(
        &self,
        at: &Address,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), ClusterError> {
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(resource_version.to_owned()),
        });
        call(self.api(at).delete(&at.name, &params))
            .await
            .map(|_| ())
    }
}

/// How RBAC and kubectl call what is `name` in an API group.
pub(crate) fn full_name(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{name}.{group}"),
    }
}

/// How `kind` is called in URLs.
pub(crate) fn resource(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// How events are called in URLs.
fn event_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Event"), "events")
}

/// How namespaces are called in URLs.
pub(crate) fn namespace() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Namespace"), "namespaces")
}

#[cfg(test)]
mod tests;
