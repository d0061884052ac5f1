//! The composition root of the server: configuration in, a running server out.
//!
//! [`App::bind`] opens the store and the sockets, so that everything that can be wrong at the
//! start is an error there; [`App::run`] serves until it is told to stop, and returns once
//! every request that was taken has been answered or the grace is over.

mod access;
mod arriving;
mod browser;
mod depot;
mod gate;
mod health;
mod in_process;
mod leaving;
mod lent;
mod line;
mod listen;
mod live;
mod metrics;
mod patience;
mod reload;
mod serve;
mod signs;
mod sweep;
mod throttle;
mod tls;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body, http::Request, routing::get};
use hindsight_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{ingest_server::IngestServer, queries_server::QueriesServer},
    v1alpha2::results_server,
};
use prost_reflect::DescriptorPool;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::Channel};
use tonic_reflection::pb::{
    v1::server_reflection_server as reflection_v1,
    v1alpha::server_reflection_server as reflection_v1alpha,
};
use tower_http::cors::CorsLayer;
use tower_service::Service as _;

use crate::{
    config::{self, Config},
    grpc::{Deadline, Fields, Reflection, ResultsServer, TransportStatus},
    query::{Engine, Tokens},
    service::Service,
};
use hindsight_access::auth;
use hindsight_filter::Language;
use hindsight_runtime::admin::{self, Readiness};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::{Registry, RequestMetrics};
use hindsight_storage as storage;
use hindsight_storage::{
    Maintenance, Store, Traced,
    objects::ObjectBackend,
    resolve::{Opened, Options, Schema, Synchronous, Unreachable, open},
};
use hindsight_transcode as rest;
use hindsight_transcode::Rest;

pub use depot::{depot, depot_at};
pub use live::Live;
pub use tls::TlsError;

/// The part of a message that rows may fill; the rest is names and framing.
const PAGE_SHARE: (usize, usize) = (7, 8);
/// What a reply may have more than the request that it answers: what the server adds to a
/// record. Without this room a record could be stored and never be sent.
const REPLY_ROOM: usize = 2 << 10;
/// How long open connections and queries may keep a server that is done.
const LET_GO: Duration = Duration::from_secs(5);
/// Under which name the database keeps the secret of page tokens.
const TOKEN_SECRET: &str = "page_token_key";

/// Why a server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be used.
    #[error("the database {db} cannot be used")]
    Store {
        /// Which, without its password.
        db: String,
        /// What is wrong with the database, or with the way to it.
        #[source]
        source: storage::Error,
    },
    /// Nobody can be asked about callers.
    #[error("auth `{method}` cannot be used")]
    Auth {
        /// How callers were to be told apart.
        method: config::Auth,
        /// What keeps this way of judging callers from being set up.
        #[source]
        source: auth::ConnectError,
    },
    /// The users cannot be known.
    #[error("the file of users cannot be used")]
    Users(#[source] auth::FileError),
    /// Changes cannot be told.
    #[error("cannot write the audit log")]
    Audit(#[source] std::io::Error),
    /// Tokens of an issuer cannot be judged.
    #[error("auth `oidc` cannot be used")]
    Oidc(#[source] auth::OidcError),
    /// Connections cannot be secured.
    #[error("secure connections (TLS) cannot be offered")]
    Tls(#[source] TlsError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}; choose another with --{flag}")]
    Listen {
        /// The address and port that the configuration names.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The descriptors do not decode; the binary was built wrong.
    #[error("the service descriptors are broken")]
    Descriptors(#[source] prost_reflect::DescriptorError),
    /// The descriptors ask for routes that cannot be; the binary was built wrong.
    #[error("the REST routes cannot be made")]
    Rest(#[source] rest::Error),
    /// The metrics page failed.
    #[error("serving metrics stopped")]
    Admin(#[source] std::io::Error),
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct App {
    api: TcpListener,
    admin: Option<TcpListener>,
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    grpc: Router,
    rest: Rest,
    gate: gate::Gate,
    health: health::Health,
    registry: Arc<Registry>,
    maintenance: Arc<dyn Maintenance>,
    clock: Arc<dyn Clock>,
    grace: Duration,
    tls: Option<Arc<tls::Tls>>,
    reload: Vec<Arc<dyn reload::Reload>>,
    /// Cancelled when streams should take nothing more.
    stopping: CancellationToken,
    live: Live,
    connections: metrics::Connections,
    limits: serve::Limits,
    cors: Option<CorsLayer>,
    guard: Option<browser::Guard>,
    in_process: in_process::InProcessTransport,
}

impl App {
    /// Opens the store, brings its schema up to date, and takes the sockets.
    ///
    /// # Errors
    /// If the store or an address cannot be used.
    pub async fn bind(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let unusable = |source| Error::Store {
            db: config.db.to_string(),
            source,
        };
        let depot = depot(config).map_err(unusable)?;
        // What may be misspelt is read before the schema is changed, which older servers would
        // refuse.
        let mut registry = Registry::new();
        let tls = secured(config, Arc::clone(&clock), &mut registry)?;
        let (authorizer, reload) =
            access::authorizer(config, Arc::clone(&clock), &mut registry).await?;
        let audit = live::audit(config, &mut registry).map_err(Error::Audit)?;
        let opened = store(config, depot.clone()).await.map_err(unusable)?;
        let tokens = tokens(config, &*opened.maintenance)
            .await
            .map_err(unusable)?;
        let limit = config.max_message_bytes.as_usize();
        let engine = engine(config, Arc::clone(&opened.store), tokens);
        let budgets = live::budgets(config, Arc::clone(&clock), &mut registry);
        let service = Service::new(opened.store, engine, Arc::clone(&clock))
            .with_audit(audit)
            .with_default_language(language(config));
        let metrics = RequestMetrics::new(&mut registry);
        registry.collect(metrics::Database(Arc::clone(&opened.maintenance)));
        if let Some(depot) = depot {
            registry.collect(metrics::Objects(depot));
        }
        let stopping = CancellationToken::new();
        let live = Live::new(config, budgets.clone());
        let taken = limit - REPLY_ROOM.min(limit / 8);
        let gate = gate::Gate::new(
            Arc::clone(&authorizer),
            budgets.clone(),
            metrics.clone(),
            taken,
            config.client_timeout.get(),
        );
        let server = ResultsServer::new(service, authorizer, metrics, budgets, stopping.clone());
        let (health, health_service) = health::Health::new(Arc::clone(&opened.maintenance)).await;

        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).map_err(Error::Descriptors)?;
        let grpc = services(server, (taken, limit), config.request_timeout.get(), &pool)?
            .add_service(health_service)
            .into_axum_router();
        let only_json = config.auth == config::Auth::Off;
        let rest = Rest::new(&pool, grpc.clone(), taken, only_json).map_err(Error::Rest)?;

        let api = listen::bind(config.listen, "listen").await?;
        let admin = match config.metrics_listen {
            Some(address) => Some(listen::bind(address, "metrics-listen").await?),
            None => None,
        };
        let address = |listener: &TcpListener, asked| listener.local_addr().unwrap_or(asked);
        Ok(Self {
            connections: metrics::Connections::new(&mut registry),
            address: address(&api, config.listen),
            admin_address: admin
                .as_ref()
                .zip(config.metrics_listen)
                .map(|(l, a)| address(l, a)),
            api,
            admin,
            grpc,
            rest,
            gate,
            health,
            registry: Arc::new(registry),
            maintenance: opened.maintenance,
            clock,
            grace: config.shutdown_grace.get(),
            reload: reload
                .into_iter()
                .chain(tls.clone().map(|tls| tls as _))
                .collect(),
            tls,
            stopping,
            live,
            limits: serve::Limits::of(config),
            cors: config.cors_origins.as_ref().map(serve::cors),
            guard: browser::Guard::of(config),
            in_process: in_process::InProcessTransport::new(),
        })
    }

    /// Where gRPC and REST are answered.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics and health pages are, unless they are off.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// A channel to this server that does not leave the process; whoever asks through it is asked
    /// who that is, as on the port. It answers while [`App::run`] runs. Needs a runtime.
    pub fn channel(&self) -> Channel {
        self.in_process.channel()
    }

    /// What of the configuration can be changed while the server runs.
    pub fn live(&self) -> Live {
        self.live.clone()
    }

    /// Serves until `shutdown`, then lets requests in flight finish within the grace.
    ///
    /// # Errors
    /// If a listener fails.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        // The admin page outlives the API, so that a drain can be watched.
        let drained = CancellationToken::new();
        let readiness = readiness(Arc::clone(&self.maintenance), shutdown.clone());
        let pages = admin::router(self.registry, readiness);
        let rest = self.gate.before(self.rest.router(), gate::Speech::Rest);
        let mut http = probes(rest, &pages);
        if let Some(cors) = self.cors {
            http = http.layer(cors);
        }
        let grpc = self.gate.before(self.grpc, gate::Speech::Grpc);
        let front = serve::front(grpc, http);
        let admin = self.admin.map(|listener| {
            let drained = drained.clone();
            tokio::spawn(async move {
                axum::serve(listener, pages)
                    .with_graceful_shutdown(async move { drained.cancelled().await })
                    .await
            })
        });
        let sweep = tokio::spawn(sweep::sweep(Arc::clone(&self.maintenance)));
        let objects = sweep::objects(Arc::clone(&self.maintenance), self.clock);
        let objects = tokio::spawn(objects);
        let watch = tokio::spawn(self.health.watch(shutdown.clone()));
        let reload = tokio::spawn(reload::watch(self.reload));
        tracing::info!(address = %self.address, "serving");

        let listener = listen::Listener(self.api);
        let builder = self.limits.builder();
        let in_process = self
            .in_process
            .serve(front.clone(), builder.clone(), shutdown.clone());
        let port = serve::Port {
            router: browser::guarded(front, self.guard),
            builder,
            tls: self.tls,
            limits: self.limits,
            metrics: self.connections,
        };
        let serving = async {
            tokio::join!(port.serve(listener, shutdown.clone()), in_process);
        };
        let grace = async {
            shutdown.cancelled().await;
            self.stopping.cancel();
            tracing::info!(grace = ?self.grace, "stopping; requests in flight may finish");
            tokio::time::sleep(self.grace).await;
        };
        tokio::select! {
            () = serving => {}
            () = grace => tracing::warn!("grace period over; aborting requests in flight"),
        }
        watch.abort();
        sweep.abort();
        objects.abort();
        reload.abort();
        if tokio::time::timeout(LET_GO, self.maintenance.close())
            .await
            .is_err()
        {
            tracing::warn!("a query is still running; store not closed cleanly");
        }
        drained.cancel();
        if let Some(admin) = admin {
            stop_admin(admin).await?;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

fn engine(config: &Config, store: Arc<dyn Store>, tokens: Tokens) -> Engine {
    let limit = config.max_message_bytes.as_usize();
    let page = limit / PAGE_SHARE.1 * PAGE_SHARE.0;
    Engine::new(store, tokens, config.scan_budget.get(), page).sending(limit)
}

/// What connections are secured by, if they are, and the metric of its certificate.
fn secured(
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

fn language(config: &Config) -> Language {
    match config.filter_language {
        config::FilterLanguage::Cel => Language::Cel,
        config::FilterLanguage::Labels => Language::Labels,
        config::FilterLanguage::Fields => Language::Fields,
    }
}

/// The services that `server` answers, and those that tell of them.
fn services(
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
    .add_service(reflection_v1::ServerReflectionServer::new(
        reflection.clone(),
    ))
    .add_service(reflection_v1alpha::ServerReflectionServer::new(reflection)))
}

/// Waits for the metrics page, but not for a peer that never finishes its request.
async fn stop_admin(mut page: JoinHandle<std::io::Result<()>>) -> Result<(), Error> {
    if let Ok(ended) = tokio::time::timeout(LET_GO, &mut page).await {
        return ended
            .expect("the metrics page does not panic")
            .map_err(Error::Admin);
    }
    tracing::debug!("a connection to the metrics page stayed open; it was cut off");
    page.abort();
    Ok(())
}

/// Opens the store, and says what an operator should know of it.
async fn store(
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

async fn tokens(config: &Config, maintenance: &dyn Maintenance) -> Result<Tokens, storage::Error> {
    if let Some(key) = &config.page_token_key {
        return Ok(Tokens::new(key.expose().as_bytes()));
    }
    let candidate: Vec<u8> = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]
        .iter()
        .flat_map(|uuid| uuid.into_bytes())
        .collect();
    Ok(Tokens::new(
        &maintenance.secret(TOKEN_SECRET, &candidate).await?,
    ))
}

/// Puts the probes of the admin port beside the API, for those who reach only that.
fn probes(api: Router, pages: &Router) -> Router {
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

/// Ready while the store answers and nobody asked to stop.
fn readiness(maintenance: Arc<dyn Maintenance>, shutdown: CancellationToken) -> Readiness {
    Readiness::new(move || {
        let (maintenance, shutdown) = (Arc::clone(&maintenance), shutdown.clone());
        async move {
            if shutdown.is_cancelled() {
                return Err("the server is stopping".to_owned());
            }
            // Strangers may ask. The causes are in the log of whoever watches the store.
            maintenance.ping().await.map_err(|error| error.to_string())
        }
    })
}
