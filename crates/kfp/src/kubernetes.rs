//! The store whose pipelines and versions are objects of the Kubernetes API, and nothing else.
//!
//! Every answer is read from the API server at the time of the request, so what `kubectl` makes or deletes is seen at
//! once. Filters, orders and pages are those of [`Query::page`].

mod calls;
mod find;
mod object;

use std::{collections::HashMap, fmt, sync::Mutex};

use async_trait::async_trait;
use hindsight_runtime::error::report;
use kube::Client;
use serde_json::{Value, json};
use tracing::warn;

pub use find::{Reference, find_pipeline};
pub use object::{
    API_VERSION, CONDITION, GROUP, ORIGINAL_ID, PIPELINE, PIPELINE_ID_LABEL, PIPELINE_LABEL,
    PIPELINE_VERSION, PIPELINE_VERSIONS, PIPELINES, VERSION, condition, labels,
};

use crate::{
    error::Error,
    model::{Change, NewPipeline, NewVersion, Pipeline, PipelineVersion},
    names,
    query::{Page, Query, Scope},
    store::PipelineStore,
};
use calls::{Calls, Deleted};
use find::Room;
use object::{PipelineObject, VersionObject};

/// How often a change of an object is tried while others change it.
const TRIES: usize = 5;

/// Pipelines and versions as objects of one Kubernetes cluster.
pub struct KubernetesStore {
    client: Client,
    /// The namespace of requests that name none, and the only one unless `all_namespaces`.
    namespace: String,
    all_namespaces: bool,
    /// Namespace and name of objects by uid: where to look first, and never an answer.
    places: Mutex<HashMap<String, (String, String)>>,
}

impl fmt::Debug for KubernetesStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesStore")
            .field("namespace", &self.namespace)
            .field("all_namespaces", &self.all_namespaces)
            .finish_non_exhaustive()
    }
}

impl KubernetesStore {
    /// The objects of one namespace, whatever namespace requests name.
    #[must_use]
    pub fn of_namespace(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            all_namespaces: false,
            places: Mutex::default(),
        }
    }

    /// The objects of all namespaces, for servers with many users; requests that name none are about `namespace`.
    #[must_use]
    pub fn of_cluster(client: Client, namespace: &str) -> Self {
        Self {
            all_namespaces: true,
            ..Self::of_namespace(client, namespace)
        }
    }

    fn namespace_of<'a>(&'a self, asked: &'a str) -> &'a str {
        match self.all_namespaces && !asked.is_empty() {
            true => asked,
            false => &self.namespace,
        }
    }

    /// Creates a Pipeline object.
    async fn new_pipeline(&self, new: &NewPipeline) -> Result<PipelineObject, Error> {
        names::check_pipeline_object(&new.name)?;
        if self.all_namespaces && new.namespace.is_empty() {
            return Err(Error::invalid("A namespace is required"));
        }
        let namespace = self.namespace_of(&new.namespace);
        names::check_namespace(namespace)?;
        let object = object::new_pipeline(namespace, new);
        let made = Calls::pipelines(&self.client, Some(namespace))
            .create(&object)
            .await?;
        let made: PipelineObject = made.ok_or_else(|| Error::pipeline_exists(&new.name))?;
        self.remember(&made.metadata);
        Ok(made)
    }

    /// Creates a PipelineVersion object.
    async fn new_version(
        &self,
        pipeline: &PipelineObject,
        new: &NewVersion,
    ) -> Result<VersionObject, Error> {
        let name = names::version_object(&pipeline.metadata.name, &new.name)?;
        let object = object::new_version(&name, pipeline, new);
        let calls = Calls::versions(&self.client, Some(&pipeline.metadata.namespace));
        let made: Option<VersionObject> = calls.create(&object).await?;
        let made = made.ok_or_else(|| Error::version_exists(&new.name))?;
        self.remember(&made.metadata);
        if !made.has_condition() {
            // The definition that others install has no default; the version can be used all the same.
            let written = calls
                .merge_status(&made.metadata.name, &object::ready())
                .await;
            if let Err(error) = written {
                let error = report(&error);
                warn!(error, "the condition of version `{name}` is not written");
            }
        }
        Ok(made)
    }
}

/// The merge patch that a change is for an object of this version with tags of these keys.
fn patch(metadata: &object::Metadata, keys: &[String], change: &Change) -> Value {
    let mut spec = json!({});
    if let Some(display_name) = &change.display_name {
        spec["displayName"] = json!(display_name);
    }
    if let Some(tags) = &change.tags {
        let gone = keys.iter().filter(|key| !tags.contains_key(*key));
        let mut all: serde_json::Map<_, _> = gone.map(|key| (key.clone(), Value::Null)).collect();
        all.extend(tags.iter().map(|(key, value)| (key.clone(), json!(value))));
        spec["tags"] = Value::Object(all);
    }
    let version = &metadata.resource_version;
    json!({"metadata": {"uid": metadata.uid, "resourceVersion": version}, "spec": spec})
}

#[async_trait]
impl PipelineStore for KubernetesStore {
    fn kind(&self) -> &'static str {
        "kubernetes"
    }

    fn default_namespace(&self) -> &str {
        &self.namespace
    }

    async fn create_pipeline(&self, pipeline: NewPipeline) -> Result<Pipeline, Error> {
        Ok(self.new_pipeline(&pipeline).await?.read())
    }

    async fn create_version(
        &self,
        pipeline_id: &str,
        version: NewVersion,
    ) -> Result<PipelineVersion, Error> {
        let pipeline = self.pipeline_object(pipeline_id).await?;
        if self.has_version(&pipeline, &version.name).await? {
            return Err(Error::version_exists(&version.name));
        }
        let made = self.new_version(&pipeline, &version).await?;
        Ok(made.read(pipeline_id))
    }

    async fn create_both(
        &self,
        pipeline: NewPipeline,
        version: NewVersion,
    ) -> Result<(Pipeline, PipelineVersion), Error> {
        names::version_object(&pipeline.name, &version.name)?;
        let made = self.new_pipeline(&pipeline).await?;
        match self.new_version(&made, &version).await {
            Ok(version) => Ok((made.read(), version.read(&made.metadata.uid))),
            Err(error) => {
                let object::Metadata {
                    namespace,
                    name,
                    uid,
                    ..
                } = &made.metadata;
                let calls = Calls::pipelines(&self.client, Some(namespace));
                if let Err(left) = calls.delete(name, uid).await {
                    let error = report(&left);
                    warn!(
                        error,
                        "pipeline `{namespace}/{name}` is left without the version that was to be made"
                    );
                }
                Err(error)
            }
        }
    }

    async fn pipeline(&self, id: &str) -> Result<Pipeline, Error> {
        Ok(self.pipeline_object(id).await?.read())
    }

    async fn pipeline_by_name(&self, namespace: &str, name: &str) -> Result<Pipeline, Error> {
        let namespace = self.namespace_of(namespace);
        let missing = || Error::no_pipeline_named(namespace, name);
        // Anything else would be another path of the API.
        names::check_pipeline_object(name).map_err(|_no_object| missing())?;
        names::check_namespace(namespace)?;
        let calls = Calls::pipelines(&self.client, Some(namespace));
        let found: Option<PipelineObject> = calls.get(name).await?;
        let found = found.ok_or_else(missing)?;
        self.remember(&found.metadata);
        Ok(found.read())
    }

    async fn version(&self, pipeline_id: &str, id: &str) -> Result<PipelineVersion, Error> {
        let (_, version) = self.version_object(pipeline_id, id).await?;
        Ok(version.read(pipeline_id))
    }

    async fn pipelines(&self, query: &Query) -> Result<Page<Pipeline>, Error> {
        let asked = match &query.scope {
            Scope::Pipelines { namespace } => namespace.as_str(),
            Scope::Versions { .. } => "",
        };
        let namespace = match self.all_namespaces && asked.is_empty() {
            true => None,
            false => Some(self.namespace_of(asked)),
        };
        if let Some(namespace) = namespace {
            names::check_namespace(namespace)?;
        }
        let page = query.page(self.all_pipelines(namespace).await?);
        for pipeline in &page.items {
            self.remember(&pipeline.metadata);
        }
        Ok(Page {
            items: page.items.iter().map(PipelineObject::read).collect(),
            total: page.total,
            next: page.next,
        })
    }

    async fn versions(&self, query: &Query) -> Result<Page<PipelineVersion>, Error> {
        let id = match &query.scope {
            Scope::Versions { pipeline_id } => pipeline_id.as_str(),
            Scope::Pipelines { .. } => "",
        };
        let pipeline = self.pipeline_object(id).await?;
        let versions = self.version_objects(&pipeline, Room::of(query)).await?;
        let page = query.page(versions);
        for version in &page.items {
            self.remember(&version.metadata);
        }
        let items = self.with_documents(page.items).await?;
        Ok(Page {
            items: items.iter().map(|version| version.read(id)).collect(),
            total: page.total,
            next: page.next,
        })
    }

    async fn update_pipeline(&self, id: &str, change: Change) -> Result<Pipeline, Error> {
        for _ in 0..TRIES {
            let found = self.pipeline_object(id).await?;
            let patch = patch(&found.metadata, &found.tag_keys(), &change);
            let calls = Calls::pipelines(&self.client, Some(&found.metadata.namespace));
            let changed: Option<PipelineObject> = calls.merge(&found.metadata.name, &patch).await?;
            if let Some(changed) = changed {
                return Ok(changed.read());
            }
        }
        Err(contended("pipeline", id))
    }

    async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: Change,
    ) -> Result<PipelineVersion, Error> {
        for _ in 0..TRIES {
            let (_, found) = self.version_object(pipeline_id, id).await?;
            let patch = patch(&found.metadata, &found.tag_keys(), &change);
            let calls = Calls::versions(&self.client, Some(&found.metadata.namespace));
            let changed: Option<VersionObject> = calls.merge(&found.metadata.name, &patch).await?;
            if let Some(changed) = changed {
                return Ok(changed.read(pipeline_id));
            }
        }
        Err(contended("version", id))
    }

    async fn delete_pipeline(&self, id: &str, cascade: bool) -> Result<Vec<String>, Error> {
        let pipeline = self.pipeline_object(id).await?;
        let mut versions = self.version_objects(&pipeline, Room::Page).await?;
        versions.retain(|version| !version.metadata.is_deleting());
        if let Some(version) = versions.first()
            && !cascade
        {
            return Err(Error::has_versions(id, &version.metadata.uid));
        }
        let mut deleted = Vec::new();
        for version in versions {
            let object::Metadata {
                namespace,
                name,
                uid,
                ..
            } = version.metadata;
            let calls = Calls::versions(&self.client, Some(&namespace));
            if calls.delete(&name, &uid).await? == Deleted::Done {
                deleted.push(uid);
            }
        }
        let object::Metadata {
            namespace,
            name,
            uid,
            ..
        } = &pipeline.metadata;
        Calls::pipelines(&self.client, Some(namespace))
            .delete(name, uid)
            .await?;
        Ok(deleted)
    }

    async fn delete_version(&self, pipeline_id: &str, id: &str) -> Result<(), Error> {
        let (_, version) = self.version_object(pipeline_id, id).await?;
        let object::Metadata {
            namespace,
            name,
            uid,
            ..
        } = &version.metadata;
        let calls = Calls::versions(&self.client, Some(namespace));
        match calls.delete(name, uid).await? {
            Deleted::Done => Ok(()),
            Deleted::Gone => Err(Error::no_version(id)),
        }
    }
}

fn contended(what: &str, id: &str) -> Error {
    Error::unavailable(format!(
        "{what} {id} is changed by others all the time; try again"
    ))
}
