//! Reporting why a run is not stored: in the ledger, in the log, and as an event in the cluster.

use std::sync::atomic::Ordering;

use tracing::{debug, warn};

use super::{Interrupted, Task};
use crate::{cluster::ClusterError, shared::Shared};

impl Task<'_> {
    /// Puts into the ledger why work on the run was interrupted.
    pub(super) fn note(&self, interrupted: &Interrupted) {
        if let Some(error) = interrupted.error() {
            self.note_error(error);
        }
    }

    /// Puts into the ledger why the run is not stored.
    pub(super) fn note_error(&self, error: &str) {
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.error = Some(error.into());
        }
    }

    /// Writes an event about the run that says why it is not stored, once.
    pub(super) async fn write_event(&self, error: &str) {
        let is_first = match self.shared.ledger().get_mut(&self.uid) {
            Some(entry) if !entry.is_safe() => !std::mem::replace(&mut entry.has_event, true),
            _ => false,
        };
        let Some(at) = self.address().filter(|_| is_first) else {
            return;
        };
        self.shared.refused(at.kind.kind, &at.namespace);
        let now = self.shared.clock.now();
        // Enough was written about others.
        if self.shared.budgets.events.take(now).is_err() {
            return;
        }
        let message = format!("the run cannot be stored: {error}");
        let cluster = &self.shared.cluster.api;
        match cluster
            .write_event(&at, self.uid.as_str(), now, &message)
            .await
        {
            // An earlier watcher has written it.
            Ok(()) | Err(ClusterError::Moved) => {}
            Err(error) => debug!("event not written: {error}"),
        }
    }

    pub(super) fn warn_of_retry(&self, error: &str, failures: u32, is_rare: bool) {
        let Some(at) = self.address() else { return };
        let (kind, namespace, name) = (at.kind.kind, &at.namespace, &at.name);
        let uid = &self.uid;
        if is_rare || failures == 1 {
            self.shared.warn(|more| {
                warn!(
                    run.kind = kind, run.namespace = %namespace, run.name = %name, run.uid = %uid,
                    "{kind} {namespace}/{name} failed, retrying: {error}{more}"
                );
            });
        } else {
            debug!(
                run.kind = kind, run.namespace = %namespace, run.name = %name, run.uid = %uid,
                failures, "{kind} {namespace}/{name} failed, retrying: {error}"
            );
        }
    }
}

impl Shared {
    /// Warns of a single run, unless many others were warned of just now: how many is then said with
    /// the next one.
    pub(super) fn warn(&self, warn: impl FnOnce(&dyn std::fmt::Display)) {
        if self.budgets.warnings.take(self.clock.now()).is_err() {
            self.budgets
                .suppressed_warnings
                .fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.budgets.suppressed_warnings.swap(0, Ordering::Relaxed) {
            0 => warn(&""),
            more => warn(&format_args!(" (and {more} more warnings suppressed)")),
        }
    }
}
