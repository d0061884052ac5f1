//! The cluster service of KubeRay, in both versions: who may, and what is written to the audit log.

mod v1;
mod v1alpha2;

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_filter::model::{Parent, ParentPattern};
use hindsight_proto::ray_v1 as pb;
use hindsight_ray::{Clusters, Page};
use tonic::metadata::MetadataMap;

use super::{ResultsServer, call::Name};
use crate::service::{ClustersAsk, Error};

/// The methods about clusters of Ray and compute templates, for the callers of a server.
#[derive(Debug, Clone)]
pub struct RayServer {
    server: ResultsServer,
    clusters: Clusters,
    /// The Kubernetes cluster, as parents of its records name it.
    cluster_id: Option<Arc<str>>,
}

/// What a list of clusters is asked for.
#[derive(Debug, Default)]
struct ListAsk {
    live: Page,
    history: ClustersAsk,
}

/// What a request for a list asks, in either version.
macro_rules! ask {
    ($request:ident, $live:expr) => {
        super::ListAsk {
            live: $live,
            history: crate::service::ClustersAsk {
                deleted: $request.include_deleted,
                filter: $request.filter,
                sort_by: $request.sort_by,
                size: $request.page_size,
                token: $request.page_token,
            },
        }
    };
}
use ask;

/// A page of clusters, and how each kind of list goes on.
#[derive(Debug, Default)]
struct Answer {
    clusters: Vec<pb::Cluster>,
    r#continue: String,
    next_page_token: String,
}

/// A cluster or a template of a namespace.
struct Object {
    kind: Guarded,
    parent: Parent,
    name: String,
}

impl Object {
    /// What the audit log calls an object. A text that cannot be the name of one is not written there.
    fn of(kind: Guarded, namespace: &str, name: &str) -> Result<Self, Error> {
        let name = Some(name).filter(|name| hindsight_ray::is_name(name));
        Ok(Self {
            kind,
            parent: parent(namespace)?,
            name: name.unwrap_or("-").to_owned(),
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
    /// Answers about `clusters` to the callers of `server`. `cluster_id` is that of the watcher of the Kubernetes cluster, if
    /// it has one.
    #[must_use]
    pub fn new(server: ResultsServer, clusters: Clusters, cluster_id: Option<String>) -> Self {
        Self {
            server,
            clusters,
            cluster_id: cluster_id.map(Arc::from),
        }
    }

    async fn may_read(
        &self,
        metadata: &MetadataMap,
        (verb, kind): (Verb, Guarded),
        namespace: Option<&str>,
    ) -> Result<(RequestContext, Grant), Error> {
        let place = match namespace {
            Some(namespace) => ParentPattern::Exact(parent(namespace)?),
            None => ParentPattern::Any,
        };
        self.server.grant(metadata, verb, kind, place).await
    }

    async fn create_cluster(
        &self,
        metadata: MetadataMap,
        namespace: String,
        cluster: Result<Option<pb::Cluster>, hindsight_ray::Error>,
    ) -> Result<pb::Cluster, Error> {
        let name = match &cluster {
            Ok(Some(cluster)) => &cluster.name,
            _ => "",
        };
        let object = Object::of(Guarded::Clusters, &namespace, name)?;
        let (clusters, now) = (self.clusters.clone(), self.server.service.now());
        let work = Box::pin(async move { clusters.create(&namespace, cluster?, now).await });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }

    async fn get_cluster(
        &self,
        metadata: MetadataMap,
        namespace: String,
        name: String,
        include_deleted: bool,
    ) -> Result<pb::Cluster, Error> {
        let right = (Verb::Get, Guarded::Clusters);
        let (by, grant) = self.may_read(&metadata, right, Some(&namespace)).await?;
        match self.clusters.get(&namespace, &name).await {
            Err(hindsight_ray::Error::Missing(_)) if include_deleted => {
                let (service, id) = (&self.server.service, self.cluster_id.as_deref());
                let deleted = service.deleted_cluster(&by, &grant, id, &name);
                deleted.await
            }
            found => Ok(found?),
        }
    }

    async fn list_clusters(
        &self,
        metadata: MetadataMap,
        namespace: Option<String>,
        ask: ListAsk,
    ) -> Result<Answer, Error> {
        let right = (Verb::List, Guarded::Clusters);
        let of = namespace.as_deref();
        let (by, grant) = self.may_read(&metadata, right, of).await?;
        let ListAsk { live, history } = ask;
        if history == ClustersAsk::default() {
            let listed = self.clusters.list(of, &live).await?;
            return Ok(Answer {
                clusters: listed.clusters,
                r#continue: listed.next,
                ..Answer::default()
            });
        }
        if live != Page::default() {
            return Err(Error::Invalid(
                "limit and continue are of lists from Kubernetes: with include_deleted, page_token, page_size, sort_by or \
                 filter send page_size and page_token instead"
                    .to_owned(),
            ));
        }
        let (service, id) = (&self.server.service, self.cluster_id.as_deref());
        let listed = service.list_clusters(&by, &grant, id, history).await?;
        Ok(Answer {
            clusters: listed.items,
            next_page_token: listed.next,
            ..Answer::default()
        })
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
