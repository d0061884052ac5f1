//! The cluster service of KubeRay, where it is enabled.

use axum::{Router, response::IntoResponse as _, routing::any};
use hindsight_proto::{
    RAY_FILE_DESCRIPTOR_SET,
    ray_v1::{
        cluster_service_server::ClusterServiceServer,
        compute_template_service_server::ComputeTemplateServiceServer,
    },
    ray_v1alpha2 as alpha,
};
use hindsight_ray::Clusters;
use prost_reflect::DescriptorPool;
use tonic::service::Routes;

use super::{Error, assembly};
use crate::{
    config::Config,
    grpc::{Deadline, RayServer, ResultsServer, TransportStatus},
};

/// The services of KubeRay that work on other objects than clusters and templates, below each version and each
/// namespace.
const OTHERS: [&str; 4] = ["jobs", "services", "jobsubmissions", "image_templates"];

/// What is told to those who ask for them.
const NOT_OFFERED: &str = "this server offers clusters and compute templates of KubeRay; jobs, job submissions, services and image templates \
     it does not";

/// The services that `server` answers, and those about clusters of Ray if they are enabled, with their descriptors added
/// to `pool`.
pub(super) async fn services(
    config: &Config,
    server: ResultsServer,
    (taken, limit): (usize, usize),
    pool: &mut DescriptorPool,
) -> Result<Routes, Error> {
    let most = config.request_timeout.get();
    if !config.enable_ray {
        return assembly::services(server, (taken, limit), most, pool);
    }
    let decoded = pool.decode_file_descriptor_set(RAY_FILE_DESCRIPTOR_SET);
    decoded.map_err(Error::Descriptors)?;
    let routes = assembly::services(server.clone(), (taken, limit), most, pool)?;
    let clusters = Box::pin(Clusters::connect(config.ray_kubeconfig.clone())).await;
    let server = RayServer::new(
        server,
        clusters.map_err(Error::Ray)?,
        config.ray_cluster_id.clone().map(|id| id.0),
    );
    macro_rules! add {
        ($routes:expr, $($service:ty),*) => {
            $routes$(.add_service(TransportStatus(Deadline::within(
                <$service>::new(server.clone())
                    .max_decoding_message_size(taken)
                    .max_encoding_message_size(limit),
                most,
            ))))*
        };
    }
    Ok(add!(
        routes,
        ClusterServiceServer<RayServer>,
        ComputeTemplateServiceServer<RayServer>,
        alpha::cluster_service_server::ClusterServiceServer<RayServer>,
        alpha::compute_template_service_server::ComputeTemplateServiceServer<RayServer>
    ))
}

/// Adds refusals of what KubeRay offers beside clusters, so that its clients are told.
pub(super) fn refusals(mut http: Router) -> Router {
    for version in ["v1", "v1alpha2"] {
        for below in ["", "/namespaces/{namespace}"] {
            for service in OTHERS {
                let path = format!("/apis/{version}{below}/{service}");
                let refuse =
                    || any(async || hindsight_transcode::unsupported(NOT_OFFERED).into_response());
                http = http
                    .route(&format!("{path}/{{*rest}}"), refuse())
                    .route(&path, refuse());
            }
        }
    }
    http
}
