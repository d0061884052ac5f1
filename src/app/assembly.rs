//! The parts that a server is put together of.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request, routing::get};
use hindsight_filter::Language;
use hindsight_proto::{
    v1::{ingest_server::IngestServer, queries_server::QueriesServer, runs_server::RunsServer},
    v1alpha2::results_server,
};
use hindsight_runtime::admin::Readiness;
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::Registry;
use hindsight_storage as storage;
use hindsight_storage::{
    Maintenance, Store, Traced,
    objects::ObjectBackend,
    resolve::{Opened, Options, Schema, Synchronous, Unreachable, open},
};
use prost_reflect::DescriptorPool;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_reflection::pb::{
    v1::server_reflection_server as reflection_v1,
    v1alpha::server_reflection_server as reflection_v1alpha,
};
use tower_service::Service as _;

use super::{metrics, tls};
use crate::app::error::Error;
use crate::{
    config::{self, Config},
    grpc::{Deadline, Fields, Reflection, ResultsServer, TransportStatus},
    query::{Engine, Tokens},
};

/// The part of a message that rows may fill; the rest is names and framing.
const PAGE_SHARE: (usize, usize) = (7, 8);

/// Under which name the database keeps the secret of page tokens.
const TOKEN_SECRET: &str = "page_token_key";

pub(super) fn engine(config: &Config, store: Arc<dyn Store>, tokens: Tokens) -> Engine {
    let limit = config.max_message_bytes.as_usize();
    let page = limit / PAGE_SHARE.1 * PAGE_SHARE.0;
    Engine::new(store, tokens, config.scan_budget.get(), page).sending(limit)
}

/// What connections are secured by, if they are, and the metric of its certificate.
pub(super) fn secured(
    config: &Config,
    clock: Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<Option<Arc<tls::Tls>>, Error> {
    let tls = tls::Tls::load(config, clock).map_err(Error::Tls)?;
    let tls = tls.map(Arc::new);
    if let Some(tls) = &tls {
        registry.collect(metrics::Certificate(Arc::clone(tls)));
    }
    Ok(tls)
}

pub(super) fn language(config: &Config) -> Language {
    match config.filter_language {
        config::FilterLanguage::Cel => Language::Cel,
        config::FilterLanguage::Labels => Language::Labels,
        config::FilterLanguage::Fields => Language::Fields,
    }
}

/// The services that `server` answers, and those that tell of them.
pub(super) fn services(
    server: ResultsServer,
    (taken, limit): (usize, usize),
    most: Duration,
    pool: &DescriptorPool,
) -> Result<Routes, Error> {
    let ingest = IngestServer::new(server.clone())
        .max_decoding_message_size(taken)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip);
    let queries = QueriesServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let runs = RunsServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let results = results_server::ResultsServer::new(server)
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let reflection = Reflection::new(pool, &[tonic_health::pb::FILE_DESCRIPTOR_SET])
        .map_err(Error::Descriptors)?;
    Ok(Routes::new(TransportStatus(Deadline::within(
        Fields::new(results, pool),
        most,
    )))
    .add_service(TransportStatus(Deadline::asked(ingest)))
    .add_service(TransportStatus(Deadline::within(queries, most)))
    .add_service(TransportStatus(Deadline::within(runs, most)))
    .add_service(reflection_v1::ServerReflectionServer::new(
        reflection.clone(),
    ))
    .add_service(reflection_v1alpha::ServerReflectionServer::new(reflection)))
}

/// Opens the store, and says what an operator should know of it.
pub(super) async fn store(
    config: &Config,
    depot: Option<Arc<ObjectBackend>>,
) -> Result<Opened, storage::Error> {
    let options = Options {
        max_connections: config.db_max_connections.as_nonzero_u32(),
        long_connections: config.db_long_connections.as_nonzero_u32(),
        statement_timeout: config.db_statement_timeout.get(),
        wait: config.db_wait.get(),
        schema: Schema::Migrate,
        synchronous: match config.db_synchronous {
            config::Synchronous::Durable => Synchronous::Durable,
            other => Synchronous::Named(other.name()),
        },
        depot,
        objects: Unreachable::Refuse,
    };
    let mut opened = open(&config.db.expose(), &options).await?;
    if config.trace_endpoint.is_some() {
        opened.store = Arc::new(Traced::new(opened.store));
    }
    if !opened.applied.is_empty() {
        tracing::info!(db = %config.db, versions = ?opened.applied, "schema migrated");
    }
    for weak in &opened.weak {
        tracing::warn!(db = %config.db, "acknowledged writes may be lost: {weak}");
    }
    Ok(opened)
}

pub(super) async fn tokens(
    config: &Config,
    maintenance: &dyn Maintenance,
) -> Result<Tokens, storage::Error> {
    if let Some(key) = &config.page_token_key {
        return Ok(Tokens::new(key.expose().as_bytes()));
    }
    Ok(Tokens::new(
        &shared_secret(maintenance, TOKEN_SECRET).await?,
    ))
}

/// The secret of this name that all servers of a database share, made when it is first asked for.
pub(super) async fn shared_secret(
    maintenance: &dyn Maintenance,
    name: &str,
) -> Result<Vec<u8>, storage::Error> {
    let candidate: Vec<u8> = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]
        .iter()
        .flat_map(|uuid| uuid.into_bytes())
        .collect();
    maintenance.secret(name, &candidate).await
}

/// Puts the probes of the admin port beside the API, for those who reach only that.
pub(super) fn probes(api: Router, pages: &Router) -> Router {
    ["/livez", "/readyz"].into_iter().fold(api, |api, path| {
        let pages = pages.clone();
        api.route(
            path,
            get(move |request: Request<Body>| async move {
                let Ok(page) = pages.clone().call(request).await;
                page
            }),
        )
    })
}

/// Ready while the store answers and the server is not stopping.
pub(super) fn readiness(
    maintenance: Arc<dyn Maintenance>,
    shutdown: CancellationToken,
) -> Readiness {
    Readiness::new(move || {
        let (maintenance, shutdown) = (Arc::clone(&maintenance), shutdown.clone());
        async move {
            if shutdown.is_cancelled() {
                return Err("the server is stopping".to_owned());
            }
            // The probe is public. The causes are in the log of the store.
            maintenance.ping().await.map_err(|error| error.to_string())
        }
    })
}
