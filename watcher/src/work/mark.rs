//! Writing on runs that are stored: annotations, and finalizers that hold nothing up. No more of
//! that is done than was agreed, and nothing else waits for it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use hindsight_run::View;

use super::{Halt, Next, ROUNDS, Task};
use crate::{
    cluster::{Address, ClusterError},
    content::Digest,
    plan::{self, Annotations, EventRecord, Finalize, Presence, Remembered, Step},
    queue::Work,
    refusals::{Action, Scope},
    shared::Shared,
    watch::bytes,
};

/// Writes on stored runs until `stop`.
pub(crate) async fn mark(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    let work = async {
        loop {
            let uid = shared.marks.pop().await;
            let mut task = Task::new(&shared, uid.clone(), false, None);
            match task.mark().await {
                Err(Halt::Later { retry_after, .. }) => {
                    failures += 1;
                    let wait = shared.config.tuning.retry.after(failures);
                    shared.pause(wait.max(retry_after.unwrap_or_default()));
                    // It is read anew, and comes back if it is still as it was.
                    shared.push(&uid, Work::default());
                }
                // What is refused waits elsewhere.
                Ok(()) | Err(_) => failures = 0,
            }
            shared.tick();
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Tries from time to time what was refused, until `stop`.
pub(crate) async fn retry_refused(shared: Arc<Shared>, stop: CancellationToken) {
    let work = async {
        loop {
            let now = || shared.clock.now();
            let (action, uid) = shared.refusals.next(now, |at| shared.instant(at)).await;
            // One that is gone has nothing to try any more, unless it was never stored.
            let is_known = shared.ledger().get(&uid).is_some();
            if is_known {
                shared.retry(action, &uid);
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

impl Shared {
    /// Writes nothing for so long.
    pub(super) fn pause(&self, time: std::time::Duration) {
        let until = self
            .clock
            .now()
            .saturating_add(jiff::SignedDuration::try_from(time).unwrap_or_default());
        self.writes.pause(until.unwrap_or(Timestamp::MAX));
    }

    /// Waits for the next turn to write.
    pub(super) async fn write_in_turn(&self) {
        let turn = self.writes.turn(self.clock.now());
        sleep_until(self.instant(turn)).await;
    }

    /// Waits until there is a turn that nothing more urgent wants. Cancel safe.
    async fn may_write(&self) {
        while let Err(at) = self.writes.take(self.clock.now()) {
            sleep_until(self.instant(at)).await;
        }
    }
}

impl Task<'_> {
    /// Writes what is missing on a run that is stored.
    async fn mark(&mut self) -> Result<(), Halt> {
        if self.shared.config.policy.finalizers {
            return self.mark_and_release().await;
        }
        let Some((at, scope, annotations)) = self.unwritten() else {
            return Ok(());
        };
        self.admit(&scope)?;
        self.shared.may_write().await;
        // It may have been deleted meanwhile.
        if self.unwritten().is_some() {
            self.annotate(&at, &scope, &annotations).await?;
        }
        Ok(())
    }

    /// What is to be written on the run, as far as it is known without its object.
    fn unwritten(&self) -> Option<(Address, Scope, BTreeMap<String, String>)> {
        let at = self.address()?;
        let scope = self.scope(Action::Annotate);
        let ledger = self.shared.ledger();
        let entry = ledger.get(&self.uid)?;
        let known = &entry.remembered;
        if known.annotations != Annotations::Unwritten || known.presence != Presence::Present {
            return None;
        }
        let copy = known.copy().filter(|copy| copy.is_final())?;
        let record = copy.record();
        let has_events = known.events == EventRecord::Own;
        let events = has_events.then(|| plan::events_record(&record, self.uid.as_str()));
        let events = events.flatten();
        let is_owned = !entry.owners.is_empty();
        let annotations =
            plan::annotations::written(&record, copy.digest, is_owned, events.as_ref());
        Some((at, scope, annotations))
    }

    async fn annotate(
        &mut self,
        at: &Address,
        scope: &Scope,
        annotations: &BTreeMap<String, String>,
    ) -> Result<(), Halt> {
        let cluster = &self.shared.cluster;
        match cluster.annotate(at, self.uid.as_str(), annotations).await {
            Ok(object) => {
                self.shared.accepted(scope);
                self.written(object);
                Ok(())
            }
            // The watch tells what became of it.
            Err(ClusterError::Moved) => Ok(()),
            Err(error) => Err(self.unannotated(scope, error)),
        }
    }

    /// The cluster does not take annotations. What it refuses of this run alone is not tried again.
    fn unannotated(&self, scope: &Scope, error: ClusterError) -> Halt {
        let ClusterError::Refused { code, .. } = error else {
            return error.into();
        };
        let is_for_all = matches!(code, 401 | 403);
        if !is_for_all && let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.annotations = Annotations::Refused;
        }
        let error = error.to_string();
        self.refused(scope, is_for_all, &code.to_string(), &error);
        Halt::Refused { error }
    }

    /// The run has our annotations. It may have changed since it was stored.
    fn written(&self, object: Value) {
        let digest = Digest::of(&object);
        let mut ledger = self.shared.ledger();
        let Some(entry) = ledger.get_mut(&self.uid) else {
            return;
        };
        entry.remembered.annotations = Annotations::Written;
        let copy = entry.remembered.copy();
        if copy.is_some_and(|copy| copy.digest == digest) {
            // The watch will tell of our own change; it is known already.
            entry.settled = View::new(&object).resource_version().map(Into::into);
        } else {
            drop(ledger);
            self.pass_on(&object);
        }
    }

    /// Leaves the run to those who store.
    fn pass_on(&self, object: &Value) {
        let work = Work {
            object: Some(bytes(object)),
            is_final: self.shared.view(object).finish().done,
            ..Work::default()
        };
        self.shared.push(&self.uid, work);
    }

    /// With finalizers the object is needed: which ones stay is read there.
    async fn mark_and_release(&mut self) -> Result<(), Halt> {
        for _ in 0..ROUNDS {
            let scope = self.scope(Action::Release);
            self.admit(&scope)?;
            self.shared.may_write().await;
            if self.object.is_none() && !self.fetch().await? {
                return Ok(());
            }
            let (Some(remembered), Some(object)) = (self.remembered(), self.object.clone()) else {
                return Ok(());
            };
            match self.plan(&remembered).into_iter().next() {
                Some(Step::Finalize(remove @ Finalize::Remove { .. })) => {
                    if let Next::Settled(_) = self.release(&remove).await? {
                        return Ok(());
                    }
                }
                Some(Step::Annotate(annotations)) => {
                    let Some(at) = self.address() else {
                        return Ok(());
                    };
                    let scope = self.scope(Action::Annotate);
                    self.admit(&scope)?;
                    return self.annotate(&at, &scope, &annotations).await;
                }
                Some(Step::LookAgain(_)) | None => return Ok(()),
                Some(_) => {
                    self.pass_on(&object);
                    return Ok(());
                }
            }
        }
        self.shared.marks.push(&self.uid);
        Ok(())
    }

    /// Lets the run be annotated, though it is to be deleted: that does not happen.
    pub(super) fn mark_instead(&self, remembered: &Remembered) {
        let policy = &self.shared.config.policy;
        let Some(object) = &self.object else { return };
        if plan::is_unmarked(&self.shared.view(object), remembered, policy) {
            self.shared.marks.push(&self.uid);
        }
    }
}
