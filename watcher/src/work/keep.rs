//! Keeping states on disk that nobody else may have soon.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use hindsight_run::Kind;
use hindsight_run::json;

use super::{Halt, Task};
use crate::{
    content::Digest, gate::Closed, ledger::Uid, plan, queue::Work, shared::Shared, spool,
    watch::bytes,
};
use hindsight_runtime::error::report;

/// Whenever the server goes away, keeps what waits for it, until `stop`. What is seen later is
/// kept when it is seen.
pub(crate) async fn keep_backlog(shared: Arc<Shared>, stop: CancellationToken) {
    let mut state = shared.gate.state();
    let work = async {
        loop {
            if state.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let outage = shared.gate.outages();
            for uid in shared.queue.uids() {
                if let Some(bytes) = shared.queue.state(&uid)
                    && let Ok(object) = json::parse(&bytes)
                {
                    shared.keep(&uid, object, bytes).await;
                }
            }
            let is_over = |closed: &Closed| closed.is_none() || shared.gate.outages() != outage;
            if state.wait_for(is_over).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Stores what an earlier leader left in the spool, while another watcher leads: that needs no lease,
/// and nobody else can. Returns when nothing is left.
pub(crate) async fn store_spooled(shared: &Shared) {
    let Some(spool) = &shared.spool else { return };
    let mut failures = 0;
    loop {
        for uid in spool.uids() {
            let mut task = Task::new(shared, uid, true, None);
            if let Err(Halt::Later { error, .. } | Halt::Away { error }) =
                task.store_spooled().await
            {
                task.note(&error);
            }
        }
        shared.tick();
        if spool.size().0 == 0 {
            return;
        }
        failures += 1;
        tokio::time::sleep(shared.config.tuning.retry.after(failures)).await;
    }
}

impl Shared {
    /// Keeps the state of a run on disk, if there is a spool and the run may be gone before the
    /// server has it. Whether it is there now.
    pub(crate) async fn keep(&self, uid: &Uid, object: Value, bytes: Vec<u8>) -> bool {
        let Some(spool) = self.spool.clone() else {
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
            let may_go = known.presence.is_gone() || (can_vanish && !shared.gate.is_open());
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
        self.spool_works(problem);
        // It may have been stored meanwhile.
        if !is_needed(self)
            && let Some(spool) = &self.spool
        {
            spool.remove(uid);
        }
        self.is_kept(uid)
    }

    /// Whether a state of the run is on disk.
    pub(crate) fn is_kept(&self, uid: &Uid) -> bool {
        self.spool.as_ref().is_some_and(|spool| spool.has(uid))
    }

    /// Takes up what an earlier watcher left behind. Whether these runs are still in the
    /// cluster is not known before it was listed.
    pub(crate) fn replay(&self, states: Vec<Value>) {
        let count = states.len();
        for state in states {
            let view = self.view(&state);
            let (Some(kind), Some(uid)) = (view.known_kind(), view.uid()) else {
                error!("a spooled object is of no kind that is known; it stays in the spool");
                continue;
            };
            self.ledger().saw(kind, &view, 0, self.clock.now());
            let is_elsewhere = self
                .config
                .namespace
                .as_deref()
                .is_some_and(|namespace| view.namespace() != Some(namespace));
            // Nobody will tell what became of it.
            if is_elsewhere || !self.config.kinds.contains(&kind) {
                let uid = Uid::from(uid);
                if let Some(entry) = self.ledger().get_mut(&uid) {
                    entry.remembered.presence.set_gone(true);
                }
                self.push(
                    &uid,
                    Work {
                        gone: true,
                        ..Work::default()
                    },
                );
            }
        }
        if count > 0 {
            warn!("{count} runs were left behind in the spool; they are stored now");
        }
    }
}

impl Task<'_> {
    /// Keeps the state that is worked on, because the server is away.
    pub(super) async fn keep(&self) {
        let Some(object) = &self.object else { return };
        if self.shared.spool.is_some() {
            let bytes = self.bytes.clone().unwrap_or_else(|| bytes(object));
            self.shared.keep(&self.uid, object.clone(), bytes).await;
        }
    }

    /// Reads the last state of a run that is gone from the disk, unless the server has a newer
    /// one: then an earlier watcher had stored it and had no time to clean up.
    pub(super) async fn recall(&mut self) -> Result<(), Halt> {
        let Some(spool) = self.shared.spool.clone() else {
            return Ok(());
        };
        let uid = self.uid.clone();
        let read = tokio::task::spawn_blocking(move || spool.get(&uid)).await;
        let Some(bytes) = read.ok().flatten() else {
            return Ok(());
        };
        let Ok(object) = json::parse(&bytes) else {
            return Ok(());
        };
        let policy = &self.shared.config.policy;
        if let Ok(upload) = plan::upload(&self.shared.view(&object), policy) {
            let held = self.inquire(&upload.grouping.record).await?;
            if held.is_some_and(|held| spool::version(&held) > spool::version(&object)) {
                self.forget_spooled();
                return Ok(());
            }
        }
        self.bytes = Some(bytes);
        self.object = Some(object);
        Ok(())
    }

    /// Stores the last state of a run as it is on disk.
    async fn store_spooled(&mut self) -> Result<(), Halt> {
        self.recall().await?;
        let Some(object) = &self.object else {
            return Ok(());
        };
        let view = self.shared.view(object);
        let is_closed = view.finish().done || view.known_kind().is_some_and(Kind::is_long_lived);
        let upload = plan::upload(&view, &self.shared.config.policy)
            .map_err(|error| Halt::passing(report(&error)))?;
        self.store(&upload).await?;
        if !is_closed {
            self.close(plan::DELETED_UNFINISHED).await?;
        }
        self.forget_spooled();
        Ok(())
    }

    fn forget_spooled(&self) {
        if let Some(spool) = &self.shared.spool {
            spool.remove(&self.uid);
        }
    }
}
