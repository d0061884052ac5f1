//! Calls on RayCluster objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use hindsight_cluster::ConnectError;
use hindsight_proto::ray_v1::{Cluster, ComputeTemplate};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

use crate::{
    api::{call, is_missing, no_kind, no_namespace},
    check,
    error::{Error, invalid, unspecified},
    events,
    names::{MANAGED_BY, MANAGER, is_namespace, is_subdomain},
    object,
};

const PLURAL: &str = "rayclusters";

/// Clusters of Ray and compute templates of one Kubernetes cluster. A cluster is managed if it has the label that is
/// written here. Clones share connections.
#[derive(Clone)]
pub struct Clusters {
    pub(crate) client: Client,
    kind: ApiResource,
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").finish_non_exhaustive()
    }
}

/// A part of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Most clusters of the page; 0 for all that are left.
    pub limit: i64,
    /// [`Listed::next`] of the page before; empty for the first page.
    pub token: String,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// The clusters, by namespace and name.
    pub clusters: Vec<Cluster>,
    /// Token of the next page; empty on the last page.
    pub next: String,
}

impl Clusters {
    /// Connects to the cluster of `kubeconfig`, else to that of the environment: `KUBECONFIG`, or the pod.
    ///
    /// # Errors
    /// If no cluster is configured, or the configuration is not valid.
    pub async fn connect(kubeconfig: Option<PathBuf>) -> Result<Self, ConnectError> {
        hindsight_cluster::choose_cryptography();
        Ok(Self::over(hindsight_cluster::connect(kubeconfig).await?))
    }

    /// Calls a cluster by `client`.
    #[must_use]
    pub fn over(client: Client) -> Self {
        let kind = GroupVersionKind::gvk("ray.io", "v1", "RayCluster");
        let kind = ApiResource::from_gvk_with_plural(&kind, PLURAL);
        Self { client, kind }
    }

    fn of(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.kind)
    }

    /// Creates the RayCluster object of a cluster in `namespace`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the cluster is not valid or names an unknown template, [`Error::Missing`] if there is no
    /// such namespace, [`Error::Exists`] if the name is taken.
    pub async fn create(
        &self,
        namespace: &str,
        cluster: Option<Cluster>,
        now: Timestamp,
    ) -> Result<Cluster, Error> {
        check_namespace(namespace)?;
        let cluster =
            cluster.ok_or_else(|| invalid("A Cluster object is required. Please specify one."))?;
        check::cluster(&cluster, namespace)?;
        let templates = self.templates_of(&cluster).await?;
        let wanted = object::ray_cluster(&cluster, &templates, now);
        let wanted: DynamicObject = serde_json::from_value(wanted).map_err(|error| {
            invalid(format!(
                "the cluster is not valid as an object of Kubernetes: {error}"
            ))
        })?;
        let made = self.of(namespace);
        let params = PostParams::default();
        let made = call(made.create(&params, &wanted), |status| match status.code {
            409 => {
                let name = &cluster.name;
                Some(Error::Exists(format!(
                    "Cluster with name {name} already exists in namespace {namespace}"
                )))
            }
            _ => no_namespace(status).or_else(|| no_kind(status)),
        });
        Ok(object::read(&to_json(&made.await?)))
    }

    /// The templates of the groups of a cluster, by their names.
    async fn templates_of(
        &self,
        cluster: &Cluster,
    ) -> Result<BTreeMap<String, ComputeTemplate>, Error> {
        let spec = cluster.cluster_spec.iter();
        let names: BTreeSet<_> = spec
            .flat_map(|spec| {
                let head = spec
                    .head_group_spec
                    .iter()
                    .map(|head| &head.compute_template);
                head.chain(
                    spec.worker_group_spec
                        .iter()
                        .map(|group| &group.compute_template),
                )
            })
            .filter(|name| !name.is_empty())
            .collect();
        let mut found = BTreeMap::new();
        for name in names {
            let namespace = &cluster.namespace;
            let template = self
                .template(namespace, name)
                .await
                .map_err(|error| match error {
                    Error::Missing(_) => invalid(format!(
                        "Cannot get compute template for name '{name}' in namespace '{namespace}'"
                    )),
                    other => other,
                })?;
            found.insert(name.clone(), template);
        }
        Ok(found)
    }

    /// A managed cluster with its events.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such cluster, or it is not managed.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<Cluster, Error> {
        let object = self.managed(namespace, name).await?;
        let api = Api::namespaced(self.client.clone(), namespace);
        let mut found = self.with_events(api, vec![object], Some(name)).await?;
        found.pop().ok_or_else(|| missing(name))
    }

    /// The RayCluster object of a managed cluster.
    async fn managed(&self, namespace: &str, name: &str) -> Result<DynamicObject, Error> {
        named(name)?;
        check_namespace(namespace)?;
        let api = self.of(namespace);
        let gone = |status: &_| {
            is_missing(status, PLURAL)
                .then(|| missing(name))
                .or_else(|| no_kind(status))
        };
        let object = call(api.get(name), gone).await?;
        match object::is_managed(&to_json(&object)) {
            true => Ok(object),
            false => Err(Error::Missing(format!(
                "Cluster {name} not found: RayCluster with name {name} not managed by kuberay-apiserver"
            ))),
        }
    }

    /// The managed clusters of one namespace or of all.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit or token that is not valid, or a token that expired.
    pub async fn list(&self, namespace: Option<&str>, page: &Page) -> Result<Listed, Error> {
        if let Some(namespace) = namespace {
            check_namespace(namespace)?;
        }
        let limit =
            u32::try_from(page.limit).map_err(|_out| invalid("limit is negative or too large"))?;
        let mut params = ListParams::default().labels(&format!("{}={}", MANAGED_BY, MANAGER));
        if limit > 0 {
            params = params.limit(limit);
        }
        if !page.token.is_empty() {
            params = params.continue_token(&page.token);
        }
        let (api, events) = match namespace {
            Some(namespace) => (
                self.of(namespace),
                Api::namespaced(self.client.clone(), namespace),
            ),
            None => (
                Api::all_with(self.client.clone(), &self.kind),
                Api::all(self.client.clone()),
            ),
        };
        let mut listed = call(api.list(&params), no_kind).await?;
        // Some servers filter by labels after they have cut the page.
        listed
            .items
            .retain(|object| object::is_managed(&to_json(object)));
        Ok(Listed {
            clusters: self.with_events(events, listed.items, None).await?,
            next: listed.metadata.continue_.unwrap_or_default(),
        })
    }

    /// The clusters of these objects, with the events about them.
    async fn with_events(
        &self,
        api: Api<Event>,
        objects: Vec<DynamicObject>,
        name: Option<&str>,
    ) -> Result<Vec<Cluster>, Error> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let mut about = "involvedObject.kind=RayCluster".to_owned();
        if let Some(name) = name {
            about = format!("{about},involvedObject.name={name}");
        }
        let events = call(api.list(&ListParams::default().fields(&about)), |_| None).await?;
        let mut events = events::by_object(events.items);
        let with = objects.iter().map(|object| {
            let metadata = &object.metadata;
            let key = (
                metadata.namespace.clone().unwrap_or_default(),
                metadata.uid.clone().unwrap_or_default(),
            );
            let events = events.remove(&key).unwrap_or_default();
            Cluster {
                events,
                ..object::read(&to_json(object))
            }
        });
        Ok(with.collect())
    }

    /// Deletes the RayCluster object of a managed cluster; jobs stay.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such cluster, or it is not managed.
    pub async fn delete(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let object = self.managed(namespace, name).await?;
        let same = Preconditions {
            uid: object.metadata.uid,
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::default()
        };
        let api = self.of(namespace);
        // 409: a cluster that was made since has the name.
        let gone =
            |status: &kube::core::Status| matches!(status.code, 404 | 409).then(|| missing(name));
        call(api.delete(name, &params), gone).await.map(drop)
    }
}

fn missing(name: &str) -> Error {
    Error::Missing(format!("Cluster {name} not found"))
}

fn named(name: &str) -> Result<(), Error> {
    match name {
        "" => Err(unspecified("Cluster name is empty")),
        name if !is_name(name) => Err(missing(name)),
        _ => Ok(()),
    }
}

/// Whether an object may have this name: a DNS subdomain.
#[must_use]
pub fn is_name(name: &str) -> bool {
    is_subdomain(name)
}

/// Checks the namespace of a request.
///
/// # Errors
/// [`Error::Invalid`] if it is not the name of a namespace.
pub fn check_namespace(namespace: &str) -> Result<(), Error> {
    match namespace {
        "" => Err(unspecified("Namespace is empty")),
        name if !is_namespace(name) => {
            Err(invalid(format!("`{name}` is not the name of a namespace")))
        }
        _ => Ok(()),
    }
}

fn to_json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
