//! Putting finalizers on and taking them off.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, warn};

use hindsight_run::View;

use super::{Halt, Next, Task};
use crate::{
    cluster::ClusterError,
    plan::{self, Annotations, Finalize, FinalizerState, Step, Urgency},
    refusals::Action,
};

/// How often an overdue run is looked at anew in one go, because it changes meanwhile.
const LOOKS: usize = 8;

/// How long an overdue run may take to be stored at the last moment.
const LAST_TRY: Duration = Duration::from_secs(5);

impl Task<'_> {
    pub(super) async fn finalize(&mut self, change: Finalize) -> Result<Next, Halt> {
        match change {
            Finalize::Add(finalizer) => self.hold_in_turn(finalizer).await,
            Finalize::Remove {
                urgency: Urgency::Overdue,
                ..
            } if self.last_try().await => Ok(Next::Replan),
            remove @ Finalize::Remove { urgency, .. } => {
                let scope = self.scope(Action::Release);
                self.admit(&scope)?;
                if let Some(turn) = self.turn(&self.shared.writes) {
                    return Ok(Next::Settled(Some(turn)));
                }
                if urgency == Urgency::Overdue {
                    // Until now it waited for us in the cluster.
                    self.keep().await;
                }
                self.release(&remove).await
            }
        }
    }

    /// Puts a finalizer on when it is its turn. What can be stored at once need not be protected
    /// before.
    async fn hold_in_turn(&mut self, finalizer: &str) -> Result<Next, Halt> {
        let object = self.object.as_ref();
        let is_final = object.is_some_and(|object| self.shared.view(object).finish().done);
        if is_final && self.shared.gate.is_up() {
            self.is_stored_first = true;
            return Ok(Next::Replan);
        }
        match self.turn(&self.shared.writes) {
            Some(turn) => Ok(Next::Settled(Some(turn))),
            None => self.hold(finalizer).await,
        }
    }

    /// Puts a finalizer on. Whatever comes of it, the run is stored.
    pub(super) async fn hold(&mut self, finalizer: &str) -> Result<Next, Halt> {
        let Some(at) = self.address() else {
            return Ok(Next::Settled(None));
        };
        let cluster = &self.shared.cluster;
        let scope = self.scope(Action::Protect);
        let now = self.shared.clock.now();
        if self.shared.refusals.admit(&scope, None, now).is_err() {
            self.unprotectable();
            return Ok(Next::Replan);
        }
        match cluster.hold(&at, self.uid.as_str(), finalizer).await {
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
            // The watch tells what became of it.
            Err(ClusterError::Moved) => return Ok(Next::Settled(None)),
            Err(error @ ClusterError::Refused { code, .. }) => {
                let (kind, namespace, name) = (at.kind.kind, &at.namespace, &at.name);
                debug!("{kind} {namespace}/{name} gets no finalizer: {error}");
                // With 422 somebody deletes it just now, and then none can be put on.
                if code != 422 {
                    self.refused(&scope, false, &code.to_string(), &error.to_string());
                }
                self.unprotectable();
            }
            Err(error) => self.unprotected = Some(error.to_string()),
        }
        Ok(Next::Replan)
    }

    /// No finalizer can be put on it.
    fn unprotectable(&self) {
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.refuse_finalizer();
        }
    }

    /// Whether a run that is overdue could be stored at the last moment. After a stop of the
    /// watcher that took longer than the deadline, nobody has tried yet. However many are overdue,
    /// none of them waits for longer than one of them may.
    async fn last_try(&mut self) -> bool {
        let Some(object) = self.object.clone().filter(|_| self.shared.gate.is_open()) else {
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
            Ok(Err(Halt::Later { error, .. } | Halt::Away { error } | Halt::Refused { error })) => {
                self.note(&error);
                false
            }
            Ok(Err(Halt::Abandoned)) | Err(_) => false,
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
    pub(super) async fn release(&mut self, change: &Finalize) -> Result<Next, Halt> {
        let (
            Some(at),
            Finalize::Remove {
                resource_version,
                left,
                annotations,
                urgency,
            },
        ) = (self.address(), change)
        else {
            return Ok(Next::Settled(None));
        };
        let cluster = &self.shared.cluster;
        let uid = self.uid.as_str();
        match cluster
            .release(&at, uid, resource_version, left, annotations)
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
                            "{kind} {namespace}/{name} could not be stored within the deadline \
                             after its delete was asked for, and is let go: {reason}{more}"
                        );
                    });
                } else {
                    debug!(
                        run.uid = %self.uid,
                        "{kind} {namespace}/{name} is stored and may go"
                    );
                    self.released(&object, annotations);
                }
                // Where nothing else holds it, it is gone, and the watch tells its last state.
                let is_gone = left.is_empty() && View::new(&object).deletion().is_some();
                self.bytes = None;
                self.object = Some(object);
                Ok(match is_gone {
                    true => Next::Settled(None),
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
                Err(Halt::Refused { error })
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
            // The watch will tell of our own change; it is known already.
            entry.settled = View::new(object).resource_version().map(Into::into);
        }
    }

    /// Lets a run go if it is overdue. Does not wait for a server that is away.
    pub(super) async fn let_go(&mut self) -> Result<(), Halt> {
        for _ in 0..LOOKS {
            if !self.fetch().await? {
                return Ok(());
            }
            let Some(remembered) = self.remembered().filter(|known| !known.presence.is_gone())
            else {
                return Ok(());
            };
            let step = self.plan(&remembered).into_iter().next();
            let Some(Step::Finalize(change @ Finalize::Remove { .. })) = step else {
                return Ok(());
            };
            match self.finalize(change).await? {
                Next::Replan => {}
                Next::Settled(None) => return Ok(()),
                Next::Settled(Some(turn)) => {
                    self.shared.deadlines.add(turn, &self.uid);
                    return Ok(());
                }
            }
        }
        Err(Halt::passing(
            "the object changes faster than it can be let go",
        ))
    }
}
