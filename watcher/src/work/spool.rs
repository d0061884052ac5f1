//! Keeping states on disk that may soon be nowhere else.

use serde_json::Value;
use tracing::{error, warn};

use hindsight_run::json;

use super::{Interrupted, Task};
use crate::{
    content::Digest, ledger::Uid, object::to_bytes, plan, queue::Work, shared::Shared, spool,
};
use hindsight_runtime::error::report;

impl Shared {
    /// Keeps the state of a run on disk, if there is a spool and the run may be gone before the
    /// server has it. Whether it is there now.
    pub(crate) async fn spool_state(&self, uid: &Uid, object: Value, bytes: Vec<u8>) -> bool {
        let Some(spool) = self.server.spool.clone() else {
            return false;
        };
        let digest = Digest::of(&object);
        let view = self.view(&object);
        let is_held = plan::is_held(&view, &self.config.policy, self.clock.now());
        let is_final = view.finish().done;
        let can_vanish = is_final && !is_held;
        let is_needed = |shared: &Self| {
            let ledger = shared.ledger();
            let Some(entry) = ledger.get(uid) else {
                return false;
            };
            let known = &entry.remembered;
            let is_stored = known.copy().is_some_and(|c| c.digest == digest);
            let may_go = known.presence.is_gone() || (can_vanish && !shared.server.gate.is_open());
            may_go && !(is_stored && is_final)
        };
        if !is_needed(self) {
            return false;
        }
        let of = uid.clone();
        let put = tokio::task::spawn_blocking(move || spool.put(&of, &object, &bytes)).await;
        let problem = match put {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(report(&error)),
            Err(error) => Some(report(&error)),
        };
        self.server.spool_works(problem);
        // It may have been stored meanwhile.
        if !is_needed(self) {
            self.server.remove_spooled(uid);
        }
        self.server.is_spooled(uid)
    }

    /// Takes up what an earlier watcher left behind. Whether these runs are still in the
    /// cluster is not known before it was listed.
    ///
    /// # Errors
    /// If a state cannot be read.
    pub(crate) fn replay(&self) -> Result<(), spool::Error> {
        let Some(spool) = &self.server.spool else {
            return Ok(());
        };
        let uids = spool.uids();
        for uid in &uids {
            let Some(state) = spool.state(uid)? else {
                continue;
            };
            let view = self.view(&state);
            let (Some(kind), Some(uid)) = (view.known_kind(), view.uid()) else {
                error!("spooled object of an unknown kind; it stays in the spool");
                continue;
            };
            self.ledger().saw(kind, &view, 0, self.clock.now());
            let is_elsewhere = self
                .config
                .namespace
                .as_deref()
                .is_some_and(|namespace| view.namespace() != Some(namespace));
            // No watch will show what became of it.
            if is_elsewhere || !self.config.kinds.contains(&kind) {
                let uid = Uid::from(uid);
                if let Some(entry) = self.ledger().get_mut(&uid) {
                    entry.remembered.presence.set_gone(true);
                }
                self.push(&uid, Work::gone());
            }
        }
        if !uids.is_empty() {
            let count = uids.len();
            warn!("{count} runs found in the spool; storing them");
        }
        Ok(())
    }
}

impl Task<'_> {
    /// Keeps the state that is worked on, because the server is unavailable.
    pub(super) async fn spool(&self) {
        let Some(object) = &self.object else { return };
        if self.shared.server.spool.is_some() {
            let bytes = self.bytes.clone().unwrap_or_else(|| to_bytes(object));
            self.shared
                .spool_state(&self.uid, object.clone(), bytes)
                .await;
        }
    }

    /// Reads the last state of a run that is gone from the disk, unless the server has a newer
    /// one: then an earlier watcher had stored it and had no time to clean up.
    pub(super) async fn load_spooled(&mut self) -> Result<(), Interrupted> {
        let Some(spool) = self.shared.server.spool.clone() else {
            return Ok(());
        };
        let uid = self.uid.clone();
        let read = tokio::task::spawn_blocking(move || spool.get(&uid)).await;
        // That it cannot be read now does not say that there is nothing.
        let read = read.map_err(|error| Interrupted::passing(report(&error)))?;
        let read = read.map_err(|error| Interrupted::passing(report(&error)))?;
        let Some(bytes) = read else {
            return Ok(());
        };
        let Ok(object) = json::parse(&bytes) else {
            return Ok(());
        };
        let policy = &self.shared.config.policy;
        if let Ok(upload) = plan::upload(&self.shared.view(&object), policy) {
            let held = self.read_copy(&upload.grouping.record).await?;
            if held.is_some_and(|held| spool::version(&held) > spool::version(&object)) {
                self.shared.server.remove_spooled(&self.uid);
                return Ok(());
            }
        }
        self.bytes = Some(bytes);
        self.object = Some(object);
        Ok(())
    }
}
