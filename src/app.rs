//! The composition root of the server: configuration in, a running server out.
//!
//! [`App::bind`] opens the store and the sockets, so that everything that can be wrong at the
//! start is an error there; [`App::run`] serves until it is told to stop, and returns once
//! every request that was taken has been answered or the grace is over.

mod access;
mod assembly;
mod browser;
mod conn_state;
mod connection;
mod error;
mod extensions;
mod gate;
mod heads;
mod health;
mod homes;
mod in_process;
mod kfp;
mod lingering_socket;
mod listen;
mod live;
mod metrics;
mod objects;
mod ray;
mod reload;
mod request_body;
mod response_body;
mod retention;
mod serve;
mod sign_in;
mod sweep;
mod throttle;
mod tls;
mod web;
mod write_timeout;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tower_http::cors::CorsLayer;

use crate::{
    config::{self, Config},
    events::Events,
    grpc::ResultsServer,
    retention::Retention,
};
use hindsight_runtime::admin::{self};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::telemetry::{Registry, RequestMetrics};
use hindsight_storage::Maintenance;
use hindsight_transcode::Rest;
use hindsight_web::Web;

use assembly::{engine, probes, readiness, secured, service, store, tokens};
use extensions::Extensions;

pub use error::Error;
pub use kfp::admission::Webhooks;
pub use live::{Live, audit};
pub use objects::{command_options, foreign_logs, object_backend, object_backend_at};
pub use retention::retention_of;
pub use tls::TlsError;

/// What a reply may have more than the request that it answers: what the server adds to a
/// record. Without this room a record could be stored and never be sent.
const REPLY_ROOM: usize = 2 << 10;
/// How long open connections and queries may keep a server that is done.
const LET_GO: Duration = Duration::from_secs(5);
/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct App {
    api: TcpListener,
    admin: Option<TcpListener>,
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    grpc: Router,
    rest: Rest,
    extensions: Extensions,
    webhooks: Option<Webhooks>,
    gate: gate::Gate,
    health: health::Health,
    registry: Arc<Registry>,
    maintenance: Arc<dyn Maintenance>,
    clock: Arc<dyn Clock>,
    grace: Duration,
    changes_retention: Duration,
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
    web: Option<Web>,
    events: Option<Events>,
    retention: Option<Retention>,
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
        let objects = object_backend(config).map_err(unusable)?;
        // What may be misspelt is read before the schema is changed, which older servers would
        // refuse.
        let mut registry = Registry::new();
        let tls = secured(config, Arc::clone(&clock), &mut registry)?;
        let access::Access {
            authorizer,
            reload,
            sign_in,
        } = access::access(config, Arc::clone(&clock), &mut registry).await?;
        let audit = live::audit(config, &mut registry).map_err(Error::Audit)?;
        let opened = store(config, objects.clone()).await.map_err(unusable)?;
        let tokens = tokens(config, &*opened.maintenance)
            .await
            .map_err(unusable)?;
        let limit = config.max_message_bytes.as_usize();
        let engine = engine(config, Arc::clone(&opened.store), tokens);
        let budgets = live::budgets(config, Arc::clone(&clock), &mut registry);
        let service = service(config, &opened, engine, &clock, &mut registry)?.with_audit(audit);
        let events = assembly::events(config, &service, &opened, &clock, &mut registry).await?;
        let retention = retention::retention(config, &service, &opened, &clock, &mut registry)?;
        let metrics = RequestMetrics::new(&mut registry);
        metrics::of_storage(&mut registry, &opened.maintenance, objects);
        let stopping = CancellationToken::new();
        let live = Live::new(config, budgets.clone());
        let taken = limit - REPLY_ROOM.min(limit / 8);
        let doors = (budgets.clone(), metrics.clone());
        let gate = gate::Gate::new(&authorizer, doors, taken, config.client_timeout.get());
        let callers = (Arc::clone(&authorizer), sign_in);
        let server = ResultsServer::new(service, authorizer, metrics, budgets, stopping.clone());
        let (health, health_service) = health::Health::new(Arc::clone(&opened.maintenance)).await;

        let services = Extensions::services(config, server, &opened.pipelines, (taken, limit));
        let (routes, pool, extensions) = services.await?;
        let grpc = routes.add_service(health_service).into_axum_router();
        let only_json = config.auth == config::Auth::Off;
        let rest = Rest::new(&pool, grpc.clone(), taken, only_json).map_err(Error::Rest)?;

        let grpc = gate.before(grpc, gate::Protocol::Grpc);
        let of_pages = serve::front(grpc.clone(), Router::new());
        let web = web::pages(config, callers, &*opened.maintenance, of_pages, &clock)
            .await
            .map_err(unusable)?;
        let webhooks = Webhooks::of(config).await?;
        let (api, address) = listen::bind(config.listen, "listen").await?;
        let (admin, admin_address) = listen::admin(config).await?.unzip();
        Ok(Self {
            connections: metrics::Connections::new(&mut registry),
            address,
            admin_address,
            api,
            admin,
            grpc,
            rest,
            extensions,
            webhooks,
            gate,
            health,
            registry: Arc::new(registry),
            maintenance: opened.maintenance,
            clock,
            grace: config.shutdown_grace.get(),
            changes_retention: config.changes_retention.get(),
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
            web,
            events,
            retention,
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

    /// Where admission webhooks of pipelines are, if they are served.
    pub fn webhooks_address(&self) -> Option<SocketAddr> {
        self.webhooks.as_ref().map(Webhooks::address)
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
        let rest = self.extensions.router(&self.rest);
        let rest = self.gate.before(rest, gate::Protocol::Rest);
        let mut http = probes(rest, &pages);
        if let Some(cors) = self.cors {
            http = http.layer(cors);
        }
        let http = web::beside(http, self.web, self.limits.patience());
        let front = serve::front(self.grpc, http);
        let admin = self.admin.map(|listener| {
            let drained = drained.clone();
            tokio::spawn(async move {
                axum::serve(listener, pages)
                    .with_graceful_shutdown(async move { drained.cancelled().await })
                    .await
            })
        });
        let sweeps = sweep::begin(&self.maintenance, &self.clock, self.changes_retention);
        let events = assembly::sending(self.events, &self.stopping);
        let retention = retention::passing(self.retention, &self.stopping);
        let webhooks = answering(self.webhooks, &drained);
        let watch = tokio::spawn(self.health.watch(shutdown.clone()));
        let reload = tokio::spawn(reload::watch(self.reload));
        tracing::info!(address = %self.address, "serving");

        let listener = listen::Listener(self.api);
        let builder = self.limits.builder();
        let answered = CancellationToken::new();
        let in_process = self
            .in_process
            .serve(front.clone(), builder.clone(), answered.clone());
        let port = serve::Port {
            router: browser::guarded(front, self.guard),
            builder,
            tls: self.tls,
            limits: self.limits,
            metrics: self.connections,
        };
        let serving = async {
            let on_port = async {
                port.serve(listener, shutdown.clone()).await;
                answered.cancel();
            };
            tokio::join!(on_port, in_process);
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
        self.stopping.cancel();
        events.await;
        retention.await;
        watch.abort();
        drop(sweeps);
        reload.abort();
        if tokio::time::timeout(LET_GO, self.maintenance.close())
            .await
            .is_err()
        {
            tracing::warn!("a query is still running; store not closed cleanly");
        }
        drained.cancel();
        if let Some(webhooks) = webhooks {
            webhooks.await.expect("the webhooks do not panic");
        }
        if let Some(admin) = admin {
            stop_admin(admin).await?;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Webhooks answer until the last request of a client is answered, which may write objects.
fn answering(webhooks: Option<Webhooks>, drained: &CancellationToken) -> Option<JoinHandle<()>> {
    webhooks.map(|webhooks| tokio::spawn(webhooks.run(drained.clone())))
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
