//! What everybody who serves the simulated cluster shares: its state, its settings, and what is
//! told of changes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    calls::CallLog, clock::Clock, faults::Faults, logs::Logs, policy::Policy, world::World,
};

/// How a simulated server behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many changes are remembered at most, for consistent pages; five minutes of the clock, as a
    /// real server. Watches can go back 75 seconds, or 100 changes where that is more.
    pub history: usize,
    /// How often watches that allow bookmarks get one, if there is news. Another comes two seconds
    /// before a watch ends.
    pub bookmark_every: Duration,
    /// How many changes wait for the client of a watch that does not read.
    pub watch_buffer: usize,
    /// How long a watch waits for a client that does not read while that many wait; then it ends.
    pub watch_patience: Duration,
    /// Whether the storage tells how far it is, as etcd does from 3.5.13 on. Without, a watch that
    /// begins with what is there, and sends bookmarks, fails.
    pub watch_progress: bool,
    /// How many bytes etcd may hold in changes that are not compacted; more writes are refused then.
    pub storage_quota: Option<usize>,
    /// Whether `sendInitialEvents` is offered.
    pub streaming_lists: bool,
    /// How many calls are remembered.
    pub calls: usize,
    /// Uid of the namespace `kube-system`, by which people tell clusters apart.
    pub cluster_uid: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: 20_000,
            bookmark_every: Duration::from_mins(1),
            watch_buffer: 100,
            watch_patience: Duration::from_millis(100),
            watch_progress: true,
            storage_quota: None,
            streaming_lists: true,
            calls: 100_000,
            cluster_uid: KUBE_SYSTEM_UID.to_owned(),
        }
    }
}

/// Uid of the namespace `kube-system`, unless the settings say otherwise.
pub const KUBE_SYSTEM_UID: &str = "5e1f0c3a-7d52-4b7e-9c55-0b7f6f3c2a11";

/// What everybody who serves the cluster shares.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    news: watch::Sender<u64>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) faults: Faults,
    pub(crate) calls: CallLog,
    pub(crate) policy: Policy,
    pub(crate) logs: Logs,
    /// How many watches ended because their clients did not read.
    pub(crate) closed_watches: AtomicU64,
}

impl Shared {
    pub(crate) fn new(settings: Settings, clock: Arc<dyn Clock>, world: World) -> Self {
        Self {
            news: watch::Sender::new(world.version),
            world: Mutex::new(world),
            clock,
            faults: Faults::default(),
            calls: CallLog::with_capacity(settings.calls),
            policy: Policy::default(),
            logs: Logs::default(),
            closed_watches: AtomicU64::new(0),
            settings,
        }
    }

    /// The state as it is now; no one may wait while holding it.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let now = self.clock.now();
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.now = now;
        world.history.pass(now);
        world
    }

    /// Changes the state and tells watches.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world();
        let outcome = change(&mut world);
        let version = world.version;
        let gone = std::mem::take(&mut world.gone_pods);
        drop(world);
        self.logs.forget(&gone);
        self.news.send_if_modified(|known| {
            let newer = version > *known;
            *known = version.max(*known);
            newer
        });
        outcome
    }

    /// Tells when the newest version changes.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}
