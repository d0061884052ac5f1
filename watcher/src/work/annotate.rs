//! Writing on runs that are stored: annotations, and finalizers that hold nothing up. No more of
//! that is done than was agreed, and nothing else waits for it.

use std::collections::BTreeMap;

use serde_json::Value;

use hindsight_run::View;

use super::{Interrupted, Next, Task};
use crate::{
    cluster::ClusterError,
    content::Digest,
    object::to_bytes,
    plan::{self, Annotations, Remembered, Step},
    queue::Work,
    refusals::{Action, Scope},
};

impl Task<'_> {
    /// Waits for a turn to write, unless nothing is to be written. The object is read only if
    /// finalizers are wanted, which are part of it.
    pub(super) async fn prepare_write(&mut self) -> Result<bool, Interrupted> {
        let has_finalizers = self.shared.config.policy.finalizers;
        let action = match has_finalizers {
            true => Action::Release,
            false => Action::Annotate,
        };
        let is_nothing_known = |known: Remembered| self.plan_annotations(&known).is_empty();
        if !has_finalizers && self.remembered().is_none_or(is_nothing_known) {
            return Ok(false);
        }
        self.admitted = None;
        self.admit(&self.scope(action))?;
        self.admitted = Some(action);
        self.shared.may_write().await;
        Ok(!has_finalizers || self.object.is_some() || self.fetch().await?)
    }

    /// What is to be written on the run, as far as it is known without its object.
    pub(super) fn plan_annotations(&self, remembered: &Remembered) -> Vec<Step> {
        let ledger = self.shared.ledger();
        let is_owned = ledger.get(&self.uid).is_some_and(|e| !e.owners.is_empty());
        plan::annotations::without_object(self.uid.as_str(), is_owned, remembered)
            .into_iter()
            .collect()
    }

    pub(super) async fn annotate(
        &mut self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Next, Interrupted> {
        let scope = self.scope(Action::Annotate);
        self.admit(&scope)?;
        let Some(at) = self.address() else {
            return Ok(Next::DONE);
        };
        let cluster = &self.shared.cluster.api;
        match cluster.annotate(&at, self.uid.as_str(), annotations).await {
            Ok(object) => {
                self.shared.accepted(&scope);
                self.annotated(&object);
                Ok(Next::DONE)
            }
            // What became of it is learned from the watch.
            Err(ClusterError::Moved) => Ok(Next::DONE),
            Err(error) => Err(self.not_annotated(&scope, error)),
        }
    }

    /// The cluster does not take annotations. What it refuses of this run alone is not tried again.
    fn not_annotated(&self, scope: &Scope, error: ClusterError) -> Interrupted {
        let ClusterError::Refused { code, .. } = error else {
            return error.into();
        };
        let is_for_all = matches!(code, 401 | 403);
        if !is_for_all && let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.remembered.annotations = Annotations::Refused;
        }
        let error = error.to_string();
        self.refused(scope, is_for_all, &code.to_string(), &error);
        Interrupted::Refused { error }
    }

    /// The run has our annotations. It may have changed since it was stored.
    fn annotated(&self, object: &Value) {
        let digest = Digest::of(object);
        let mut ledger = self.shared.ledger();
        let Some(entry) = ledger.get_mut(&self.uid) else {
            return;
        };
        entry.remembered.annotations = Annotations::Written;
        if entry.remembered.copy().is_some_and(|c| c.digest == digest) {
            // The watch will show our own change; it is known already.
            entry.reconciled = View::new(object).resource_version().map(Into::into);
        } else {
            drop(ledger);
            self.hand_over(object);
        }
    }

    /// Leaves the run to those who store.
    pub(super) fn hand_over(&self, object: &Value) {
        let work = Work {
            object: Some(to_bytes(object)),
            is_final: self.shared.view(object).finish().done,
            ..Work::default()
        };
        self.shared.push(&self.uid, work);
    }

    /// Lets the run be annotated, though it is to be deleted: that does not happen.
    pub(super) fn annotate_instead(&self, remembered: &Remembered) {
        let policy = &self.shared.config.policy;
        let Some(object) = &self.object else { return };
        if plan::lacks_annotations(&self.shared.view(object), remembered, policy) {
            self.shared.queues.annotations.push(&self.uid);
        }
    }
}
