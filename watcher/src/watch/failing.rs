//! A kind that cannot be watched: what is said of it, and how long it rests.

use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::Watch;
use crate::{
    cluster::{self},
    list_watch::Failure,
    presence::KindPresence,
};

impl Watch {
    pub(super) fn recovered(&mut self) {
        if self.failing_since.take().is_some() {
            info!(
                kind = self.kind.kind,
                "watching {} again",
                self.kind.data_type()
            );
        }
        self.failures = 0;
        self.shared.cluster.health.works(self.kind);
    }

    /// Nothing could be read, but may be in a while.
    pub(super) async fn failed(&mut self, failure: &Failure) {
        let (shared, name) = (&self.shared, self.kind.data_type());
        self.failures += 1;
        if failure.is_expired() {
            debug!(kind = self.kind.kind, "{name} is listed anew: {failure}");
        } else {
            shared.cluster.health.broke(self.kind);
            if self.failing_since.is_none() {
                warn!(
                    kind = self.kind.kind,
                    "{name} cannot be read: {failure}; trying until it can"
                );
            }
            let since = *self.failing_since.get_or_insert_with(Instant::now);
            let is_new = matches!(
                shared.cluster.kinds.get(self.kind),
                Some(KindPresence::Unknown | KindPresence::Listing)
            );
            // If no kind can be read, it is the cluster that is broken.
            if is_new
                && shared.cluster.kinds.is_any_listed()
                && failure.is_about_the_kind()
                && since.elapsed() >= shared.config.tuning.ready_for
            {
                shared.set_presence(self.kind, KindPresence::Broken);
                error!(
                    kind = self.kind.kind,
                    "{name} still cannot be read: {failure}; its runs are not stored, and runs that \
                     name one as their child are not collected"
                );
            }
        }
        let wait = shared.config.tuning.cluster.after(self.failures);
        tokio::time::sleep(wait).await;
    }

    /// There is no right to see the kind. That must not keep us from all others.
    pub(super) async fn forbidden(&mut self, failure: &Failure) {
        let kind = self.kind;
        self.not_watched(KindPresence::Forbidden, |name| {
            warn!(
                kind = kind.kind,
                "{name} may not be read: {failure}; its runs are not stored, and runs that name one \
                 as their child are not collected; grant list and watch of {}, or leave it out of \
                 --kinds",
                cluster::full_name(kind.plural, kind.group)
            );
        });
        tokio::time::sleep(self.shared.config.tuning.kind_poll).await;
    }

    /// The kind is not watched; it is said once why not.
    pub(super) fn not_watched(&mut self, presence: KindPresence, say: impl FnOnce(&str)) {
        (self.failures, self.refusals, self.failing_since) = (0, 0, None);
        self.shared.cluster.health.rests(self.kind);
        if self.shared.set_presence(self.kind, presence) != Some(presence) {
            say(&self.kind.data_type());
        }
    }
}
