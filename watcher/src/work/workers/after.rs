//! What becomes of a run when work on it has ended.

use std::time::Duration;

use hindsight_run::View;
use tokio::time::Instant;

use crate::{
    content::Digest,
    object::to_bytes,
    plan::{self, Remembered},
    queue::{Done, Work},
    spool::version,
    work::{Interrupted, Task},
};

/// After how many failures in a row an event is written about a run that the server does not take;
/// with the waits between them that is about a minute.
const FAILURES_BEFORE_EVENT: u32 = 8;

/// How long a run waits whose turn after a refusal never comes.
const REFUSED: Duration = Duration::from_hours(1);

impl Task<'_> {
    /// All is done about the version that was looked at.
    pub(super) fn reconciled(&self) {
        let reconciled = self
            .object
            .as_ref()
            .and_then(|o| View::new(o).resource_version());
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.error = None;
            entry.reconciled = reconciled.map(Into::into);
            let is_gone = entry.remembered.presence.is_gone();
            // That of one that is gone is removed when it is forgotten.
            let is_spooled = self.shared.server.is_spooled(&self.uid) && !is_gone;
            if is_spooled && let Some((digest, version)) = self.stored(&entry.remembered) {
                self.shared.server.remove_stored(&self.uid, digest, version);
            }
        }
    }

    /// Digest and version of the state that is stored, if there is one. That there is nothing to do
    /// does not say so: the run may wait for a turn, or have left the cluster without being seen to.
    fn stored(&self, remembered: &Remembered) -> Option<(Digest, u64)> {
        if let Some(object) = self.object.as_ref().filter(|_| self.is_trusted) {
            return Some((Digest::of(object), version(object)));
        }
        let copy = remembered.copy()?;
        Some((copy.digest, copy.version.number()))
    }

    /// What becomes of the run after an attempt that failed, the last of so many in a row.
    pub(super) async fn failed(&mut self, interrupted: Interrupted, failures: u32) -> Done {
        let failures = failures.saturating_add(1);
        let tuning = &self.shared.config.tuning;
        let (wait, keep) = match interrupted {
            Interrupted::Abandoned => (Duration::ZERO, true),
            Interrupted::Unavailable { error } => {
                self.note_error(&error);
                // Its state is kept: it may be gone from the cluster before the server is back.
                (tuning.retry.after(failures), true)
            }
            // What waits is woken by the one that finds out that it is no longer refused.
            Interrupted::Refused { error } => {
                self.note_error(&error);
                if self.gone {
                    self.spool().await;
                }
                (REFUSED, self.gone)
            }
            Interrupted::Later {
                error,
                is_rare,
                is_refused,
                retry_after,
            } => {
                self.note_error(&error);
                self.warn_of_retry(&error, failures, is_rare);
                if is_rare || (is_refused && failures >= FAILURES_BEFORE_EVENT) {
                    self.write_event(&error).await;
                }
                if self.gone && is_refused {
                    self.spool().await;
                }
                let wait = match is_rare {
                    true => tuning.rare_retry,
                    false => tuning.retry.after(failures),
                };
                (wait.max(retry_after.unwrap_or_default()), self.gone)
            }
        };
        Done::Failed(Instant::now() + wait, self.leftover(keep))
    }

    /// What the next attempt needs. A state that is not kept is read again.
    fn leftover(&mut self, keep: bool) -> Work {
        let is_kept = self.gone && self.shared.server.is_spooled(&self.uid);
        let object = self.bytes.take().filter(|_| keep && !is_kept);
        let view = self.object.as_ref().map(|object| self.shared.view(object));
        let policy = &self.shared.config.policy;
        Work {
            object,
            gone: self.gone,
            is_final: view.as_ref().is_some_and(|view| view.finish().done),
            is_progress: view
                .as_ref()
                .is_some_and(|view| plan::goes_on(view, policy)),
            needs_finalizer: view.is_some_and(|view| plan::finalizer::is_missing(&view, policy)),
        }
    }

    /// What workers of other lanes need, so that they need not read the run again.
    pub(super) fn rest(&mut self) -> Work {
        let object = self.object.as_ref();
        let view = object.map(|object| self.shared.view(object));
        let policy = &self.shared.config.policy;
        Work {
            is_final: view.as_ref().is_some_and(|view| view.finish().done),
            is_progress: view.is_some_and(|view| plan::goes_on(&view, policy)),
            object: self.bytes.take().or_else(|| object.map(to_bytes)),
            ..Work::default()
        }
    }
}
