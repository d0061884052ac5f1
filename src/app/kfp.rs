//! The pipelines store of Kubeflow, where it is enabled.

pub(super) mod admission;
mod upload;

use std::sync::Arc;

use axum::{
    Router,
    http::header,
    response::{IntoResponse as _, Response},
    routing::{any, get},
};
use hindsight_kfp::{
    Database, Pipelines,
    download::{Downloader, Policy},
    kubernetes::KubernetesStore,
    store::PipelineStore,
};
use hindsight_proto::{
    KUBEFLOW_FILE_DESCRIPTOR_SET,
    kubeflow_v2beta1::{
        healthz_service_server::HealthzServiceServer,
        pipeline_service_server::PipelineServiceServer,
    },
};
use hindsight_storage::PipelineTables;
use prost_reflect::DescriptorPool;
use serde_json::json;
use tonic::service::Routes;

use super::Error;
use crate::{
    config::{Config, PipelinesStore},
    grpc::{Deadline, KfpServer, ResultsServer, TransportStatus},
};

pub(super) use upload::uploads;

/// What Kubeflow offers beside pipelines.
const OTHERS: [&str; 7] = [
    "auth",
    "experiments",
    "recurringruns",
    "runs",
    "scheduledworkflows",
    "visualizations",
    "workflows",
];

/// What is told to those who ask for it.
const NOT_OFFERED: &str = "this server keeps pipelines and their versions; runs, recurring runs, experiments and \
     visualizations of Kubeflow it does not offer";

/// What is told to those who ask for the API of before.
const NOT_V1: &str = "the v1beta1 API of Kubeflow pipelines is not offered; use v2beta1";

/// The server of pipelines if it is enabled, with its descriptors added to `pool`.
pub(super) async fn server(
    config: &Config,
    server: &ResultsServer,
    tables: &Arc<dyn PipelineTables>,
    pool: &mut DescriptorPool,
) -> Result<Option<KfpServer>, Error> {
    if !config.enable_pipelines {
        return Ok(None);
    }
    let decoded = pool.decode_file_descriptor_set(KUBEFLOW_FILE_DESCRIPTOR_SET);
    decoded.map_err(Error::Descriptors)?;
    let namespace = config.pipelines_namespace.clone();
    let store: Arc<dyn PipelineStore> = match config.pipelines_store {
        PipelinesStore::Database => Arc::new(Database::new(Arc::clone(tables))),
        PipelinesStore::Kubernetes => {
            hindsight_cluster::choose_cryptography();
            let client = hindsight_cluster::connect(config.pipelines_kubeconfig.clone());
            let client = Box::pin(client).await.map_err(Error::Pipelines)?;
            Arc::new(match config.pipelines_multi_user {
                true => KubernetesStore::of_cluster(client, namespace.name()),
                false => KubernetesStore::of_namespace(client, namespace.name()),
            })
        }
    };
    let policy = Policy {
        allow_http: config.pipelines_url_http,
        allowed_domains: config
            .pipelines_url_domains
            .as_ref()
            .map_or_else(Vec::new, |domains| domains.names().to_vec()),
    };
    let downloader = Downloader::new(policy).map_err(Error::Downloads)?;
    let pipelines = Pipelines::new(store, downloader, config.pipelines_multi_user);
    Ok(Some(KfpServer::new(
        server.clone(),
        pipelines,
        namespace.parent(),
    )))
}

/// Adds the services of `server`.
pub(super) fn services(
    routes: Routes,
    server: Option<&KfpServer>,
    (taken, limit): (usize, usize),
    config: &Config,
) -> Routes {
    let Some(server) = server else {
        return routes;
    };
    let most = config.request_timeout.get();
    let pipelines = PipelineServiceServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit);
    routes
        .add_service(TransportStatus(Deadline::within(pipelines, most)))
        .add_service(TransportStatus(Deadline::within(
            HealthzServiceServer::new(server.clone()),
            most,
        )))
}

/// Adds health pages, and refusals of what Kubeflow offers beside pipelines.
pub(super) fn pages(mut http: Router, server: &KfpServer) -> Router {
    let page = |with_store: bool| {
        let mut page = json!({
            "commit_sha": "unknown",
            "tag_name": "unknown",
            "multi_user": server.multi_user(),
        });
        if with_store {
            page["pipeline_store"] = server.store_kind().into();
        }
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let page = page.to_string();
        get(async move || (kind, page))
    };
    let refuse = |why: &'static str| {
        any(async move || -> Response { hindsight_transcode::unsupported(why).into_response() })
    };
    http = http
        .route("/apis/v2beta1/healthz", page(true))
        .route("/apis/v1beta1/healthz", page(false))
        .route("/apis/v1beta1/{*rest}", refuse(NOT_V1));
    for other in OTHERS {
        let path = format!("/apis/v2beta1/{other}");
        http = http
            .route(&format!("{path}/{{*rest}}"), refuse(NOT_OFFERED))
            .route(&path, refuse(NOT_OFFERED));
    }
    http
}
