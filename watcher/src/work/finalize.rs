//! Putting finalizers on and taking them off.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, warn};

use hindsight_run::View;

use super::{End, Interrupted, Next, Task, lane::Lane};
use crate::{
    cluster::ClusterError,
    plan::{self, Annotations, FinalizerState, Removal, Urgency},
    refusals::Action,
};

/// How long an overdue run may take to be stored at the last moment.
const LAST_TRY: Duration = Duration::from_secs(5);

impl Task<'_> {
    /// Puts a finalizer on when it is its turn. Whatever comes of it, the run is stored. What can be
    /// stored at once need not be protected before.
    pub(super) async fn add_finalizer(&mut self, finalizer: &str) -> Result<Next, Interrupted> {
        let object = self.object.as_ref();
        let is_final = object.is_some_and(|object| self.shared.view(object).finish().done);
        let is_protector = self.lane == Lane::Protect;
        match is_final && self.shared.server.gate.is_up() {
            true if is_protector => return Ok(Next::End(End::HandOver)),
            true => {
                self.is_stored_first = true;
                return Ok(Next::Replan);
            }
            false if is_protector => self.shared.write_in_turn().await,
            false => {
                if let Some(turn) = self.turn(&self.shared.budgets.writes) {
                    return Ok(Next::End(End::Done(Some(turn))));
                }
            }
        }
        let Some(at) = self.address() else {
            return Ok(Next::DONE);
        };
        let cluster = &self.shared.cluster.api;
        let scope = self.scope(Action::Protect);
        let now = self.shared.clock.now();
        if self
            .shared
            .queues
            .refusals
            .admit(&scope, None, now)
            .is_err()
        {
            self.refuse_finalizer();
            return Ok(Next::Replan);
        }
        match cluster
            .add_finalizer(&at, self.uid.as_str(), finalizer)
            .await
        {
            Ok(object) => {
                self.shared.accepted(&scope);
                if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                    let is_final = self.shared.view(&object).finish().done;
                    let now = self.shared.clock.now();
                    entry.remembered.saw(is_final, false, now);
                }
                self.bytes = None;
                self.object = Some(object);
            }
            // What became of it is learned from the watch.
            Err(ClusterError::Moved) => return Ok(Next::DONE),
            Err(error @ ClusterError::Refused { code, .. }) => {
                let (kind, namespace, name) = (at.kind.kind, &at.namespace, &at.name);
                debug!("{kind} {namespace}/{name} gets no finalizer: {error}");
                // With 422 it is being deleted, and then none can be put on.
                if code != 422 {
                    self.refused(&scope, false, &code.to_string(), &error.to_string());
                }
                self.refuse_finalizer();
            }
            // It is stored all the same.
            Err(_) if is_protector && is_final => return Ok(Next::End(End::HandOver)),
            Err(error) if is_protector => return Err(Interrupted::passing(error)),
            Err(error) => self.unprotected = Some(error.to_string()),
        }
        Ok(Next::Replan)
    }

    /// No finalizer can be put on it.
    fn refuse_finalizer(&self) {
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.refuse_finalizer();
        }
    }

    /// Takes our finalizers off when it is its turn; of an overdue run, unless it can be stored at
    /// the last moment.
    pub(super) async fn remove_finalizers(
        &mut self,
        removal: &Removal,
    ) -> Result<Next, Interrupted> {
        let is_overdue = removal.urgency == Urgency::Overdue;
        if is_overdue && self.last_try().await {
            return Ok(Next::Replan);
        }
        let scope = self.scope(Action::Release);
        self.admit(&scope)?;
        if let Some(turn) = self.turn(&self.shared.budgets.writes) {
            return Ok(Next::End(End::Done(Some(turn))));
        }
        if is_overdue {
            // Until now it waited for us in the cluster.
            self.spool().await;
        }
        self.release(removal).await
    }

    /// Whether a run that is overdue could be stored at the last moment. After a stop of the
    /// watcher that took longer than the deadline, nobody has tried yet. However many are overdue,
    /// none of them waits for longer than one of them may.
    async fn last_try(&mut self) -> bool {
        let Some(object) = self
            .object
            .clone()
            .filter(|_| self.shared.server.gate.is_open())
        else {
            return false;
        };
        let policy = &self.shared.config.policy;
        let Ok(upload) = plan::upload(&self.shared.view(&object), policy) else {
            return false;
        };
        let time = self.time_for_last_try(&View::new(&object));
        if time.is_zero() {
            return false;
        }
        match timeout(time, self.store(&upload)).await {
            Ok(Ok(())) => true,
            Ok(Err(interrupted)) => {
                self.note(&interrupted);
                false
            }
            Err(_elapsed) => false,
        }
    }

    /// What is left of the time in which an overdue run is still tried to be stored.
    fn time_for_last_try(&self, view: &View<'_>) -> Duration {
        let policy = &self.shared.config.policy;
        let deadline = plan::finalizer::deadline(view, policy);
        let ledger = self.shared.ledger();
        let seen = ledger
            .get(&self.uid)
            .map(|entry| entry.remembered.first_seen);
        drop(ledger);
        let begins = deadline.max(seen).unwrap_or_default();
        let passed = self.shared.clock.now().duration_since(begins);
        LAST_TRY.saturating_sub(passed.try_into().unwrap_or_default())
    }

    /// Takes our finalizers off the version that was decided about.
    async fn release(&mut self, removal: &Removal) -> Result<Next, Interrupted> {
        let Some(at) = self.address() else {
            return Ok(Next::DONE);
        };
        let Removal {
            resource_version,
            left,
            annotations,
            urgency,
        } = removal;
        let cluster = &self.shared.cluster.api;
        let uid = self.uid.as_str();
        match cluster
            .remove_finalizers(&at, uid, resource_version, left, annotations)
            .await
        {
            Ok(object) => {
                self.shared.accepted(&self.scope(Action::Release));
                let (kind, namespace, name) = (at.kind.kind, &at.namespace, &at.name);
                if *urgency == Urgency::Overdue {
                    let reason = self.shared.overdue(&self.uid);
                    self.shared.warn(|more| {
                        warn!(
                            run.kind = kind, run.namespace = %namespace, run.name = %name,
                            run.uid = %self.uid,
                            "{kind} {namespace}/{name} was not stored within the deadline \
                             after its delete was requested and is released: {reason}{more}"
                        );
                    });
                } else {
                    debug!(
                        run.uid = %self.uid,
                        "{kind} {namespace}/{name} is stored; finalizer removed"
                    );
                    self.released(&object, annotations);
                }
                // Where nothing else holds it, it is gone, and the watch shows its last state.
                let is_gone = left.is_empty() && View::new(&object).deletion().is_some();
                self.bytes = None;
                self.object = Some(object);
                Ok(match is_gone {
                    true => Next::DONE,
                    false => Next::Replan,
                })
            }
            Err(ClusterError::Moved) => {
                self.object = None;
                Ok(Next::Replan)
            }
            Err(ClusterError::Refused { code, message }) => {
                let scope = self.scope(Action::Release);
                let error = ClusterError::Refused { code, message }.to_string();
                self.refused(&scope, true, &code.to_string(), &error);
                Err(Interrupted::Refused { error })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The API server has written what `release` asked for.
    fn released(&self, object: &Value, annotations: &BTreeMap<String, String>) {
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.finalizer = FinalizerState::Released;
            if !annotations.is_empty() {
                entry.remembered.annotations = Annotations::Written;
            }
            // The watch will show our own change; it is known already.
            entry.reconciled = View::new(object).resource_version().map(Into::into);
        }
    }
}
