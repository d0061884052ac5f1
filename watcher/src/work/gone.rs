//! Runs that a list does not have any more. A list may be older than what was watched before it, so
//! one whose end is not stored is looked for before it is given up.

use tracing::debug;

use hindsight_run::View;

use super::{Interrupted, Task};
use crate::{cluster::ClusterError, plan, presence::KindPresence};

impl Task<'_> {
    /// Whether a run that is said to be gone is in the cluster all the same: nobody told its last
    /// state, or only its labels are no longer those that are watched. Then it is worked on as any
    /// other.
    pub(super) async fn is_there_after_all(&mut self) -> Result<bool, Interrupted> {
        if !self.may_be_there() {
            return Ok(false);
        }
        let Some(at) = self.address() else {
            return Ok(false);
        };
        match self.shared.cluster.api.get(&at).await {
            Ok(Some(found)) if found["metadata"]["uid"] == self.uid.as_str() => {}
            // Without the right to look, the list is all that is known.
            Ok(_) | Err(ClusterError::Refused { .. } | ClusterError::Moved) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        debug!(run.uid = %self.uid, "run is in the cluster, though a list or event said otherwise");
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.presence.set_gone(false);
        }
        self.gone = false;
        self.bytes = None;
        self.object = None;
        // It is read as any other, so that an outdated state is noticed.
        Ok(true)
    }

    /// A run that left what is watched has left the cluster by now: no watch tells of that.
    pub(super) fn left_unwatched(&mut self) -> bool {
        let mut ledger = self.shared.ledger();
        let entry = ledger.get_mut(&self.uid).filter(|entry| entry.unselected);
        if let Some(entry) = entry {
            entry.remembered.presence.set_gone(true);
            self.gone = true;
        }
        self.gone
    }

    /// It is of a kind and namespace that are watched, or would be if the cluster let us, and something
    /// would be lost with it.
    fn may_be_there(&self) -> bool {
        let ledger = self.shared.ledger();
        let Some(entry) = ledger.get(&self.uid) else {
            return false;
        };
        let is_watched = matches!(
            self.shared.cluster.kinds.get(entry.kind),
            Some(
                KindPresence::Forbidden
                    | KindPresence::Broken
                    | KindPresence::Listing
                    | KindPresence::Listed
            )
        );
        let only = self.shared.config.namespace.as_deref();
        let is_in_reach = only.is_none_or(|only| *only == *entry.namespace);
        let is_open = !entry.is_safe() && !entry.remembered.is_trusted();
        let may_be_there = match &self.object {
            None => is_open,
            // An event that says so is believed, unless it may be about labels.
            Some(object) => {
                let mut selectors = self.shared.config.policy.selectors.iter();
                let is_held = plan::finalizer::are_ours_there(&View::new(object));
                selectors.any(|(kind, _)| *kind == entry.kind)
                    && !entry.remembered.presence.is_delete_requested()
                    && (is_open || is_held)
            }
        };
        is_watched && is_in_reach && may_be_there
    }
}
