//! `proto`: clusters of Ray and compute templates.

use hindsight_proto::ray_v1::{
    self as pb, cluster_service_server::ClusterService,
    compute_template_service_server::ComputeTemplateService,
};
use hindsight_ray::Page;
use tonic::{Request, Response, Status};

use super::{RayServer, ask};

#[tonic::async_trait]
impl ClusterService for RayServer {
    async fn create_cluster(
        &self,
        request: Request<pb::CreateClusterRequest>,
    ) -> Result<Response<pb::Cluster>, Status> {
        let work = |metadata, request: pb::CreateClusterRequest| async move {
            let cluster = Ok(request.cluster);
            let made = self.create_cluster(metadata, request.namespace, cluster);
            made.await
        };
        self.server.answer("CreateCluster", request, work).await
    }

    async fn get_cluster(
        &self,
        request: Request<pb::GetClusterRequest>,
    ) -> Result<Response<pb::Cluster>, Status> {
        let work = |metadata, request: pb::GetClusterRequest| async move {
            let found = self.get_cluster(
                metadata,
                request.namespace,
                request.name,
                request.include_deleted,
            );
            found.await
        };
        self.server.answer("GetCluster", request, work).await
    }

    async fn list_cluster(
        &self,
        request: Request<pb::ListClustersRequest>,
    ) -> Result<Response<pb::ListClustersResponse>, Status> {
        let work = |metadata, request: pb::ListClustersRequest| async move {
            let ask = ask!(
                request,
                Page {
                    limit: request.limit,
                    token: request.r#continue
                }
            );
            let listed = self.list_clusters(metadata, Some(request.namespace), ask);
            let listed = listed.await?;
            Ok(pb::ListClustersResponse {
                clusters: listed.clusters,
                r#continue: listed.r#continue,
                next_page_token: listed.next_page_token,
            })
        };
        self.server.answer("ListCluster", request, work).await
    }

    async fn list_all_clusters(
        &self,
        request: Request<pb::ListAllClustersRequest>,
    ) -> Result<Response<pb::ListAllClustersResponse>, Status> {
        let work = |metadata, request: pb::ListAllClustersRequest| async move {
            let ask = ask!(
                request,
                Page {
                    limit: request.limit,
                    token: request.r#continue
                }
            );
            let listed = self.list_clusters(metadata, None, ask).await?;
            Ok(pb::ListAllClustersResponse {
                clusters: listed.clusters,
                r#continue: listed.r#continue,
                next_page_token: listed.next_page_token,
            })
        };
        self.server.answer("ListAllClusters", request, work).await
    }

    async fn delete_cluster(
        &self,
        request: Request<pb::DeleteClusterRequest>,
    ) -> Result<Response<()>, Status> {
        let work = |metadata, request: pb::DeleteClusterRequest| async move {
            self.delete_cluster(metadata, request.namespace, request.name)
                .await
        };
        self.server.answer("DeleteCluster", request, work).await
    }
}

#[tonic::async_trait]
impl ComputeTemplateService for RayServer {
    async fn create_compute_template(
        &self,
        request: Request<pb::CreateComputeTemplateRequest>,
    ) -> Result<Response<pb::ComputeTemplate>, Status> {
        let work = |metadata, request: pb::CreateComputeTemplateRequest| async move {
            let template = request.compute_template;
            let made = self.create_template(metadata, request.namespace, template);
            made.await
        };
        self.server
            .answer("CreateComputeTemplate", request, work)
            .await
    }

    async fn get_compute_template(
        &self,
        request: Request<pb::GetComputeTemplateRequest>,
    ) -> Result<Response<pb::ComputeTemplate>, Status> {
        let work = |metadata, request: pb::GetComputeTemplateRequest| async move {
            let found = self.get_template(metadata, request.namespace, request.name);
            found.await
        };
        self.server
            .answer("GetComputeTemplate", request, work)
            .await
    }

    async fn list_compute_templates(
        &self,
        request: Request<pb::ListComputeTemplatesRequest>,
    ) -> Result<Response<pb::ListComputeTemplatesResponse>, Status> {
        let work = |metadata, request: pb::ListComputeTemplatesRequest| async move {
            let compute_templates = self
                .list_templates(metadata, Some(request.namespace))
                .await?;
            Ok(pb::ListComputeTemplatesResponse { compute_templates })
        };
        self.server
            .answer("ListComputeTemplates", request, work)
            .await
    }

    async fn list_all_compute_templates(
        &self,
        request: Request<pb::ListAllComputeTemplatesRequest>,
    ) -> Result<Response<pb::ListAllComputeTemplatesResponse>, Status> {
        let work = |metadata, _: pb::ListAllComputeTemplatesRequest| async move {
            let compute_templates = self.list_templates(metadata, None).await?;
            Ok(pb::ListAllComputeTemplatesResponse { compute_templates })
        };
        self.server
            .answer("ListAllComputeTemplates", request, work)
            .await
    }

    async fn delete_compute_template(
        &self,
        request: Request<pb::DeleteComputeTemplateRequest>,
    ) -> Result<Response<()>, Status> {
        let work = |metadata, request: pb::DeleteComputeTemplateRequest| async move {
            self.delete_template(metadata, request.namespace, request.name)
                .await
        };
        self.server
            .answer("DeleteComputeTemplate", request, work)
            .await
    }
}
