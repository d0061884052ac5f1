//! What each step of a plan does.

use std::sync::atomic::Ordering;

use serde_json::Value;
use tracing::{debug, info, warn};

use hindsight_proto::names::RecordName;
use hindsight_run::json;
use hindsight_run::{Outcome, Upload, View};

use super::{Halt, Next, Task, children};
use crate::{
    cluster::ClusterError,
    content::{Digest, UNREADABLE},
    metrics::{OfDelete, OfRun},
    pace::Pace,
    plan::{self, Finalize, Remembered, Step, StoredCopy, Urgency},
    policy::CLOSED,
    refusals::Action,
    watch::bytes,
};

/// The name of a pipeline or task that has none, in metrics.
const ANONYMOUS: &str = "anonymous";

impl Task<'_> {
    /// Carries out a plan, as far as it goes.
    pub(super) async fn carry_out(
        &mut self,
        steps: Vec<Step>,
        remembered: &Remembered,
    ) -> Result<Next, Halt> {
        let mut again = None;
        let last = steps.len();
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask(upload) => {
                    self.inquire(&upload.grouping.record).await?;
                    return Ok(Next::Replan);
                }
                Step::Store(upload) => self.store(&upload).await?,
                Step::StoreEvents(record) => self.store_events(&record).await?,
                // Nothing waits for these writes.
                Step::Annotate(_)
                | Step::Finalize(Finalize::Remove {
                    urgency: Urgency::Idle,
                    ..
                }) => self.shared.marks.push(&self.uid),
                Step::Finalize(change) => return self.finalize(change).await,
                Step::Delete {
                    uid,
                    resource_version,
                } => {
                    return self.delete(&uid, &resource_version, remembered).await;
                }
                Step::LookAgain(at) => again = Some(at),
                Step::Trust(at) => {
                    if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                        entry.remembered.trust();
                    }
                    again = Some(at);
                }
                Step::Close { reason } => self.close(reason).await?,
                Step::Lose { reason } => {
                    self.shared.lose(&self.uid, reason);
                    return Ok(Next::Settled(None));
                }
                Step::Refuse { reason } => {
                    self.note(&reason);
                    if n + 1 == last {
                        return Err(Halt::Later {
                            error: reason,
                            is_rare: true,
                            is_refused: false,
                            retry_after: None,
                        });
                    }
                }
                Step::Forget => {
                    self.shared.forget(&self.uid);
                    return Ok(Next::Settled(None));
                }
            }
        }
        Ok(Next::Settled(again))
    }

    /// Asks what the server holds as `record`, and remembers it.
    pub(super) async fn inquire(&self, record: &RecordName) -> Result<Option<Value>, Halt> {
        let sink = &self.shared.sink;
        let held = self.ask(Action::Read, || sink.stored(record)).await?;
        // What is no JSON is no copy of an object.
        let copy = held.and_then(|held| json::parse(&held).ok());
        let mut is_news = false;
        let mut ledger = self.shared.ledger();
        if let Some(entry) = ledger.get_mut(&self.uid) {
            let was_safe = entry.is_safe();
            // A copy of an earlier state counts for nothing but itself.
            let view = copy.as_ref().map(|copy| self.shared.view(copy));
            entry.remembered.answered(record, view.as_ref());
            is_news = !was_safe && entry.is_safe();
            ledger.share(&self.uid);
        }
        drop(ledger);
        if is_news {
            self.shared.stored.fetch_add(1, Ordering::Relaxed);
            self.shared.wake_owners(&self.uid);
        }
        Ok(copy)
    }

    pub(super) async fn store(&mut self, upload: &Upload) -> Result<(), Halt> {
        let shared = self.shared;
        let Some(object) = &self.object else {
            return Err(Halt::passing("the object to store is not known"));
        };
        let value = self.bytes.get_or_insert_with(|| bytes(object)).clone();
        let is_known = shared
            .ledger()
            .get(&self.uid)
            .is_some_and(|entry| entry.remembered.copy().is_some());
        if is_known {
            self.ask(Action::Store, || shared.sink.store_again(upload, &value))
                .await?;
        } else {
            self.ask(Action::Store, || shared.sink.store(upload, &value))
                .await?;
        }
        let view = shared.view(object);
        for note in &upload.grouping.notes {
            warn!(record.name = %upload.grouping.record, "{}: {note}", upload.grouping.record);
        }
        {
            let mut ledger = shared.ledger();
            let Some(entry) = ledger.get_mut(&self.uid) else {
                return Ok(());
            };
            let was_safe = entry.is_safe();
            entry.remembered.stored(&upload.grouping.record, &view);
            entry.error = None;
            if entry.is_safe() && !was_safe {
                shared.stored.fetch_add(1, Ordering::Relaxed);
                let labels = OfRun {
                    kind: entry.kind.kind.to_lowercase(),
                    namespace: entry.namespace.to_string(),
                };
                if let Some(ended) = view.ended() {
                    let seconds = shared.clock.now().duration_since(ended).as_secs_f64();
                    let latency = shared.metrics.storage_latency.get_or_create(&labels);
                    latency.observe(seconds.max(0.0));
                }
            }
            ledger.share(&self.uid);
        }
        debug!(run.uid = %self.uid, record.name = %upload.grouping.record, "stored");
        shared.metrics.stores.inc();
        shared.tick();
        shared.wake_owners(&self.uid);
        Ok(())
    }

    /// Deletes the object, once everything that would go is proved to be stored.
    async fn delete(
        &mut self,
        uid: &str,
        resource_version: &str,
        remembered: &Remembered,
    ) -> Result<Next, Halt> {
        let (Some(at), Some(object)) = (self.address(), self.object.clone()) else {
            return Ok(Next::Settled(None));
        };
        let scope = self.scope(Action::Delete);
        if !self.shared.config.dry_run {
            if let Err(halt) = self.admit(&scope) {
                self.mark_instead(remembered);
                return Err(halt);
            }
            if let Some(turn) = self.turn(&self.shared.deletes) {
                return Ok(Next::Settled(Some(turn)));
            }
        }
        let view = self.shared.view(&object);
        if let Some(child) = self.hidden_child(&view).await? {
            info!(
                "{} {}/{} waits for {child}",
                at.kind.kind, at.namespace, at.name
            );
            if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                entry.waits = true;
            }
            return Ok(Next::Settled(self.recheck()));
        }
        let Some(record) = remembered.copy().map(StoredCopy::record) else {
            return Ok(Next::Replan);
        };
        let proof = self.inquire(&record).await?;
        if proof.as_ref().map(Digest::of) != Some(Digest::of(&object)) {
            if std::mem::replace(&mut self.is_restored, true) {
                return Err(Halt::Later {
                    error: format!(
                        "the server holds `{record}` in another state than the cluster and keeps it, \
                         as if that were the later one; the cluster may have been restored from a \
                         backup. The run stays in the cluster"
                    ),
                    is_rare: true,
                    is_refused: false,
                    retry_after: None,
                });
            }
            self.shared.warn(|more| {
                warn!(
                    record.name = %record,
                    "the server no longer holds `{record}` as it was stored; it is stored again{more}"
                );
            });
            return Ok(Next::Replan);
        }
        if self.shared.config.dry_run {
            self.announce(&record);
            self.mark_instead(remembered);
            return Ok(Next::Settled(None));
        }
        match self.shared.cluster.delete(&at, uid, resource_version).await {
            Ok(()) => {
                self.shared.accepted(&scope);
                self.deleted(&view);
                info!(
                    run.uid = uid, record.name = %record,
                    "collected {} {}/{}", at.kind.kind, at.namespace, at.name
                );
                Ok(Next::Settled(None))
            }
            Err(ClusterError::Moved) => {
                self.object = None;
                Ok(Next::Replan)
            }
            Err(ClusterError::Refused { code, message }) => {
                let error = ClusterError::Refused { code, message }.to_string();
                self.refused(&scope, true, &code.to_string(), &error);
                self.mark_instead(remembered);
                Err(Halt::Refused { error })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A child that the run names, that the ledger does not know, and that is there all the
    /// same.
    async fn hidden_child(&self, view: &View<'_>) -> Result<Option<String>, Halt> {
        let unknown = {
            let ledger = self.shared.ledger();
            children::wait(self.shared, &ledger, &self.uid, view)
        };
        let unknown = match unknown {
            Ok(unknown) => unknown,
            Err(reason) => return Ok(Some(reason)),
        };
        for at in unknown {
            let child = self.shared.cluster.get(&at).await?;
            // One that cannot be read may well be, and would go with the run.
            let is_ours = child.as_ref().is_some_and(|child| {
                child.get(UNREADABLE).is_some()
                    || View::new(child)
                        .owners()
                        .any(|owner| owner.uid == self.uid.as_str())
            });
            if is_ours {
                return Ok(Some(format!(
                    "{} {}, which was not seen yet",
                    at.kind.kind, at.name
                )));
            }
        }
        Ok(None)
    }

    /// When the run may be written to, if that is not now. Once given, a turn is kept.
    pub(super) fn turn(&self, pace: &Pace) -> Option<jiff::Timestamp> {
        let now = self.shared.clock.now();
        let mut ledger = self.shared.ledger();
        let entry = ledger.get_mut(&self.uid)?;
        let turn = *entry.turn.get_or_insert_with(|| pace.turn(now));
        let is_later = turn > now;
        if !is_later {
            entry.turn = None;
        }
        is_later.then_some(turn)
    }

    fn recheck(&self) -> Option<jiff::Timestamp> {
        let collect = self.shared.config.policy.collect.as_ref()?;
        self.shared.clock.now().checked_add(collect.recheck).ok()
    }

    /// Says once what would be deleted, and what would go with it.
    fn announce(&self, record: &RecordName) {
        let mut ledger = self.shared.ledger();
        let going = ledger.descendants(&self.uid);
        for uid in [&self.uid].into_iter().chain(&going) {
            let Some(entry) = ledger.get_mut(uid) else {
                continue;
            };
            if !std::mem::replace(&mut entry.announced, true) {
                let (kind, namespace, name) = (entry.kind.kind, &entry.namespace, &entry.name);
                info!(
                    run.uid = %uid, record.name = %record,
                    "dry run: would collect {kind} {namespace}/{name}"
                );
            }
        }
        drop(ledger);
        self.shared.tick();
    }

    /// The API server has taken our delete.
    fn deleted(&self, view: &View<'_>) {
        let shared = self.shared;
        let mut ledger = shared.ledger();
        let going = ledger.descendants(&self.uid);
        for uid in going.iter().chain([&self.uid]) {
            if let Some(entry) = ledger.get_mut(uid) {
                entry.remembered.presence.request_delete();
            }
        }
        let Some(entry) = ledger.get(&self.uid) else {
            return;
        };
        let status = match view.finish().outcome {
            Outcome::Success => "success",
            Outcome::Cancelled => "cancelled",
            Outcome::Unknown | Outcome::Failure | Outcome::Timeout => "failed",
        };
        let labels = OfDelete {
            namespace: entry.namespace.to_string(),
            status,
            pipeline: view.pipeline().unwrap_or(ANONYMOUS).to_owned(),
            task: match entry.kind.kind {
                "TaskRun" | "CustomRun" => view.task().unwrap_or(ANONYMOUS).to_owned(),
                _ => String::new(),
            },
        };
        let seconds = view
            .ended()
            .map(|ended| shared.clock.now().duration_since(ended).as_secs_f64());
        shared.metrics.deleted(entry.kind.kind, &labels, seconds);
        shared.collected.fetch_add(1, Ordering::Relaxed);
    }

    /// Says on the run's result that nobody saw its end. The record stays as it is.
    pub(super) async fn close(&self, reason: &'static str) -> Result<(), Halt> {
        let shared = self.shared;
        let record = shared
            .ledger()
            .get(&self.uid)
            .and_then(|entry| entry.remembered.copy())
            .map(StoredCopy::record);
        let Some(record) = record else { return Ok(()) };
        let held = self.ask(Action::Read, || shared.sink.stored(&record));
        let Some(held) = held.await? else {
            return Ok(());
        };
        let Ok(object) = json::parse(&held) else {
            return Ok(());
        };
        let policy = &shared.config.policy;
        let Ok(mut upload) = plan::upload(&shared.view(&object), policy) else {
            return Ok(());
        };
        if let Some(summary) = &mut upload.summary {
            upload
                .annotations
                .insert(CLOSED.to_owned(), reason.to_owned());
            summary
                .annotations
                .insert(CLOSED.to_owned(), reason.to_owned());
            self.ask(Action::Store, || shared.sink.store_again(&upload, &held))
                .await?;
        }
        if let Some(entry) = shared.ledger().get_mut(&self.uid) {
            entry.remembered.close();
        }
        Ok(())
    }
}
