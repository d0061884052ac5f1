//! Putting finalizers on and taking them off.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, warn};

use hindsight_proto::run::View;

use super::{Halt, Next, Task};
use crate::{
    cluster::ClusterError,
    plan::{self, Finalize, Step},
};

/// How often an overdue run is looked at anew in one go, because it changes meanwhile.
const LOOKS: usize = 8;

/// How long an overdue run may take to be stored at the last moment.
const LAST_TRY: Duration = Duration::from_secs(5);

impl Task<'_> {
    pub(super) async fn finalize(&mut self, change: Finalize) -> Result<Next, Halt> {
        match change {
            Finalize::Add(finalizer) => self.hold(finalizer).await,
            Finalize::Remove {
                is_overdue: true, ..
            } if self.last_try().await => Ok(Next::Replan),
            remove @ Finalize::Remove { .. } => {
                if matches!(
                    &remove,
                    Finalize::Remove {
                        is_overdue: true,
                        ..
                    }
                ) {
                    // Until now it waited for us in the cluster.
                    self.keep().await;
                }
                self.release(&remove).await
            }
        }
    }

    /// Puts a finalizer on. Whatever comes of it, the run is stored.
    pub(super) async fn hold(&mut self, finalizer: &str) -> Result<Next, Halt> {
        let Some(at) = self.address() else {
            return Ok(Next::Settled(None));
        };
        let cluster = &self.shared.cluster;
        match cluster.hold(&at, self.uid.as_str(), finalizer).await {
            Ok(object) => {
                if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                    let is_final = View::new(&object).finish().done;
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
                // Somebody deletes it just now, and then none can be put on.
                if code == 422 {
                    debug!("{kind} {namespace}/{name} gets no finalizer: {error}");
                } else {
                    warn!("{kind} {namespace}/{name} gets no finalizer: {error}");
                }
                if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
                    entry.remembered.unprotected = true;
                }
            }
            Err(error) => self.unprotected = Some(error.to_string()),
        }
        Ok(Next::Replan)
    }

    /// Whether a run that is overdue could be stored at the last moment. After a stop of the
    /// watcher that took longer than the deadline, nobody has tried yet.
    async fn last_try(&mut self) -> bool {
        let Some(object) = self.object.clone().filter(|_| self.shared.gate.is_open()) else {
            return false;
        };
        let policy = &self.shared.config.policy;
        let Ok(upload) = plan::upload(&object, &View::new(&object), policy) else {
            return false;
        };
        match timeout(LAST_TRY, self.store(&upload)).await {
            Ok(Ok(())) => true,
            Ok(Err(Halt::Later { error, .. } | Halt::Away { error })) => {
                self.note(&error);
                false
            }
            Ok(Err(Halt::Abandoned)) | Err(_) => false,
        }
    }

    /// Takes our finalizers off the version that was decided about.
    async fn release(&mut self, change: &Finalize) -> Result<Next, Halt> {
        let (
            Some(at),
            Finalize::Remove {
                resource_version,
                left,
                annotations,
                is_overdue,
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
                let (kind, namespace, name) = (at.kind.kind, &at.namespace, &at.name);
                if *is_overdue {
                    let reason = self.shared.overdue(&self.uid);
                    warn!(
                        run.kind = kind, run.namespace = %namespace, run.name = %name,
                        run.uid = %self.uid,
                        "{kind} {namespace}/{name} could not be stored within the deadline after \
                         its delete was asked for, and is let go: {reason}"
                    );
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
            Err(error) => Err(error.into()),
        }
    }

    /// The API server has written what `release` asked for.
    fn released(&self, object: &Value, annotations: &BTreeMap<String, String>) {
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.released = true;
            entry.remembered.annotated |= !annotations.is_empty();
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
            let Some(remembered) = self.remembered().filter(|known| !known.gone) else {
                return Ok(());
            };
            let policy = &self.shared.config.policy;
            let now = self.shared.clock.now();
            let step = plan::plan(self.object.as_ref(), &remembered, policy, now)
                .into_iter()
                .next();
            let Some(Step::Finalize(change @ Finalize::Remove { .. })) = step else {
                return Ok(());
            };
            if let Next::Settled(_) = self.finalize(change).await? {
                return Ok(());
            }
        }
        Err(Halt::passing(
            "the object changes faster than it can be let go",
        ))
    }
}
