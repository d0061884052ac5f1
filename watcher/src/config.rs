//! What a watcher is told, as types. Text becomes these in [`load`](mod@load); nothing here
//! reads it.

pub mod keys;
pub mod load;
pub mod sources;
mod tables;
pub(crate) mod texts;

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use hindsight_run::{DEFINITIONS, KINDS, Kind};

use crate::{backoff::Backoff, policy::Policy};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

/// How a watcher works.
#[derive(Debug, Clone)]
pub struct Config {
    /// The only namespace that is watched; `None` for all.
    pub namespace: Option<String>,
    /// The kinds that are watched, as far as the cluster has them.
    pub kinds: Vec<&'static Kind>,
    /// Kinds of which only the objects with these labels are watched.
    pub selectors: Vec<(&'static Kind, String)>,
    /// What is stored, annotated and collected.
    pub policy: Policy,
    /// Say what would be deleted, and delete nothing.
    pub dry_run: bool,
    /// How many runs are worked on at once.
    pub threadiness: NonZeroUsize,
    /// How many runs are deleted a second at most; `None` for as many as can be.
    pub deletes_per_second: Option<f64>,
    /// How many other writes to the cluster there are a second at most; `None` for as many as can
    /// be.
    pub writes_per_second: Option<f64>,
    /// How many of them may follow each other at once, after a time without any.
    pub writes_burst: NonZeroU32,
    /// Where metrics, probes and the ledger are served.
    pub metrics_listen: Option<SocketAddr>,
    /// Where last states of runs are kept while the server is away.
    pub spool: Option<SpoolConfig>,
    /// How to be the only one that works.
    pub lease: Option<LeaseConfig>,
    /// How long runs that are being stored may take once the watcher was asked to stop.
    pub shutdown_grace: Duration,
    /// Waits and bounds.
    pub tuning: Tuning,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: None,
            kinds: KINDS.iter().chain(DEFINITIONS).collect(),
            selectors: Vec::new(),
            policy: Policy::default(),
            dry_run: false,
            threadiness: NonZeroUsize::new(32).expect("it is not zero"),
            deletes_per_second: None,
            writes_per_second: None,
            writes_burst: NonZeroU32::new(10).expect("it is not zero"),
            metrics_listen: None,
            spool: None,
            lease: None,
            shutdown_grace: Duration::from_secs(20),
            tuning: Tuning::default(),
        }
    }
}

/// A directory on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    /// Where.
    pub dir: PathBuf,
    /// The most bytes of objects in it.
    pub limit: u64,
}

/// A lease that only one watcher holds at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Its namespace; `None` for that of the pod or the kubeconfig.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// How this watcher calls itself; no other one may.
    pub identity: String,
    /// How long it lasts unless it is renewed; whole seconds to others.
    pub duration: Duration,
    /// How long it is tried to renew it; less than it lasts.
    pub renew_deadline: Duration,
    /// How often it is renewed, or asked for.
    pub retry: Duration,
}

/// Waits and bounds, for those who embed a watcher.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// How often a kind is looked for that the cluster does not have.
    pub kind_poll: Duration,
    /// Between attempts to reach a server that is away.
    pub server: Backoff,
    /// Between attempts to watch a cluster that is away.
    pub cluster: Backoff,
    /// Between attempts to do something about one run.
    pub retry: Backoff,
    /// Between attempts that are not expected to work.
    pub rare_retry: Duration,
    /// The most bytes of objects that are held while they wait to be stored.
    pub hold_bytes: usize,
    /// How long a watch may be broken, or the server away, before the watcher is not ready.
    pub ready_for: Duration,
    /// The most objects in one page of a list. Pages of large objects have fewer.
    pub page_size: u32,
    /// How long a page of a list may take.
    pub list_deadline: Duration,
    /// How long a watch may take to begin.
    pub watch_deadline: Duration,
    /// After how long the API server is asked to end a watch, so that another one is begun.
    pub watch_lasts: Duration,
    /// How long all pages of a list together may wait for the server to store what they bring.
    pub list_patience: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        let between = |first, most| Backoff {
            first: Duration::from_millis(first),
            most: Duration::from_secs(most),
        };
        Self {
            kind_poll: Duration::from_secs(30),
            server: between(500, 30),
            cluster: between(800, 30),
            retry: between(500, 60),
            rare_retry: Duration::from_mins(10),
            hold_bytes: 256 << 20,
            ready_for: Duration::from_mins(1),
            page_size: 250,
            list_deadline: Duration::from_mins(1),
            watch_deadline: Duration::from_secs(30),
            watch_lasts: Duration::from_secs(290),
            list_patience: Duration::from_secs(30),
        }
    }
}

/// All that the program needs besides: whom to talk to, and how to log.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The address of the server.
    pub server: String,
    /// How the watcher says who it is.
    pub token: Option<Token>,
    /// A file that says it, and may say something new later.
    pub token_file: Option<PathBuf>,
    /// A file of authorities that may have signed the server's certificate.
    pub server_ca: Option<PathBuf>,
    /// The certificate that is shown to a server which wants one.
    pub client_cert: Option<PathBuf>,
    /// Its private key.
    pub client_key: Option<PathBuf>,
    /// Each run is stored by calls of its own, and never over a stream.
    pub plain_calls: bool,
    /// The cluster's name is the UID of its namespace `kube-system`.
    pub cluster_from_uid: bool,
    /// A kubeconfig; otherwise the usual places, or the cluster that this runs in.
    pub kubeconfig: Option<PathBuf>,
    /// What is logged, as a filter of `tracing`.
    pub log_level: LogFilter,
    /// How it is logged.
    pub log_format: LogFormat,
    /// The collector that spans are sent to.
    pub trace_endpoint: Option<String>,
    /// How many of a hundred traces are sent.
    pub trace_percent: u8,
    /// The watcher itself.
    pub config: Config,
}

/// A bearer token. It is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
