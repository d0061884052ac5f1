//! Watching the pods of runs: one watch for each label, however many runs there are.

use std::{sync::Arc, time::Duration};

use hindsight_run::Kind;
use tracing::{info, warn};

use crate::{
    ledger::Uid,
    list_watch::{Event, Failure, Limits, ListWatch},
    logs::{Pod, label},
    object::Object,
    presence::KindPresence,
    shared::Shared,
};

/// Follows the pods with a label, whenever the cluster has a kind that makes them.
pub(super) async fn follow(shared: Arc<Shared>, of: &'static str) {
    let mut watch = Watch {
        shared: &shared,
        label: of,
        list: 0,
        failures: 0,
        is_refused: false,
    };
    loop {
        watch.until_wanted().await;
        watch.run().await;
    }
}

struct Watch<'s> {
    shared: &'s Shared,
    label: &'static str,
    list: u32,
    failures: u32,
    is_refused: bool,
}

impl Watch<'_> {
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        let kinds = self.shared.config.kinds.iter().copied();
        kinds.filter(|kind| label(kind) == Some(self.label))
    }

    async fn until_wanted(&self) {
        let mut changes = self.shared.changes();
        let presences = &self.shared.cluster.kinds;
        let is_there = |kind: &'static Kind| {
            let known = presences.get(kind);
            matches!(known, Some(KindPresence::Listing | KindPresence::Listed))
        };
        while !self.kinds().any(is_there) {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Watches, for as long as it is not refused.
    async fn run(&mut self) {
        let limits = Limits::from(&self.shared.config.tuning);
        let api = self.shared.cluster.api.pods();
        let mut pods = ListWatch::new(api, limits).labels(Some(self.label));
        loop {
            match pods.next().await {
                Ok(event) => {
                    if event.is_success() {
                        self.recovered();
                    }
                    self.on_event(event);
                }
                Err(failure) => {
                    let wait = self.failed(&failure);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Init => self.list = self.list.wrapping_add(1),
            Event::InitApply(object) | Event::Apply(object) => self.saw(&object, false),
            Event::Delete(object) => self.saw(&object, true),
            Event::InitDone => self.shared.logs.listed(self.label, self.list),
            Event::Open | Event::Settled | Event::Bookmark => {}
        }
    }

    fn saw(&self, object: &Object, is_gone: bool) {
        let Ok(pod) = object.read::<Pod>() else {
            return;
        };
        if let Some(run) = self.run_of(&pod) {
            self.shared.logs.saw_pod(&pod, &run, self.label, self.list);
        }
        if is_gone {
            self.shared.logs.pod_left(&pod.metadata.uid);
        }
    }

    /// The run that a pod is of. The Job of a `RayJob` has its name, and is no run by itself.
    fn run_of(&self, pod: &Pod) -> Option<Uid> {
        let owner = pod.owner()?;
        let uid = Uid::from(owner.uid.as_str());
        let ledger = self.shared.ledger();
        let namespace = &pod.metadata.namespace;
        let mut kinds = self.kinds().filter(|kind| kind.kind == "RayJob");
        let ray = kinds.next().filter(|_| owner.kind == "Job");
        let ray = ray.filter(|_| ledger.get(&uid).is_none());
        let ray = ray.and_then(|kind| ledger.named(kind, namespace, &owner.name));
        Some(ray.map_or(uid, |(ray, _)| ray.clone()))
    }

    fn recovered(&mut self) {
        self.failures = 0;
        if std::mem::take(&mut self.is_refused) {
            info!("pods with the label {} are shown again", self.label);
        }
    }

    /// Notes a failure; how long to wait.
    fn failed(&mut self, failure: &Failure) -> Duration {
        self.failures += 1;
        let tuning = &self.shared.config.tuning;
        if !failure.is_forbidden() {
            return tuning.cluster.after(self.failures);
        }
        if !std::mem::replace(&mut self.is_refused, true) {
            warn!(
                "logs are not read: the cluster does not show pods with the label {}: {failure}; \
                 allow list and watch of pods, and get of pods/log",
                self.label
            );
        }
        tuning.kind_poll.max(tuning.cluster.after(self.failures))
    }
}
