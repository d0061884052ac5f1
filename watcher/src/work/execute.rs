//! Executing a plan: the one place where steps become calls.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde_json::Value;
use tracing::{debug, warn};

use hindsight_proto::names::RecordName;
use hindsight_run::{Closed, Upload, json};

use super::{
    End, Interrupted, Next, Task,
    lane::{Duty, Lane},
};
use crate::{
    metrics::OfRun,
    object::to_bytes,
    plan::{self, Remembered, Step, StoredCopy},
    policy::CLOSED,
    refusals::Action,
};
use hindsight_cluster::Pace;

impl Task<'_> {
    /// Executes a plan, as far as the lane goes.
    pub(super) async fn execute(
        &mut self,
        steps: Vec<Step>,
        remembered: &Remembered,
    ) -> Result<Next, Interrupted> {
        let mut again = None;
        let last = steps.len();
        for (n, step) in steps.into_iter().enumerate() {
            match self.lane.duty(&step) {
                Duty::Execute => {}
                Duty::Queue => {
                    self.shared.queues.annotations.push(&self.uid);
                    continue;
                }
                Duty::Skip => continue,
                Duty::HandOver => return Ok(Next::End(End::HandOver)),
            }
            match step {
                Step::Ask(upload) => {
                    self.read_copy(&upload.grouping.record).await?;
                    return Ok(Next::Replan);
                }
                Step::Store(upload) => self.store(&upload).await?,
                Step::StoreEvents(record) => self.store_events(&record).await?,
                Step::Annotate(annotations) => return self.annotate(&annotations).await,
                Step::AddFinalizer(name) => return self.add_finalizer(name).await,
                Step::RemoveFinalizers(removal) => return self.remove_finalizers(&removal).await,
                Step::Delete {
                    uid,
                    resource_version,
                } => return self.delete(&uid, &resource_version, remembered).await,
                Step::LookAgain(at) => {
                    again = Some(again.map_or(at, |other: Timestamp| other.min(at)))
                }
                Step::Trust(at) => {
                    if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                        entry.remembered.trust();
                    }
                    self.is_trusted = true;
                    again = Some(at);
                }
                Step::Close { reason } => self.close(reason).await?,
                Step::Lose { reason } => {
                    self.shared.lose(&self.uid, reason);
                    return Ok(Next::DONE);
                }
                Step::Refuse { reason } => {
                    self.note_error(&reason);
                    if n + 1 == last {
                        return Err(Interrupted::rare(reason));
                    }
                }
                Step::Forget => {
                    match self.lane {
                        // Whether the run is in the cluster is for the leader to find out.
                        Lane::Spooled => self.shared.server.remove_spooled(&self.uid),
                        _ => self.shared.forget(&self.uid),
                    }
                    return Ok(Next::DONE);
                }
            }
        }
        Ok(Next::End(End::Done(again)))
    }

    /// Reads what the server holds as `record`, and remembers it.
    pub(super) async fn read_copy(
        &self,
        record: &RecordName,
    ) -> Result<Option<Value>, Interrupted> {
        let sink = &self.shared.server.sink;
        let held = self
            .call_server(Action::Read, || sink.stored(record))
            .await?;
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
            self.shared.counters.stored.fetch_add(1, Ordering::Relaxed);
            self.shared.wake_owners(&self.uid);
        }
        Ok(copy)
    }

    pub(super) async fn store(&mut self, upload: &Upload) -> Result<(), Interrupted> {
        let shared = self.shared;
        let Some(object) = &self.object else {
            return Err(Interrupted::passing("the object to store is not known"));
        };
        let value = self.bytes.get_or_insert_with(|| to_bytes(object)).clone();
        let is_known = shared
            .ledger()
            .get(&self.uid)
            .is_some_and(|entry| entry.remembered.copy().is_some());
        if is_known {
            self.call_server(Action::Store, || {
                shared.server.sink.store_again(upload, &value)
            })
            .await?;
        } else {
            self.call_server(Action::Store, || shared.server.sink.store(upload, &value))
                .await?;
        }
        let view = shared.view(object);
        self.has_stored_progress = !self.gone && plan::goes_on(&view, &shared.config.policy);
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
                shared.counters.stored.fetch_add(1, Ordering::Relaxed);
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
        shared.notify_progress();
        shared.wake_owners(&self.uid);
        Ok(())
    }

    /// When the run may be written to, if that is not now. Once given, a turn is kept. In the lane of
    /// annotations a turn was waited for before the plan was made.
    pub(super) fn turn(&self, pace: &Pace) -> Option<jiff::Timestamp> {
        if self.lane == Lane::Annotate {
            return None;
        }
        let now = self.shared.clock.now();
        let mut ledger = self.shared.ledger();
        let entry = ledger.get_mut(&self.uid)?;
        let turn = match entry.turn {
            Some(turn) => pace.keep(turn, now),
            None => pace.turn(now),
        };
        entry.turn = Some(turn).filter(|turn| *turn > now);
        entry.turn
    }

    /// Says on the run's record, and on its result, that its end was not seen.
    async fn close(&self, reason: &'static str) -> Result<(), Interrupted> {
        let shared = self.shared;
        let record = shared
            .ledger()
            .get(&self.uid)
            .and_then(|entry| entry.remembered.copy())
            .map(StoredCopy::record);
        let Some(record) = record else { return Ok(()) };
        let held = self.call_server(Action::Read, || shared.server.sink.stored(&record));
        let Some(held) = held.await? else {
            return Ok(());
        };
        let Ok(object) = json::parse(&held) else {
            return Ok(());
        };
        let view = shared.view(&object);
        let now = shared.clock.now();
        let asked = view.deletion().filter(|asked| *asked <= now);
        let at = asked.unwrap_or(now);
        let Some(closed) = view.close(Closed { at, reason }) else {
            return Ok(());
        };
        let policy = &shared.config.policy;
        let Ok(mut upload) = plan::upload(&shared.view(&closed), policy) else {
            return Ok(());
        };
        if let Some(summary) = &mut upload.summary {
            upload
                .annotations
                .insert(CLOSED.to_owned(), reason.to_owned());
            summary
                .annotations
                .insert(CLOSED.to_owned(), reason.to_owned());
        }
        let value = to_bytes(&closed);
        self.call_server(Action::Store, || {
            shared.server.sink.store_again(&upload, &value)
        })
        .await?;
        if let Some(entry) = shared.ledger().get_mut(&self.uid) {
            entry.remembered.close();
        }
        Ok(())
    }
}
