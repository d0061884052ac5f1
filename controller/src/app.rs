//! Putting a controller together, running it, and ending it in order.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt};
use hindsight_cluster::{
    Lease, LeaseConfig, Pace,
    webhook::{Tls, serve},
};
use hindsight_runtime::{
    admin::Readiness,
    clock::{Clock, SystemClock},
    telemetry::Registry,
};
use hindsight_workflow::custom::Form;
use kube::runtime::{controller, reflector};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    admin,
    cluster::Cluster,
    config::Config,
    custom,
    kinds::queued,
    metrics::Metrics,
    pipeline,
    reconcile::{reconcile, retry},
    shared::Shared,
    watch::{follow_jobs, follow_workflows},
    webhook,
};

/// How long events that wait are posted at the end.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// Why a controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address for metrics cannot be used.
    #[error("`{addr}` cannot be listened on for metrics; choose another with --metrics-listen")]
    Listen {
        /// The address and port that the configuration names.
        addr: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The address of the webhook cannot be used.
    #[error("`{addr}` cannot be listened on for the webhook; choose another with --webhook-listen")]
    ListenWebhook {
        /// The address and port that the configuration names.
        addr: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The webhook has no certificate.
    #[error("the webhook cannot be served")]
    Tls(#[source] hindsight_runtime::tls::Error),
    /// Another controller may work by now.
    #[error("the lease `{name}` is lost: {why}")]
    Lease {
        /// Name of the lease object in the cluster.
        name: String,
        /// How it was lost.
        why: String,
    },
    /// A part ended that should not have.
    #[error("a part of the controller ended before it was asked to")]
    Task,
}

/// Where a controller is, for its probe of readiness.
#[derive(Debug, Default)]
struct Stage(AtomicU8);

const STARTING: u8 = 0;
const STANDBY: u8 = 1;
const LISTING: u8 = 2;
const WORKING: u8 = 3;

impl Stage {
    fn set(&self, stage: u8) {
        self.0.store(stage, Ordering::Relaxed);
    }

    /// A replica that stands by is ready to take over.
    fn ready(&self) -> Result<(), String> {
        match self.0.load(Ordering::Relaxed) {
            STARTING => Err("the lease was not asked for yet".to_owned()),
            LISTING => Err("workflows and Jobs are not listed yet".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A controller that is ready to run.
#[derive(Debug)]
pub struct App {
    config: Config,
    client: Cluster,
    metrics: Arc<Metrics>,
    registry: Arc<Registry>,
    admin: Option<(TcpListener, SocketAddr)>,
    webhook: Option<(TcpListener, SocketAddr, Arc<Tls>)>,
    stage: Arc<Stage>,
    clock: Arc<dyn Clock>,
}

impl App {
    /// Makes a controller of the cluster behind `client`, which need not be there yet. It fails if the
    /// address for metrics cannot be listened on.
    pub async fn bind(config: Config, client: kube::Client) -> Result<Self, Error> {
        Self::bind_with(config, client, Arc::new(SystemClock)).await
    }

    /// As [`App::bind`], with another clock.
    pub async fn bind_with(
        config: Config,
        client: kube::Client,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let admin = match config.metrics_listen {
            None => None,
            Some(addr) => {
                let refuse = |source| Error::Listen { addr, source };
                let listener = TcpListener::bind(addr).await.map_err(refuse)?;
                let addr = listener.local_addr().map_err(refuse)?;
                Some((listener, addr))
            }
        };
        let webhook = match &config.webhook {
            None => None,
            Some(wanted) => {
                let tls = Tls::load(&wanted.cert, &wanted.key).map_err(Error::Tls)?;
                let addr = wanted.listen;
                let refuse = |source| Error::ListenWebhook { addr, source };
                let listener = TcpListener::bind(addr).await.map_err(refuse)?;
                let addr = listener.local_addr().map_err(refuse)?;
                Some((listener, addr, Arc::new(tls)))
            }
        };
        let mut registry = Registry::new();
        let metrics = Arc::new(Metrics::register(&mut registry));
        let rate = config.writes_per_second;
        let burst = rate.map_or(1, std::num::NonZeroU32::get).div_ceil(10);
        let writes = Pace::new(rate.map(|rate| f64::from(rate.get())), burst);
        Ok(Self {
            client: Cluster::new(client, config.namespace.clone(), writes, Arc::clone(&clock)),
            config,
            metrics,
            registry: Arc::new(registry),
            admin,
            webhook,
            stage: Arc::default(),
            clock,
        })
    }

    /// Where metrics are served, if they are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, addr)| *addr)
    }

    /// Where the webhook is served, if it is.
    pub fn webhook_addr(&self) -> Option<SocketAddr> {
        self.webhook.as_ref().map(|(_, addr, _)| *addr)
    }

    /// Everything that is measured, as Prometheus reads it.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    /// Runs workflows until `shutdown`, then ends the passes that are under way. With a lease, waits for
    /// that first, and gives it back at the end. It fails if the lease is lost, which ends all work at
    /// once, or if a part ends by itself.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let last = CancellationToken::new();
        if let Some((listener, addr)) = self.admin {
            info!("metrics on http://{addr}/metrics");
            let stage = Arc::clone(&self.stage);
            let readiness = Readiness::new(move || std::future::ready(stage.ready()));
            let registry = Arc::clone(&self.registry);
            tokio::spawn(admin::serve(listener, registry, readiness, last.clone()));
        }
        if let Some((listener, addr, tls)) = self.webhook {
            // Also a replica that stands by answers.
            info!("the webhook on https://{addr}{}", webhook::PATH);
            let webhooks = vec![(webhook::PATH, webhook::answer())];
            tokio::spawn(serve(listener, tls, webhooks, last.clone()));
        }
        let _served = last.drop_guard();
        let work = Work {
            config: self.config.clone(),
            cluster: self.client,
            metrics: self.metrics,
            stage: self.stage,
        };
        match &self.config.lease {
            None => work.run(&shutdown).await,
            Some(lease) => work.lead(lease, self.clock.as_ref(), &shutdown).await,
        }
    }
}

/// What is done while a controller leads.
struct Work {
    config: Config,
    cluster: Cluster,
    metrics: Arc<Metrics>,
    stage: Arc<Stage>,
}

impl Work {
    async fn lead(
        self,
        config: &LeaseConfig,
        clock: &dyn Clock,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let leases = self.cluster.leases(config.namespace.as_deref());
        let mut lease = Lease::new(leases, config, clock);
        let stage = Arc::clone(&self.stage);
        let since = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Ok(()),
            since = lease.acquire(|_| stage.set(STANDBY)) => since,
        };
        info!("`{}` leads", config.identity);
        let result = tokio::select! {
            biased;
            // All work is dropped with the other branch.
            why = lease.keep(since) => {
                return Err(Error::Lease { name: config.name.clone(), why });
            }
            result = self.run(shutdown) => result,
        };
        lease.release().await;
        result
    }

    async fn run(self, shutdown: &CancellationToken) -> Result<(), Error> {
        self.stage.set(LISTING);
        self.metrics.leading.set(1);
        let (store, writer) = reflector::store();
        let (queue, names) = mpsc::unbounded_channel();
        let grace = self.config.shutdown_grace;
        let concurrency = self.config.concurrency.get();
        let metrics = Arc::clone(&self.metrics);
        let shared = Shared::new(
            self.config,
            self.cluster,
            self.metrics,
            store.clone(),
            queue,
        );
        let shared = Arc::new(shared);
        let mut watches = JoinSet::new();
        watches.spawn(follow_workflows(Arc::clone(&shared), writer));
        watches.spawn(follow_jobs(Arc::clone(&shared)));
        let (stage, jobs) = (self.stage, Arc::clone(&shared));
        watches.spawn(async move {
            jobs.jobs.ready().await;
            if jobs.workflows.wait_until_ready().await.is_ok() {
                stage.set(WORKING);
            }
            std::future::pending::<()>().await;
        });
        let mut tekton = JoinSet::new();
        if shared.config.custom_tasks {
            for form in Form::ALL {
                tekton.spawn(custom::serve(Arc::clone(&shared), form, shutdown.clone()));
            }
        }
        if shared.config.pipeline_runs {
            tekton.spawn(pipeline::serve(Arc::clone(&shared), shutdown.clone()));
        }
        // The passes that are under way end when there are no more names.
        let names = queued(names, shutdown.clone());
        let passes = controller::applier(
            |object, shared| reconcile(object, shared).boxed(),
            retry,
            Arc::clone(&shared),
            store,
            names,
            controller::Config::default().concurrency(concurrency),
        );
        let passes = passes.for_each(|_| std::future::ready(()));
        let mut passes = std::pin::pin!(passes);
        let result = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            _ = watches.join_next() => Err(Error::Task),
            () = &mut passes => Err(Error::Task),
        };
        let all = async { tokio::join!(passes, tekton.join_all()) };
        if result.is_ok() {
            let grace = grace.max(Duration::from_millis(1));
            if timeout(grace, all).await.is_err() {
                warn!(
                    "passes were still under way after {grace:?}; a later start goes on with them"
                );
            }
            if timeout(LAST_EVENTS, shared.events.posted()).await.is_err() {
                warn!("events were not posted within {LAST_EVENTS:?}, and are dropped");
            }
        }
        metrics.leading.set(0);
        result
    }
}
