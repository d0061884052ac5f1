//! What the parts of a controller share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::runtime::reflector::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    caches::{JobCache, Name, Waiting},
    cluster::Cluster,
    config::Config,
    metrics::Metrics,
    object::WorkflowObject,
};

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
    /// How often in a row a pass over a workflow has failed.
    failures: Mutex<HashMap<Name, u32>>,
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
            config,
            cluster,
            metrics,
            jobs: JobCache::new(),
            waiting: Waiting::default(),
            workflows,
            queue,
            failures: Mutex::default(),
        }
    }

    /// Asks for a pass.
    pub(crate) fn enqueue(&self, name: Name) {
        // The queue is gone once the controller ends.
        drop(self.queue.send(name));
    }

    /// A pass has failed; how long to wait before another one.
    pub(crate) fn failed(&self, name: &Name) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(name.clone()).or_default();
        let wait = FIRST_WAIT.saturating_mul(1 << (*count).min(12));
        *count = count.saturating_add(1);
        wait.min(LONGEST_WAIT)
    }

    /// A pass went well, or the workflow is gone.
    pub(crate) fn forgive(&self, name: &Name) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(name);
    }
}
