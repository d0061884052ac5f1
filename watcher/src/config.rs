//! The configuration of a watcher: [`Settings`] are what the sources say, and [`Config`] is what a
//! watcher does with them.

mod load;
mod settings;
mod tables;
mod values;

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use hindsight_run::{DEFINITIONS, KINDS, Kind};

pub use self::{settings::Settings, values::Logs};
use crate::{backoff::Backoff, policy::Policy};
pub use hindsight_cluster::LeaseConfig;
use hindsight_config::Settings as _;
pub use hindsight_config::{File, Problems, Program, Sources};

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
    /// Whether logs are read.
    pub logs: Logs,
    /// How many containers are followed at once.
    pub logs_followed: NonZeroUsize,
    /// The most bytes of the log of one start of a container.
    pub logs_max_bytes: u64,
    /// How long runs that are being stored may take once the watcher was asked to stop.
    pub shutdown_grace: Duration,
    /// Waits and bounds, most of which only a program that embeds a watcher sets.
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
            logs: Logs::Off,
            logs_followed: NonZeroUsize::new(500).expect("it is not zero"),
            logs_max_bytes: 1 << 30,
            shutdown_grace: Duration::from_secs(20),
            tuning: Tuning::default(),
        }
    }
}

/// A directory on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    /// Path of the directory, which one watcher uses at a time.
    pub dir: PathBuf,
    /// The most bytes of objects in it.
    pub limit: u64,
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
    /// How often at most the progress of a run is stored.
    pub progress_interval: Duration,
    /// How long all pages of a list together may wait for the server to store what they bring.
    pub list_patience: Duration,
    /// How long lines of logs wait for others to be sent together.
    pub logs_interval: Duration,
    /// How long after the end of a run its last pods may become known.
    pub logs_settle: Duration,
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
            progress_interval: Duration::from_secs(10),
            list_patience: Duration::from_secs(30),
            logs_interval: Duration::from_secs(1),
            logs_settle: Duration::from_secs(2),
        }
    }
}

/// All that the program needs: whom to talk to, how to log, and the watcher itself.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The values of all keys.
    pub settings: Box<Settings>,
    /// What the watcher does with them.
    pub config: Config,
}

impl Launch {
    /// Whether the cluster's name is to be the UID of its namespace `kube-system`.
    #[must_use]
    pub fn cluster_from_uid(&self) -> bool {
        let name = self.settings.cluster_id.as_ref();
        name.is_some_and(|name| name.id.is_none())
    }
}

/// The names of the keys in files, variables and flags.
pub const PROGRAM: Program = Program {
    keys: Settings::KEYS,
    variables: "HINDSIGHT_WATCHER_",
    flags: "",
    heading: None,
    without_flags: &[],
    tables: &["kind", "rule"],
    foreign: &[],
    passed: &[],
};

/// The same beside a server in the same process, which is the one that is written to and logs for both.
pub const BESIDE: Program = Program {
    flags: "watcher-",
    heading: Some("Watcher"),
    without_flags: &[
        "server",
        "server_ca",
        "client_cert",
        "client_key",
        "plain_calls",
        "log_level",
        "log_format",
    ],
    ..PROGRAM
};

const REFERENCE: &str = "
## Watcher

The keys of `hindsight-watcher`. `HINDSIGHT_WATCHER_CONFIG` names the file as `--config` does. The
file may also have tables `[[rule]]` and `[[kind]]` ([operate.md](operate.md#rules)). Beside the
server, in `hindsight all-in-one`, flags begin with `--watcher-`.
";

/// The part of `docs/config.md` about the watcher, which is its end.
#[must_use]
pub fn reference_markdown() -> String {
    format!("{REFERENCE}{}", PROGRAM.markdown())
}
