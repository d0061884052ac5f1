//! What the parts of a controller share.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hindsight_workflow::ObjectReference;
use jiff::Timestamp;
use kube::runtime::{controller::Action, reflector::Store};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    caches::{JobCache, Name, Waiting},
    cluster::Cluster,
    config::Config,
    events::Events,
    following::Following,
    metrics::Metrics,
    object::WorkflowObject,
};

/// How often what goes on is passed over without news.
pub(crate) const RESYNC: Duration = Duration::from_secs(30);

/// When to pass again over something if there is no news: at `wake`, and after `most` at the latest.
pub(crate) fn rest(now: Timestamp, wake: Option<Timestamp>, most: Duration) -> Action {
    let due = wake.map(|wake| Duration::try_from(wake.duration_since(now)).unwrap_or_default());
    Action::requeue(due.map_or(most, |due| due.min(most)))
}

/// First wait after an error, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Longest wait after errors.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) cluster: Cluster,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) jobs: JobCache,
    pub(crate) waiting: Waiting,
    pub(crate) workflows: Store<WorkflowObject>,
    /// Names of workflows that are to be passed over.
    pub(crate) queue: UnboundedSender<Name>,
    pub(crate) following: Following,
    pub(crate) events: Events,
    pub(crate) failures: Failures<Name>,
}

/// How often in a row a pass over each object has failed.
#[derive(Debug)]
pub(crate) struct Failures<N>(Mutex<HashMap<N, u32>>);

impl<N> Default for Failures<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        cluster: Cluster,
        metrics: Arc<Metrics>,
        workflows: Store<WorkflowObject>,
        queue: UnboundedSender<Name>,
    ) -> Self {
        Self {
            events: Events::new(&cluster, Arc::clone(&metrics)),
            config,
            cluster,
            metrics,
            jobs: JobCache::new(),
            waiting: Waiting::default(),
            workflows,
            queue,
            following: Following::default(),
            failures: Failures::default(),
        }
    }

    /// Whether news of this object come by themselves: those of workflows do, where they are watched.
    pub(crate) fn is_followed(&self, target: &ObjectReference) -> bool {
        let watched = self.config.namespace.as_ref();
        target.kind != "Job" && watched.is_none_or(|watched| *watched == target.namespace)
    }

    /// Asks for a pass.
    pub(crate) fn enqueue(&self, name: Name) {
        // The queue is gone once the controller ends.
        drop(self.queue.send(name));
    }
}

impl<N: Clone + Eq + Hash> Failures<N> {
    /// A pass has failed; how long to wait before another one.
    pub(crate) fn failed(&self, name: &N) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(name.clone()).or_default();
        let wait = FIRST_WAIT.saturating_mul(1 << (*count).min(12));
        *count = count.saturating_add(1);
        wait.min(LONGEST_WAIT)
    }

    /// A pass went well, or the object is gone.
    pub(crate) fn forgive(&self, name: &N) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(name);
    }
}
