//! The parts of what all of a watcher shares.

use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicU64};

use tracing::{info, warn};

use crate::{
    cluster::Cluster, content::Digest, deadline::Deadlines, gate::Gate, health::Health,
    ledger::Uid, namespaces::Namespaces, presence::KindPresences, queue::Queue, refusals::Refusals,
    sink::Sink, spool::Spool, uid_queue::UidQueue,
};
use hindsight_cluster::Pace;

/// The cluster, and what is known about it besides its runs.
#[derive(Debug)]
pub(crate) struct ClusterSide {
    pub(crate) api: Cluster,
    pub(crate) kinds: KindPresences,
    pub(crate) health: Health,
    pub(crate) namespaces: Namespaces,
}

/// The server, and what is kept for it while it is unavailable.
#[derive(Debug)]
pub(crate) struct ServerSide {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) gate: Gate,
    pub(crate) spool: Option<Arc<Spool>>,
    /// Why nothing could be spooled the last time.
    pub(super) spool_problem: Mutex<Option<String>>,
}

#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) runs: Queue,
    /// For annotations, or for a finalizer that holds nothing up to come off.
    pub(crate) annotations: UidQueue,
    /// For the deadline of a delete by others.
    pub(crate) deadlines: Deadlines,
    /// For what is refused.
    pub(crate) refusals: Refusals,
}

/// How fast things are done.
#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) deletes: Pace,
    /// Other writes to the cluster.
    pub(crate) writes: Pace,
    /// Events about runs that cannot be stored.
    pub(crate) events: Pace,
    /// Warnings about single runs in the log.
    pub(crate) warnings: Pace,
    /// How many warnings were left out.
    pub(crate) suppressed_warnings: AtomicU64,
}

/// How many runs there were since the watcher began.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) stored: AtomicU64,
    pub(crate) collected: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl ServerSide {
    /// Notes whether the spool works; says so when that changes.
    pub(crate) fn spool_works(&self, problem: Option<String>) {
        let mut known = self
            .spool_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => warn!("spool unavailable; runs are in memory only: {problem}"),
            (Some(_), None) => info!("spool available again"),
            _ => {}
        }
        *known = problem;
    }

    /// Nothing is kept on disk of a run any more.
    pub(crate) fn remove_spooled(&self, uid: &Uid) {
        if let Some(spool) = &self.spool {
            spool.remove(uid);
        }
    }

    /// The server holds a run in a state of this digest and version: nothing older is kept on disk.
    pub(crate) fn remove_stored(&self, uid: &Uid, digest: Digest, version: u64) {
        if let Some(spool) = &self.spool {
            spool.remove_stored(uid, digest, version);
        }
    }

    /// Whether a state of a run is on disk.
    pub(crate) fn is_spooled(&self, uid: &Uid) -> bool {
        self.spool.as_ref().is_some_and(|spool| spool.has(uid))
    }
}
