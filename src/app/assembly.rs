//! The parts that a server is put together of.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request, routing::get};
use hindsight_filter::Language;
use hindsight_proto::{
    v1::{
        archive_server::ArchiveServer, holds_server::HoldsServer, ingest_server::IngestServer,
        logs_server::LogsServer, queries_server::QueriesServer, runs_server::RunsServer,
    },
    v1alpha2::{logs_server, results_server},
    v1alpha3,
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
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::service::Routes;
use tonic_reflection::pb::{
    v1::server_reflection_server as reflection_v1,
    v1alpha::server_reflection_server as reflection_v1alpha,
};
use tower_service::Service as _;

use super::{homes, metrics, tls};
use crate::app::error::Error;
use crate::{
    config::{self, Config},
    events::{self, Events},
    grpc::{Deadline, Fields, Reflection, ResultsServer, TransportStatus},
    query::{Engine, Tokens},
    service::{LogMetrics, Logs, Service},
};

/// The part of a message that rows may fill; the rest is names and framing.
const PAGE_SHARE: (usize, usize) = (7, 8);

/// How long events that are under way may keep a server that is done.
const LAST_EVENTS: Duration = Duration::from_secs(10);

/// Largest message with lines of logs: their text, and times, of which each takes 8 bytes once it is read.
const LINES: usize = 8 << 20;

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

/// The senders of events, if there are receivers.
pub(super) async fn events(
    config: &Config,
    service: &Service,
    opened: &Opened,
    clock: &Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<Option<Events>, Error> {
    let Some(path) = &config.events_file else {
        return Ok(None);
    };
    let source = events::Source {
        service: service.clone(),
        store: Arc::clone(&opened.store),
        maintenance: Arc::clone(&opened.maintenance),
        clock: Arc::clone(clock),
        pages: pages(config),
    };
    let events = Events::load(path, source, registry).await;
    events.map(Some).map_err(Error::Events)
}

/// Sends events from now on; what is returned is over once that has ended after `stopping`.
pub(super) fn sending(
    events: Option<Events>,
    stopping: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let stopping = stopping.clone();
    let sending = events.map(|events| AbortOnDropHandle::new(tokio::spawn(events.run(stopping))));
    async move {
        if let Some(sending) = sending
            && tokio::time::timeout(LAST_EVENTS, sending).await.is_err()
        {
            tracing::warn!("events are still under way; they will be sent again");
        }
    }
}

/// The address of the web UI, if it is known.
fn pages(config: &Config) -> Option<String> {
    let public = config.public_url.as_ref()?;
    let is_on = config.ui == config::Ui::On;
    is_on.then(|| format!("{}{}", public.origin(), public.path()))
}

/// The use-cases over what was opened.
pub(super) fn service(
    config: &Config,
    opened: &Opened,
    engine: Engine,
    clock: &Arc<dyn Clock>,
    registry: &mut Registry,
) -> Result<Service, Error> {
    let redaction = config.logs_redact.clone().unwrap_or_default().compiled();
    let homes = homes::homes(config).map_err(Error::LogHomes)?;
    let metrics = LogMetrics::new(registry);
    let logs = Logs::new(Arc::clone(&opened.logs), homes, redaction, metrics)
        .with_link(config.logs_link.clone().map(|link| link.0))
        .with_quota(config.logs_quota.map(|quota| quota.get()));
    let language = match config.filter_language {
        config::FilterLanguage::Cel => Language::Cel,
        config::FilterLanguage::Labels => Language::Labels,
        config::FilterLanguage::Fields => Language::Fields,
    };
    let service = Service::new(Arc::clone(&opened.store), logs, engine, Arc::clone(clock));
    let names = config.cluster_names.clone().unwrap_or_default();
    let service = service
        .with_default_language(language)
        .with_cluster_names(names.0);
    Ok(match config.enable_pipelines {
        true => service.with_shared_definitions(config.pipelines_namespace.parent()),
        false => service,
    })
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
    let holds = HoldsServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let archive = ArchiveServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let logs = LogsServer::new(server.clone())
        .max_decoding_message_size(taken.min(LINES))
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let texts = logs_server::LogsServer::new(server.clone())
        .max_decoding_message_size(taken)
        .max_encoding_message_size(limit)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let later = v1alpha3::logs_server::LogsServer::new(server.clone())
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
    .add_service(TransportStatus(Deadline::asked(logs)))
    .add_service(TransportStatus(Deadline::asked(texts)))
    .add_service(TransportStatus(Deadline::asked(later)))
    .add_service(TransportStatus(Deadline::within(queries, most)))
    .add_service(TransportStatus(Deadline::within(runs, most)))
    .add_service(TransportStatus(Deadline::within(holds, most)))
    .add_service(TransportStatus(Deadline::within(archive, most)))
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
        archive: super::objects::archive_bucket(config)?,
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
