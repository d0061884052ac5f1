//! What becomes of runs that leave the cluster: forgotten, let go, or lost.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::Instant;
use tracing::warn;

use super::Shared;
use crate::{ledger::Uid, metrics::OfRun};

/// How many runs that are lost together are named in the log.
const NAMED: usize = 1000;
impl Shared {
    /// A run that is gone needs nothing more.
    pub(crate) fn forget(&self, uid: &Uid) {
        let owners = self.ledger().waiting_owners(uid);
        self.ledger().forget(uid);
        self.logs.forget(uid, self.clock.now(), Instant::now());
        self.server.remove_spooled(uid);
        self.wake(owners);
    }

    /// A run was let go before it could be stored. Returns why it could not.
    ///
    /// Its last state is known all the same, and is stored if the server comes back.
    pub(crate) fn overdue(&self, uid: &Uid) -> String {
        let mut ledger = self.ledger();
        let Some(entry) = ledger.get_mut(uid) else {
            return "the run is not known any more".to_owned();
        };
        let is_counted = std::mem::replace(&mut entry.overdue, true);
        let why = entry.error.as_deref().unwrap_or("not tried yet").to_owned();
        let (kind, namespace) = (entry.kind.kind, Arc::clone(&entry.namespace));
        drop(ledger);
        if !is_counted {
            self.not_stored(kind, &namespace);
        }
        why
    }

    fn not_stored(&self, kind: &str, namespace: &str) {
        let labels = OfRun {
            kind: kind.to_lowercase(),
            namespace: namespace.to_owned(),
        };
        self.metrics.not_stored.get_or_create(&labels).inc();
    }

    /// A run cannot be stored as things are; counted once for each.
    pub(crate) fn refused(&self, kind: &str, namespace: &str) {
        let labels = OfRun {
            kind: kind.to_lowercase(),
            namespace: namespace.to_owned(),
        };
        self.metrics.refused.get_or_create(&labels).inc();
    }

    /// The watcher ends, and with it what only it knows: the last states of runs that are gone and
    /// neither stored nor on disk. How many are lost.
    pub(crate) fn lose_rest(&self) -> usize {
        let mut lost = self.ledger().gone_unstored();
        lost.retain(|uid| !self.server.is_spooled(uid));
        for (n, uid) in lost.iter().enumerate() {
            self.give_up(uid, "the watcher ended before it was stored", n < NAMED);
        }
        if lost.len() > NAMED {
            warn!("{} more runs are lost", lost.len() - NAMED);
        }
        lost.len()
    }

    /// A run is lost: that is counted, listed and said.
    pub(crate) fn lose(&self, uid: &Uid, reason: &'static str) {
        self.give_up(uid, reason, true);
    }

    fn give_up(&self, uid: &Uid, reason: &'static str, is_named: bool) {
        let mut ledger = self.ledger();
        let Some(entry) = ledger.get(uid) else { return };
        let (kind, namespace, name) = (
            entry.kind.kind,
            Arc::clone(&entry.namespace),
            entry.name.clone(),
        );
        let is_counted = entry.overdue;
        let owners = ledger.waiting_owners(uid);
        ledger.lose(uid, reason, self.clock.now());
        drop(ledger);
        self.logs.forget(uid, self.clock.now(), Instant::now());
        self.wake(owners);
        self.server.remove_spooled(uid);
        if !is_counted {
            self.not_stored(kind, &namespace);
        }
        self.counters.lost.fetch_add(1, Ordering::Relaxed);
        if is_named {
            warn!(
                run.kind = kind, run.namespace = %namespace, run.name = %name, run.uid = %uid,
                "{kind} {namespace}/{name} is lost: {reason}"
            );
        }
        self.notify_progress();
    }
}
