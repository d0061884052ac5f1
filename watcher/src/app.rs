//! Putting a watcher together, running it, and ending it in order.

mod lead;

use std::{net::SocketAddr, sync::Arc};

use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    admin::{self, Admin},
    backoff::Backoff,
    cluster::{Cluster, ClusterError},
    config::Config,
    metrics::{Metrics, Registry},
    policy::{ClusterId, ClusterIdError},
    progress::Handle,
    shared::Shared,
    sink::Sink,
    spool::{self, Spool},
};
use hindsight_runtime::clock::{Clock, SystemClock};

use lead::{LAST, lead, watch_and_work};

/// Why a watcher cannot run.
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
    /// Nothing can be kept on disk.
    #[error("runs cannot be kept on disk")]
    Spool {
        /// What is wrong with the spool.
        #[source]
        source: spool::Error,
    },
    /// Another watcher may work by now.
    #[error("the lease `{name}` is lost: {why}")]
    Lease {
        /// Name of the lease object in the cluster.
        name: String,
        /// How it was lost.
        why: String,
    },
    /// Runs are gone from the cluster, and nobody else knows their last states.
    #[error(
        "{count} runs that are gone from the cluster could not be stored before the watcher ended, \
         and are lost; with --spool they would be on disk"
    )]
    Lost {
        /// Number of runs whose last state is lost.
        count: usize,
    },
    /// A part ended that should not have.
    #[error("a part of the watcher ended before it was asked to")]
    Task {
        /// How it ended, if it panicked.
        #[source]
        source: Option<tokio::task::JoinError>,
    },
}

/// A watcher that is ready to run.
#[derive(Debug)]
pub struct App {
    shared: Arc<Shared>,
    registry: Arc<Registry>,
    admin: Option<(TcpListener, SocketAddr)>,
}

impl App {
    /// Makes a watcher of the cluster behind `client` that stores into `sink`. Neither needs
    /// to be there yet.
    ///
    /// # Errors
    /// If the address for metrics cannot be listened on, or the spool cannot be used.
    pub async fn bind(
        config: Config,
        client: kube::Client,
        sink: Arc<dyn Sink>,
    ) -> Result<Self, Error> {
        Self::bind_with(config, client, sink, Arc::new(SystemClock)).await
    }

    /// As [`App::bind`], with another clock.
    ///
    /// # Errors
    /// If the address for metrics cannot be listened on, or the spool cannot be used.
    pub async fn bind_with(
        config: Config,
        client: kube::Client,
        sink: Arc<dyn Sink>,
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
        let refuse = |source| Error::Spool { source };
        let spool = match &config.spool {
            None => None,
            Some(spool) => {
                let spool = Spool::open(spool.dir.clone(), spool.limit);
                Some(Arc::new(spool.map_err(refuse)?))
            }
        };
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let cluster = Cluster::new(client, config.namespace.clone());
        let shared = Arc::new(Shared::new(config, cluster, sink, clock, metrics, spool));
        shared.replay().map_err(refuse)?;
        Ok(Self {
            shared,
            registry: Arc::new(registry),
            admin,
        })
    }

    /// A view into the watcher, also while it runs.
    pub fn handle(&self) -> Handle {
        Handle {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Where metrics are served, if they are.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, addr)| *addr)
    }

    /// Watches until `shutdown`, then takes no more events and finishes what is being stored,
    /// within the grace. With a lease, waits for that first, and gives it back at the end.
    ///
    /// # Errors
    /// If the lease is lost, which ends all work at once; if runs are lost with the watcher; or if a
    /// part of it ends by itself, which is a bug.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let shared = self.shared;
        let last = CancellationToken::new();
        let admin = self.admin.map(|(listener, addr)| {
            info!("metrics on http://{addr}/metrics, the ledger on http://{addr}/ledger");
            let handle = Handle {
                shared: Arc::clone(&shared),
            };
            let admin = Admin {
                handle,
                registry: Arc::clone(&self.registry),
            };
            tokio::spawn(admin::serve(admin, listener, last.clone()))
        });
        let result = match &shared.config.lease {
            None => watch_and_work(&shared, &shutdown).await,
            Some(lease) => lead(&shared, lease, &shutdown).await,
        };
        let count = shared.lose_rest();
        let result = result.and(match count {
            0 => Ok(()),
            count => Err(Error::Lost { count }),
        });
        last.cancel();
        if let Some(admin) = admin
            && timeout(LAST, admin).await.is_err()
        {
            warn!("admin port still in use; closing it");
        }
        result
    }
}

/// The name of the cluster behind `client`: the UID of its namespace `kube-system`. Asks until the
/// cluster answers; `None` if `shutdown` comes first.
///
/// # Errors
/// If the cluster has no such namespace, or does not let us see it.
pub async fn identify(
    client: kube::Client,
    backoff: Backoff,
    shutdown: &CancellationToken,
) -> Result<Option<ClusterId>, IdentityError> {
    let cluster = Cluster::new(client, None);
    let refuse = |why: String| IdentityError { why };
    let mut failures = 0;
    loop {
        match cluster.identity().await {
            Ok(Some(uid)) => {
                let id = uid.parse().map(Some);
                return id.map_err(|error: ClusterIdError| refuse(error.to_string()));
            }
            Ok(None) => return Err(refuse("it has no namespace kube-system".to_owned())),
            Err(error @ ClusterError::Refused { .. }) => return Err(refuse(error.to_string())),
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    warn!("cluster unavailable; retrying to read its identity: {error}");
                }
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(backoff.after(failures)) => {}
        }
    }
}

/// Why a cluster has no name of its own.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cluster does not say who it is: {why}; allow `get` on the namespace kube-system, or name \
     the cluster with --cluster-id"
)]
pub struct IdentityError {
    why: String,
}

/// Watches the cluster behind `client` and stores into `sink`, until `shutdown`.
///
/// # Errors
/// As [`App::bind`] and [`App::run`].
pub async fn run(
    config: Config,
    client: kube::Client,
    sink: Arc<dyn Sink>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    App::bind(config, client, sink).await?.run(shutdown).await
}
