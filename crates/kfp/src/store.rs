//! What every store of pipelines can do, whatever it is made of.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{
    error::Error,
    model::{Change, NewPipeline, NewVersion, Pipeline, PipelineVersion},
    query::{Page, Query},
};

/// A store of pipelines and their versions. Texts were checked by [`names`](crate::names) and
/// [`spec`](crate::spec) before; a store refuses what its own kind of names does not allow.
#[async_trait]
pub trait PipelineStore: Debug + Send + Sync + 'static {
    /// `database` or `kubernetes`, as the health page says.
    fn kind(&self) -> &'static str;

    /// The namespace of pipelines for which none is named: empty in a database, that of the server in Kubernetes.
    fn default_namespace(&self) -> &str;

    /// Creates a pipeline without versions.
    ///
    /// # Errors
    /// [`Error::pipeline_exists`] if the namespace has one of the name.
    async fn create_pipeline(&self, pipeline: NewPipeline) -> Result<Pipeline, Error>;

    /// Creates a version of a pipeline.
    ///
    /// # Errors
    /// [`Error::no_pipeline`], or [`Error::version_exists`] if the pipeline has one of the name.
    async fn create_version(
        &self,
        pipeline_id: &str,
        version: NewVersion,
    ) -> Result<PipelineVersion, Error>;

    /// Creates a pipeline and a version of it, or neither.
    ///
    /// # Errors
    /// As each of the two.
    async fn create_both(
        &self,
        pipeline: NewPipeline,
        version: NewVersion,
    ) -> Result<(Pipeline, PipelineVersion), Error>;

    /// A pipeline by its id.
    ///
    /// # Errors
    /// [`Error::no_pipeline`].
    async fn pipeline(&self, id: &str) -> Result<Pipeline, Error>;

    /// A pipeline by its name.
    ///
    /// # Errors
    /// [`Error::no_pipeline_named`].
    async fn pipeline_by_name(&self, namespace: &str, name: &str) -> Result<Pipeline, Error>;

    /// A version of a pipeline by its id.
    ///
    /// # Errors
    /// [`Error::no_version`], also if it belongs to another pipeline.
    async fn version(&self, pipeline_id: &str, id: &str) -> Result<PipelineVersion, Error>;

    /// A page of pipelines: exactly what [`Query::page`] gives of all of them.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn pipelines(&self, query: &Query) -> Result<Page<Pipeline>, Error>;

    /// A page of the versions of one pipeline, likewise.
    ///
    /// # Errors
    /// [`Error::no_pipeline`].
    async fn versions(&self, query: &Query) -> Result<Page<PipelineVersion>, Error>;

    /// Changes a pipeline.
    ///
    /// # Errors
    /// [`Error::no_pipeline`].
    async fn update_pipeline(&self, id: &str, change: Change) -> Result<Pipeline, Error>;

    /// Changes a version of a pipeline.
    ///
    /// # Errors
    /// [`Error::no_version`].
    async fn update_version(
        &self,
        pipeline_id: &str,
        id: &str,
        change: Change,
    ) -> Result<PipelineVersion, Error>;

    /// Deletes a pipeline and, with `cascade`, its versions, whose ids it gives.
    ///
    /// # Errors
    /// [`Error::no_pipeline`], or [`Error::has_versions`] without `cascade`; nothing is deleted then.
    async fn delete_pipeline(&self, id: &str, cascade: bool) -> Result<Vec<String>, Error>;

    /// Deletes a version of a pipeline.
    ///
    /// # Errors
    /// [`Error::no_version`].
    async fn delete_version(&self, pipeline_id: &str, id: &str) -> Result<(), Error>;
}
