//! Uploads, which are no calls of gRPC: a file beside what is said of it.

use hindsight_kfp::{AskedPipeline, AskedVersion, download::File};
use hindsight_proto::Message as _;
use tonic::{Request, Status, metadata::MetadataMap};

use super::{KfpServer, convert, name_of};
use crate::service::Error;

/// A file that becomes a pipeline with its first version.
#[derive(Debug, Clone)]
pub struct UploadedPipeline {
    /// The pipeline. Its tags are its own.
    pub pipeline: AskedPipeline,
    /// What the version has of its own.
    pub code_source_url: String,
    /// The uploaded file, whose name says its format.
    pub file: File,
}

/// A file that becomes a version.
#[derive(Debug, Clone)]
pub struct UploadedVersion {
    /// Id of the pipeline.
    pub pipeline_id: String,
    /// What the parameters of the query say of the version.
    pub version: AskedVersion,
    /// The uploaded file, whose name says its format.
    pub file: File,
}

impl KfpServer {
    /// Creates a pipeline and its first version of a file, or neither; gives the encoded pipeline.
    ///
    /// # Errors
    /// If the caller may not, or it is refused as CreatePipelineAndVersion is.
    pub async fn upload(
        &self,
        metadata: MetadataMap,
        uploaded: UploadedPipeline,
    ) -> Result<Vec<u8>, Status> {
        let work = |metadata: MetadataMap, uploaded: UploadedPipeline| async move {
            let asked = uploaded.pipeline;
            let name = match name_of(&asked.name, &asked.display_name) {
                "" => uploaded.file.name.clone(),
                name => name.to_owned(),
            };
            let namespace = asked.namespace.clone();
            let beside = AskedVersion {
                code_source_url: uploaded.code_source_url,
                ..AskedVersion::default()
            };
            let (pipelines, now) = (self.pipelines.clone(), self.server.service.now());
            let file = uploaded.file;
            let work = Box::pin(async move { pipelines.upload(asked, beside, file, now).await });
            let made = self.create_both(&metadata, (&namespace, &name), work).await;
            made.map(|(pipeline, _)| convert::pipeline(pipeline))
        };
        let request = request(metadata, uploaded);
        let made = self.server.answer("UploadPipeline", request, work).await?;
        Ok(made.get_ref().encode_to_vec())
    }

    /// Creates a version of a file; gives it encoded.
    ///
    /// # Errors
    /// If the caller may not, or it is refused as CreatePipelineVersion is.
    pub async fn upload_version(
        &self,
        metadata: MetadataMap,
        uploaded: UploadedVersion,
    ) -> Result<Vec<u8>, Status> {
        let work = |metadata: MetadataMap, uploaded: UploadedVersion| async move {
            let asked = uploaded.version;
            let made = self.add(metadata, &uploaded.pipeline_id, asked, uploaded.file);
            made.await.map(convert::version)
        };
        let request = request(metadata, uploaded);
        let made = self.server.answer("UploadPipelineVersion", request, work);
        Ok(made.await?.get_ref().encode_to_vec())
    }

    async fn add(
        &self,
        metadata: MetadataMap,
        pipeline_id: &str,
        asked: AskedVersion,
        file: File,
    ) -> Result<hindsight_kfp::model::PipelineVersion, Error> {
        use hindsight_access::auth::Verb;
        let pipeline = self.pipelines.store().pipeline(pipeline_id).await?;
        let name = match name_of(&asked.name, &asked.display_name) {
            "" => file.name.clone(),
            name => name.to_owned(),
        };
        let object = self.of_version(&pipeline, &name)?;
        self.may_change_version(&metadata, Verb::Create, &object)
            .await?;
        let history = self.history(&pipeline.namespace)?;
        let (pipelines, now) = (self.pipelines.clone(), self.server.service.now());
        let work = Box::pin(async move {
            let made = pipelines
                .upload_version(&pipeline, asked, file, now)
                .await?;
            history.stored(&pipeline, &made).await;
            Ok::<_, hindsight_kfp::Error>(made)
        });
        self.server
            .change(&metadata, Verb::Create, object, work)
            .await
    }
}

fn request<T>(metadata: MetadataMap, message: T) -> Request<T> {
    let mut request = Request::new(message);
    *request.metadata_mut() = metadata;
    request
}
