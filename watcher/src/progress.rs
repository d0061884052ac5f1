//! How far a watcher is, for those who run one in their own process.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    ledger::{Announced, State, Uid, Unstored},
    shared::{Role, Shared},
};

/// How far a watcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Runs whose final state the server has confirmed, since the watcher began.
    pub stored: u64,
    /// Runs that were deleted because they are stored; not counting those that went with them.
    pub collected: u64,
    /// Runs that left the cluster before anything of them was stored.
    pub lost: u64,
    /// Runs that are in the cluster, as far as the watcher knows.
    pub in_cluster: usize,
    /// Runs that wait to be worked on now.
    pub waiting: usize,
    /// Bytes of the objects that are in memory.
    pub held: usize,
    /// Every object of every kind that the cluster has was seen.
    pub is_listed: bool,
    /// It works, and does not stand by for another watcher.
    pub is_leading: bool,
    /// The server answers, or was not asked yet.
    pub is_server_up: bool,
}

/// A view into a watcher that runs. Clones look at the same one.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// How far it is now.
    pub fn progress(&self) -> Progress {
        let shared = &self.shared;
        Progress {
            stored: shared.counters.stored.load(Ordering::Relaxed),
            collected: shared.counters.collected.load(Ordering::Relaxed),
            lost: shared.counters.lost.load(Ordering::Relaxed),
            in_cluster: shared.ledger().len(),
            waiting: shared.queues.runs.depth(),
            held: shared.queues.runs.held(),
            is_listed: shared.cluster.kinds.is_listed(),
            is_leading: shared.role() == Role::Leader,
            is_server_up: shared.server.gate.is_open(),
        }
    }

    /// Waits until `holds`; it is asked again whenever something happened.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut changes = self.shared.changes();
        let mut server = self.shared.server.gate.state();
        loop {
            changes.mark_unchanged();
            server.mark_unchanged();
            if holds(self) {
                return;
            }
            tokio::select! {
                changed = changes.changed() => changed,
                changed = server.changed() => changed,
            }
            .expect("the senders live as long as what they are about");
        }
    }

    /// Finished runs that are not stored yet, with the reason; the longest waiting first.
    pub fn unstored(&self, limit: usize) -> Vec<Unstored> {
        self.shared.ledger().unstored_finals(limit)
    }

    /// Runs that were lost, with the reason; the newest first.
    pub fn lost(&self, limit: usize) -> Vec<Unstored> {
        self.shared.ledger().lost(limit)
    }

    /// Runs that would have been deleted, if deleting were not only tried; by UID.
    pub fn announced(&self) -> Vec<Announced> {
        self.shared.ledger().announced()
    }

    /// What is known about the run with this UID.
    pub fn state(&self, uid: &str) -> Option<State> {
        self.shared
            .ledger()
            .get(&Uid::from(uid))
            .map(crate::ledger::Entry::state)
    }
}
