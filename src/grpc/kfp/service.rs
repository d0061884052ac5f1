//! `kubeflow.pipelines.backend.api.v2beta1`: pipelines, versions and health.

use hindsight_proto::kubeflow_v2beta1::{
    self as pb, healthz_service_server::HealthzService, pipeline_service_server::PipelineService,
};
use tonic::{Request, Response, Status};

use super::{
    KfpServer,
    convert::{asked_pipeline, asked_version, change, list_ask, pipeline, total, version},
};

#[tonic::async_trait]
impl HealthzService for KfpServer {
    async fn get_healthz(
        &self,
        request: Request<()>,
    ) -> Result<Response<pb::GetHealthzResponse>, Status> {
        let work = async |_, ()| {
            Ok(pb::GetHealthzResponse {
                multi_user: self.multi_user(),
                pipeline_store: self.store_kind().to_owned(),
            })
        };
        self.server.answer("GetHealthz", request, work).await
    }
}

#[tonic::async_trait]
impl PipelineService for KfpServer {
    async fn create_pipeline(
        &self,
        request: Request<pb::CreatePipelineRequest>,
    ) -> Result<Response<pb::Pipeline>, Status> {
        let work = |metadata, request: pb::CreatePipelineRequest| async move {
            let made = self.create(metadata, asked_pipeline(request.pipeline));
            made.await.map(pipeline)
        };
        self.server.answer("CreatePipeline", request, work).await
    }

    async fn get_pipeline(
        &self,
        request: Request<pb::GetPipelineRequest>,
    ) -> Result<Response<pb::Pipeline>, Status> {
        let work = |metadata, request: pb::GetPipelineRequest| async move {
            self.get(metadata, &request.pipeline_id).await.map(pipeline)
        };
        self.server.answer("GetPipeline", request, work).await
    }

    async fn get_pipeline_by_name(
        &self,
        request: Request<pb::GetPipelineByNameRequest>,
    ) -> Result<Response<pb::Pipeline>, Status> {
        let work = |metadata, request: pb::GetPipelineByNameRequest| async move {
            let found = self.get_by_name(metadata, &request.namespace, &request.name);
            found.await.map(pipeline)
        };
        self.server.answer("GetPipelineByName", request, work).await
    }

    async fn list_pipelines(
        &self,
        request: Request<pb::ListPipelinesRequest>,
    ) -> Result<Response<pb::ListPipelinesResponse>, Status> {
        let work = |metadata, request: pb::ListPipelinesRequest| async move {
            let page = (request.page_token, request.page_size);
            let ask = list_ask(page, request.sort_by, request.filter);
            let page = self.list(metadata, &request.namespace, ask).await?;
            Ok(pb::ListPipelinesResponse {
                pipelines: page.items.into_iter().map(pipeline).collect(),
                total_size: total(page.total),
                next_page_token: page.next,
            })
        };
        self.server.answer("ListPipelines", request, work).await
    }

    async fn delete_pipeline(
        &self,
        request: Request<pb::DeletePipelineRequest>,
    ) -> Result<Response<()>, Status> {
        let work = |metadata, request: pb::DeletePipelineRequest| async move {
            self.delete(metadata, request.pipeline_id, request.cascade)
                .await
        };
        self.server.answer("DeletePipeline", request, work).await
    }

    async fn create_pipeline_and_version(
        &self,
        request: Request<pb::CreatePipelineAndVersionRequest>,
    ) -> Result<Response<pb::Pipeline>, Status> {
        let work = |metadata, request: pb::CreatePipelineAndVersionRequest| async move {
            let asked = asked_pipeline(request.pipeline);
            let mut beside = request.pipeline_version.unwrap_or_default();
            let url = beside.package_url.take().unwrap_or_default().pipeline_url;
            let beside = asked_version(beside);
            let made = self.create_with_package(metadata, asked, beside, url);
            made.await.map(pipeline)
        };
        self.server
            .answer("CreatePipelineAndVersion", request, work)
            .await
    }

    async fn create_pipeline_version(
        &self,
        request: Request<pb::CreatePipelineVersionRequest>,
    ) -> Result<Response<pb::PipelineVersion>, Status> {
        let work = |metadata, request: pb::CreatePipelineVersionRequest| async move {
            let mut asked = request.pipeline_version.unwrap_or_default();
            let id = match request.pipeline_id.as_str() {
                "" => std::mem::take(&mut asked.pipeline_id),
                _ => request.pipeline_id,
            };
            if id.is_empty() {
                let why = "Failed to create a pipeline version. Parent pipeline id is empty";
                return Err(hindsight_kfp::Error::invalid(why).into());
            }
            let url = asked.package_url.take().unwrap_or_default().pipeline_url;
            let made = self.create_version(metadata, &id, asked_version(asked), url);
            made.await.map(version)
        };
        self.server
            .answer("CreatePipelineVersion", request, work)
            .await
    }

    async fn get_pipeline_version(
        &self,
        request: Request<pb::GetPipelineVersionRequest>,
    ) -> Result<Response<pb::PipelineVersion>, Status> {
        let work = |metadata, request: pb::GetPipelineVersionRequest| async move {
            let (pipeline_id, id) = (request.pipeline_id, request.pipeline_version_id);
            let found = self.get_version(metadata, &pipeline_id, &id).await;
            found.map(version)
        };
        self.server
            .answer("GetPipelineVersion", request, work)
            .await
    }

    async fn list_pipeline_versions(
        &self,
        request: Request<pb::ListPipelineVersionsRequest>,
    ) -> Result<Response<pb::ListPipelineVersionsResponse>, Status> {
        let work = |metadata, request: pb::ListPipelineVersionsRequest| async move {
            let page = (request.page_token, request.page_size);
            let ask = list_ask(page, request.sort_by, request.filter);
            let page = self
                .list_versions(metadata, request.pipeline_id, ask)
                .await?;
            Ok(pb::ListPipelineVersionsResponse {
                pipeline_versions: page.items.into_iter().map(version).collect(),
                next_page_token: page.next,
                total_size: total(page.total),
            })
        };
        self.server
            .answer("ListPipelineVersions", request, work)
            .await
    }

    async fn delete_pipeline_version(
        &self,
        request: Request<pb::DeletePipelineVersionRequest>,
    ) -> Result<Response<()>, Status> {
        let work = |metadata, request: pb::DeletePipelineVersionRequest| async move {
            let (pipeline_id, id) = (request.pipeline_id, request.pipeline_version_id);
            self.delete_version(metadata, pipeline_id, id).await
        };
        self.server
            .answer("DeletePipelineVersion", request, work)
            .await
    }

    async fn update_pipeline(
        &self,
        request: Request<pb::UpdatePipelineRequest>,
    ) -> Result<Response<pb::Pipeline>, Status> {
        let work = |metadata, request: pb::UpdatePipelineRequest| async move {
            let asked = request.pipeline.unwrap_or_default();
            let change = change(&metadata, asked.display_name, asked.tags);
            let changed = self.update(metadata, asked.pipeline_id, change);
            changed.await.map(pipeline)
        };
        self.server.answer("UpdatePipeline", request, work).await
    }

    async fn update_pipeline_version(
        &self,
        request: Request<pb::UpdatePipelineVersionRequest>,
    ) -> Result<Response<pb::PipelineVersion>, Status> {
        let work = |metadata, request: pb::UpdatePipelineVersionRequest| async move {
            let asked = request.pipeline_version.unwrap_or_default();
            let change = change(&metadata, asked.display_name, asked.tags);
            let ids = (asked.pipeline_id, asked.pipeline_version_id);
            self.update_version(metadata, ids, change)
                .await
                .map(version)
        };
        self.server
            .answer("UpdatePipelineVersion", request, work)
            .await
    }
}
