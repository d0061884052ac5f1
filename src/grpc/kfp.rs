//! The pipeline service of Kubeflow: who may, and what is written to the audit log.

mod convert;
mod history;
mod service;
mod upload;

use std::fmt::{self, Display};

use hindsight_access::auth::{Guarded, Verb};
use hindsight_filter::model::{Parent, ParentPattern};
use hindsight_kfp::store::PipelineStore;
use hindsight_kfp::{
    AskedPipeline, AskedVersion, Both, Pipelines,
    model::{Change, Pipeline, PipelineVersion},
    query::{ListAsk, Page, Query, Scope},
};
use tonic::metadata::MetadataMap;

use self::history::History;

pub use self::upload::{UploadedPipeline, UploadedVersion};
use super::{ResultsServer, call::Name};
use crate::service::Error;

/// Most bytes of the texts of a page.
const PAGE_BYTES: usize = 8 << 20;

/// The methods about pipelines, for the callers of a server.
#[derive(Debug, Clone)]
pub struct KfpServer {
    server: ResultsServer,
    pipelines: Pipelines,
    /// Whose rights decide about pipelines of no namespace.
    namespace: Parent,
}

/// A pipeline, or a version of it.
struct Object {
    kind: Guarded,
    parent: Parent,
    pipeline: String,
    version: Option<String>,
}

impl Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/pipelines/{}", self.parent, self.pipeline)?;
        match &self.version {
            Some(version) => write!(f, "/versions/{version}"),
            None => Ok(()),
        }
    }
}

impl Name for Object {
    fn access(&self) -> (Guarded, &Parent) {
        (self.kind, &self.parent)
    }
}

impl KfpServer {
    /// Answers about `pipelines` to the callers of `server`; rights in `namespace` decide about those of no namespace.
    #[must_use]
    pub fn new(server: ResultsServer, pipelines: Pipelines, namespace: Parent) -> Self {
        Self {
            server,
            pipelines,
            namespace,
        }
    }

    /// Whether pipelines belong to namespaces.
    #[must_use]
    pub fn multi_user(&self) -> bool {
        self.pipelines.multi_user()
    }

    /// Which store it is, as health pages say.
    #[must_use]
    pub fn store_kind(&self) -> &'static str {
        self.pipelines.store().kind()
    }

    /// Where versions of pipelines of a namespace are kept.
    fn history(&self, namespace: &str) -> Result<History, Error> {
        Ok(History {
            service: self.server.service.clone(),
            parent: self.parent(namespace)?,
        })
    }

    /// The parent whose rights decide about a namespace of pipelines.
    fn parent(&self, namespace: &str) -> Result<Parent, Error> {
        if namespace.is_empty() || !self.multi_user() {
            return Ok(self.namespace.clone());
        }
        namespace
            .parse()
            .map_err(|error| Error::Invalid(format!("namespace: {error}")))
    }

    fn object(&self, namespace: &str, name: &str) -> Result<Object, Error> {
        Ok(Object {
            kind: Guarded::Pipelines,
            parent: self.parent(namespace)?,
            pipeline: name.to_owned(),
            version: None,
        })
    }

    /// A version is guarded by its pipeline; where it is an object of Kubernetes, also as that.
    fn of_version(&self, pipeline: &Pipeline, version: &str) -> Result<Object, Error> {
        Ok(Object {
            version: Some(version.to_owned()),
            ..self.object(&pipeline.namespace, &pipeline.name)?
        })
    }

    async fn may_read(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        namespace: &str,
        kinds: &[Guarded],
    ) -> Result<(), Error> {
        for kind in kinds {
            let place = ParentPattern::Exact(self.parent(namespace)?);
            self.server.grant(metadata, verb, *kind, place).await?;
        }
        Ok(())
    }

    /// The rights that a call about versions takes.
    fn version_kinds(&self) -> &'static [Guarded] {
        match self.store_kind() {
            "kubernetes" => &[Guarded::Pipelines, Guarded::PipelineVersions],
            _ => &[Guarded::Pipelines],
        }
    }

    /// Refuses a change of a version to a caller who may not change objects of versions, where they are such.
    async fn may_change_version(
        &self,
        metadata: &MetadataMap,
        verb: Verb,
        object: &Object,
    ) -> Result<(), Error> {
        for kind in self.version_kinds().iter().skip(1) {
            let guarded = Object {
                kind: *kind,
                parent: object.parent.clone(),
                pipeline: object.pipeline.clone(),
                version: object.version.clone(),
            };
            self.server.grant_change(metadata, verb, &guarded).await?;
        }
        Ok(())
    }

    async fn create(&self, metadata: MetadataMap, asked: AskedPipeline) -> Result<Pipeline, Error> {
        let namespace = self.pipelines.namespace(&asked.namespace)?;
        let object = self.object(&namespace, name_of(&asked.name, &asked.display_name))?;
        let (pipelines, now) = (self.pipelines.clone(), self.server.service.now());
        let work = Box::pin(async move { pipelines.create(asked, now).await });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }

    /// Creates a pipeline with its first version, which `work` makes.
    async fn create_both<W>(
        &self,
        metadata: &MetadataMap,
        (namespace, name): (&str, &str),
        work: W,
    ) -> Result<Both, Error>
    where
        W: Future<Output = Result<Both, hindsight_kfp::Error>> + Send + 'static,
    {
        let object = self.object(&self.pipelines.namespace(namespace)?, name)?;
        let version = Object {
            version: Some(name.to_owned()),
            ..self.object(&self.pipelines.namespace(namespace)?, name)?
        };
        self.may_change_version(metadata, Verb::Create, &version)
            .await?;
        let history = self.history(&self.pipelines.namespace(namespace)?)?;
        let work = Box::pin(async move {
            let (pipeline, version) = work.await?;
            history.stored(&pipeline, &version).await;
            Ok::<_, hindsight_kfp::Error>((pipeline, version))
        });
        self.server
            .change(metadata, Verb::Create, object, work)
            .await
    }

    async fn create_with_package(
        &self,
        metadata: MetadataMap,
        asked: AskedPipeline,
        beside: AskedVersion,
        url: String,
    ) -> Result<Pipeline, Error> {
        let name = name_of(&asked.name, &asked.display_name).to_owned();
        let namespace = asked.namespace.clone();
        let (pipelines, now) = (self.pipelines.clone(), self.server.service.now());
        let work = Box::pin(async move { pipelines.create_both(asked, beside, &url, now).await });
        let made = self.create_both(&metadata, (&namespace, &name), work).await;
        made.map(|(pipeline, _)| pipeline)
    }

    async fn create_version(
        &self,
        metadata: MetadataMap,
        pipeline_id: &str,
        asked: AskedVersion,
        url: String,
    ) -> Result<PipelineVersion, Error> {
        let pipeline = self.pipelines.store().pipeline(pipeline_id).await?;
        let object = self.of_version(&pipeline, name_of(&asked.name, &asked.display_name))?;
        self.may_change_version(&metadata, Verb::Create, &object)
            .await?;
        let history = self.history(&pipeline.namespace)?;
        let (pipelines, now) = (self.pipelines.clone(), self.server.service.now());
        let work = Box::pin(async move {
            let made = pipelines
                .create_version(&pipeline, asked, &url, now)
                .await?;
            history.stored(&pipeline, &made).await;
            Ok::<_, hindsight_kfp::Error>(made)
        });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }

    async fn get(&self, metadata: MetadataMap, id: &str) -> Result<Pipeline, Error> {
        let pipeline = self.pipelines.store().pipeline(id).await?;
        let of = [Guarded::Pipelines];
        self.may_read(&metadata, Verb::Get, &pipeline.namespace, &of)
            .await?;
        Ok(pipeline)
    }

    async fn get_by_name(
        &self,
        metadata: MetadataMap,
        namespace: &str,
        name: &str,
    ) -> Result<Pipeline, Error> {
        let namespace = self.pipelines.namespace(namespace)?;
        let of = [Guarded::Pipelines];
        self.may_read(&metadata, Verb::Get, &namespace, &of).await?;
        if name.is_empty() {
            return Err(hindsight_kfp::Error::invalid("name is required").into());
        }
        Ok(self
            .pipelines
            .store()
            .pipeline_by_name(&namespace, name)
            .await?)
    }

    async fn list(
        &self,
        metadata: MetadataMap,
        namespace: &str,
        ask: ListAsk,
    ) -> Result<Page<Pipeline>, Error> {
        let namespace = self.pipelines.namespace(namespace)?;
        let of = [Guarded::Pipelines];
        self.may_read(&metadata, Verb::List, &namespace, &of)
            .await?;
        let query = Query::new(Scope::Pipelines { namespace }, &ask, PAGE_BYTES)?;
        Ok(self.pipelines.store().pipelines(&query).await?)
    }

    async fn get_version(
        &self,
        metadata: MetadataMap,
        pipeline_id: &str,
        id: &str,
    ) -> Result<PipelineVersion, Error> {
        let pipeline = self.pipelines.store().pipeline(pipeline_id).await?;
        let of = self.version_kinds();
        self.may_read(&metadata, Verb::Get, &pipeline.namespace, of)
            .await?;
        Ok(self.pipelines.store().version(pipeline_id, id).await?)
    }

    async fn list_versions(
        &self,
        metadata: MetadataMap,
        pipeline_id: String,
        ask: ListAsk,
    ) -> Result<Page<PipelineVersion>, Error> {
        let pipeline = self.pipelines.store().pipeline(&pipeline_id).await?;
        let of = self.version_kinds();
        self.may_read(&metadata, Verb::List, &pipeline.namespace, of)
            .await?;
        let query = Query::new(Scope::Versions { pipeline_id }, &ask, PAGE_BYTES)?;
        Ok(self.pipelines.store().versions(&query).await?)
    }

    async fn update(
        &self,
        metadata: MetadataMap,
        id: String,
        change: Change,
    ) -> Result<Pipeline, Error> {
        let pipeline = self.pipelines.store().pipeline(&id).await?;
        let object = self.object(&pipeline.namespace, &pipeline.name)?;
        let pipelines = self.pipelines.clone();
        let work = Box::pin(async move { pipelines.update(&id, change).await });
        self.server
            .change(&metadata, Verb::Update, object, work)
            .await
    }

    async fn update_version(
        &self,
        metadata: MetadataMap,
        (pipeline_id, id): (String, String),
        change: Change,
    ) -> Result<PipelineVersion, Error> {
        let (pipeline, object) = self.version_object(&pipeline_id, &id).await?;
        self.may_change_version(&metadata, Verb::Update, &object)
            .await?;
        let history = self.history(&pipeline.namespace)?;
        let pipelines = self.pipelines.clone();
        let work = Box::pin(async move {
            let changed = pipelines.update_version(&pipeline.id, &id, change).await?;
            history.stored(&pipeline, &changed).await;
            Ok::<_, hindsight_kfp::Error>(changed)
        });
        self.server
            .change(&metadata, Verb::Update, object, work)
            .await
    }

    async fn delete(&self, metadata: MetadataMap, id: String, cascade: bool) -> Result<(), Error> {
        let pipeline = self.pipelines.store().pipeline(&id).await?;
        let object = self.object(&pipeline.namespace, &pipeline.name)?;
        let history = self.history(&pipeline.namespace)?;
        let pipelines = self.pipelines.clone();
        let work = Box::pin(async move {
            let gone = pipelines.store().delete_pipeline(&id, cascade).await?;
            for version in gone {
                history.deleted(&pipeline, &version).await;
            }
            Ok::<_, hindsight_kfp::Error>(())
        });
        self.server
            .change(&metadata, Verb::Delete, object, work)
            .await
    }

    async fn delete_version(
        &self,
        metadata: MetadataMap,
        pipeline_id: String,
        id: String,
    ) -> Result<(), Error> {
        let (pipeline, object) = self.version_object(&pipeline_id, &id).await?;
        self.may_change_version(&metadata, Verb::Delete, &object)
            .await?;
        let history = self.history(&pipeline.namespace)?;
        let pipelines = self.pipelines.clone();
        let work = Box::pin(async move {
            pipelines.store().delete_version(&pipeline.id, &id).await?;
            history.deleted(&pipeline, &id).await;
            Ok::<_, hindsight_kfp::Error>(())
        });
        self.server
            .change(&metadata, Verb::Delete, object, work)
            .await
    }

    /// The version with these ids as it is called in the audit log, and its pipeline.
    async fn version_object(
        &self,
        pipeline_id: &str,
        id: &str,
    ) -> Result<(Pipeline, Object), Error> {
        let store: &dyn PipelineStore = self.pipelines.store();
        let pipeline = store.pipeline(pipeline_id).await?;
        let version = store.version(pipeline_id, id).await?;
        let object = self.of_version(&pipeline, &version.name)?;
        Ok((pipeline, object))
    }
}

/// The name that a new pipeline or version will have, if one is given.
fn name_of<'n>(name: &'n str, display_name: &'n str) -> &'n str {
    if name.is_empty() { display_name } else { name }
}
