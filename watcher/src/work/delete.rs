//! Deleting a run, once everything that would go with it is proved to be stored.

use std::sync::atomic::Ordering;

use tracing::{info, warn};

use hindsight_proto::names::RecordName;
use hindsight_run::{Outcome, View};

use super::{End, Interrupted, Next, Task, children};
use crate::{
    cluster::ClusterError,
    content::{Digest, UNREADABLE},
    metrics::OfDelete,
    plan::{Remembered, StoredCopy},
    refusals::Action,
};

/// The name of a pipeline or task that has none, in metrics.
const ANONYMOUS: &str = "anonymous";

impl Task<'_> {
    /// Deletes the object, once everything that would go is proved to be stored.
    pub(super) async fn delete(
        &mut self,
        uid: &str,
        resource_version: &str,
        remembered: &Remembered,
    ) -> Result<Next, Interrupted> {
        let (Some(at), Some(object)) = (self.address(), self.object.clone()) else {
            return Ok(Next::DONE);
        };
        let scope = self.scope(Action::Delete);
        if !self.shared.config.dry_run {
            if let Err(interrupted) = self.admit(&scope) {
                self.annotate_instead(remembered);
                return Err(interrupted);
            }
            if let Some(turn) = self.turn(&self.shared.budgets.deletes) {
                return Ok(Next::End(End::Done(Some(turn))));
            }
        }
        let view = self.shared.view(&object);
        if let Some(child) = self.unseen_child(&view).await? {
            info!(
                "{} {}/{} waits for {child}",
                at.kind.kind, at.namespace, at.name
            );
            if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                entry.waits = true;
            }
            return Ok(Next::End(End::Done(self.recheck())));
        }
        let Some(record) = remembered.copy().map(StoredCopy::record) else {
            return Ok(Next::Replan);
        };
        let proof = self.read_copy(&record).await?;
        if proof.as_ref().map(Digest::of) != Some(Digest::of(&object)) {
            if std::mem::replace(&mut self.is_restored, true) {
                return Err(Interrupted::rare(format!(
                    "the server holds `{record}` in another state than the cluster and keeps it, \
                     as if that were the later one; the cluster may have been restored from a \
                     backup. The run stays in the cluster"
                )));
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
            self.annotate_instead(remembered);
            return Ok(Next::DONE);
        }
        match self
            .shared
            .cluster
            .api
            .delete(&at, uid, resource_version)
            .await
        {
            Ok(()) => {
                self.shared.accepted(&scope);
                self.deleted(&view);
                info!(
                    run.uid = uid, record.name = %record,
                    "collected {} {}/{}", at.kind.kind, at.namespace, at.name
                );
                Ok(Next::DONE)
            }
            Err(ClusterError::Moved) => {
                self.object = None;
                Ok(Next::Replan)
            }
            Err(ClusterError::Refused { code, message }) => {
                let error = ClusterError::Refused { code, message }.to_string();
                self.refused(&scope, true, &code.to_string(), &error);
                self.annotate_instead(remembered);
                Err(Interrupted::Refused { error })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A child that the run names, that the ledger does not know, and that is there all the same.
    async fn unseen_child(&self, view: &View<'_>) -> Result<Option<String>, Interrupted> {
        let unknown = {
            let ledger = self.shared.ledger();
            children::wait(self.shared, &ledger, &self.uid, view)
        };
        let unknown = match unknown {
            Ok(unknown) => unknown,
            Err(reason) => return Ok(Some(reason)),
        };
        for at in unknown {
            let child = self.shared.cluster.api.get(&at).await?;
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
        self.shared.notify_progress();
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
        shared.counters.collected.fetch_add(1, Ordering::Relaxed);
    }
}
