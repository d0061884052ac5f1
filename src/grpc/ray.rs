//! The cluster service of KubeRay, in both versions: who may, and what is written to the audit log.

mod v1;
mod v1alpha2;

use std::fmt::{self, Display};

use hindsight_access::auth::{Guarded, Verb};
use hindsight_filter::model::{Parent, ParentPattern};
use hindsight_proto::ray_v1 as pb;
use hindsight_ray::{Clusters, Listed, Page};
use tonic::metadata::MetadataMap;

use super::{ResultsServer, call::Name};
use crate::service::Error;

/// The methods about clusters of Ray and compute templates, for the callers of a server.
#[derive(Debug, Clone)]
pub struct RayServer {
    server: ResultsServer,
    clusters: Clusters,
}

/// A cluster or a template of a namespace.
struct Object {
    kind: Guarded,
    parent: Parent,
    name: String,
}

impl Object {
    fn of(kind: Guarded, namespace: &str, name: &str) -> Result<Self, Error> {
        Ok(Self {
            kind,
            parent: parent(namespace)?,
            name: name.to_owned(),
        })
    }
}

impl Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.parent, self.kind.name(), self.name)
    }
}

impl Name for Object {
    fn access(&self) -> (Guarded, &Parent) {
        (self.kind, &self.parent)
    }
}

/// The parent whose rights decide about a namespace.
fn parent(namespace: &str) -> Result<Parent, Error> {
    hindsight_ray::check_namespace(namespace)?;
    namespace
        .parse()
        .map_err(|error| Error::Invalid(format!("namespace: {error}")))
}

impl RayServer {
    /// Answers about `clusters` to the callers of `server`.
    #[must_use]
    pub fn new(server: ResultsServer, clusters: Clusters) -> Self {
        Self { server, clusters }
    }

    async fn may_read(
        &self,
        metadata: &MetadataMap,
        (verb, kind): (Verb, Guarded),
        namespace: Option<&str>,
    ) -> Result<(), Error> {
        let place = match namespace {
            Some(namespace) => ParentPattern::Exact(parent(namespace)?),
            None => ParentPattern::Any,
        };
        self.server
            .grant(metadata, verb, kind, place)
            .await
            .map(drop)
    }

    async fn create_cluster(
        &self,
        metadata: MetadataMap,
        namespace: String,
        cluster: Option<pb::Cluster>,
    ) -> Result<pb::Cluster, Error> {
        let name = cluster.as_ref().map_or("", |cluster| &cluster.name);
        let object = Object::of(Guarded::Clusters, &namespace, name)?;
        let (clusters, now) = (self.clusters.clone(), self.server.service.now());
        let work = Box::pin(async move { clusters.create(&namespace, cluster, now).await });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }

    async fn get_cluster(
        &self,
        metadata: MetadataMap,
        namespace: String,
        name: String,
    ) -> Result<pb::Cluster, Error> {
        let right = (Verb::Get, Guarded::Clusters);
        self.may_read(&metadata, right, Some(&namespace)).await?;
        Ok(self.clusters.get(&namespace, &name).await?)
    }

    async fn list_clusters(
        &self,
        metadata: MetadataMap,
        namespace: Option<String>,
        page: Page,
    ) -> Result<Listed, Error> {
        let right = (Verb::List, Guarded::Clusters);
        self.may_read(&metadata, right, namespace.as_deref())
            .await?;
        Ok(self.clusters.list(namespace.as_deref(), &page).await?)
    }

    async fn delete_cluster(
        &self,
        metadata: MetadataMap,
        namespace: String,
        name: String,
    ) -> Result<(), Error> {
        let object = Object::of(Guarded::Clusters, &namespace, &name)?;
        let clusters = self.clusters.clone();
        let work = Box::pin(async move { clusters.delete(&namespace, &name).await });
        self.server
            .change(&metadata, Verb::Delete, object, work)
            .await
    }

    async fn create_template(
        &self,
        metadata: MetadataMap,
        namespace: String,
        template: Option<pb::ComputeTemplate>,
    ) -> Result<pb::ComputeTemplate, Error> {
        let name = template.as_ref().map_or("", |template| &template.name);
        let object = Object::of(Guarded::ComputeTemplates, &namespace, name)?;
        let clusters = self.clusters.clone();
        let work = Box::pin(async move { clusters.create_template(&namespace, template).await });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }

    async fn get_template(
        &self,
        metadata: MetadataMap,
        namespace: String,
        name: String,
    ) -> Result<pb::ComputeTemplate, Error> {
        let right = (Verb::Get, Guarded::ComputeTemplates);
        self.may_read(&metadata, right, Some(&namespace)).await?;
        Ok(self.clusters.template(&namespace, &name).await?)
    }

    async fn list_templates(
        &self,
        metadata: MetadataMap,
        namespace: Option<String>,
    ) -> Result<Vec<pb::ComputeTemplate>, Error> {
        let right = (Verb::List, Guarded::ComputeTemplates);
        self.may_read(&metadata, right, namespace.as_deref())
            .await?;
        Ok(self.clusters.templates(namespace.as_deref()).await?)
    }

    async fn delete_template(
        &self,
        metadata: MetadataMap,
        namespace: String,
        name: String,
    ) -> Result<(), Error> {
        let object = Object::of(Guarded::ComputeTemplates, &namespace, &name)?;
        let clusters = self.clusters.clone();
        let work = Box::pin(async move { clusters.delete_template(&namespace, &name).await });
        self.server
            .change(&metadata, Verb::Delete, object, work)
            .await
    }
}
