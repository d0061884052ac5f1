//! Events, which are posted beside the passes that tell them: neither a pass nor a watch waits for an answer.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use hindsight_workflow::{Event, GROUP, KIND, VERSION, Workflow, custom::CustomRun, custom::Form};
use k8s_openapi::api::core::v1::ObjectReference as Regarding;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};
use tracing::debug;

use crate::{cluster::Cluster, metrics::Metrics};

/// Events that are posted at once; those about one object are posted one after another.
const LANES: usize = 16;

/// Most events that wait in a lane; further ones are dropped.
const WAITING: usize = 256;

/// Where events go.
#[derive(Debug)]
pub(crate) struct Events {
    lanes: Vec<mpsc::Sender<Waiting>>,
    chance: RandomState,
    waiting: TaskTracker,
    metrics: Arc<Metrics>,
    /// Ends with this.
    _posting: JoinSet<()>,
}

#[derive(Debug)]
struct Waiting {
    regarding: Regarding,
    event: Event,
    _token: TaskTrackerToken,
}

impl Events {
    pub(crate) fn new(cluster: &Cluster, metrics: Arc<Metrics>) -> Self {
        let mut posting = JoinSet::new();
        let lane = |_| {
            let (lane, mut waiting) = mpsc::channel::<Waiting>(WAITING);
            let cluster = cluster.clone();
            posting.spawn(async move {
                while let Some(next) = waiting.recv().await {
                    cluster.publish(&next.regarding, next.event).await;
                }
            });
            lane
        };
        Self {
            lanes: (0..LANES).map(lane).collect(),
            chance: RandomState::new(),
            waiting: TaskTracker::new(),
            metrics,
            _posting: posting,
        }
    }

    /// Tells something about a workflow.
    pub(crate) fn of_workflow(&self, of: &Workflow, event: Event) {
        let regarding = Regarding {
            api_version: Some(format!("{GROUP}/{VERSION}")),
            kind: Some(KIND.to_owned()),
            namespace: Some(of.namespace.clone()),
            name: Some(of.name.clone()),
            uid: Some(of.uid.clone()),
            ..Regarding::default()
        };
        self.post(regarding, event);
    }

    /// Tells something about a custom run.
    pub(crate) fn of_run(&self, of: &CustomRun, event: Event) {
        let regarding = Regarding {
            api_version: Some(format!("{}/{}", Form::GROUP, of.form.version())),
            kind: Some(of.form.kind().to_owned()),
            namespace: Some(of.namespace.clone()),
            name: Some(of.name.clone()),
            uid: Some(of.uid.clone()),
            ..Regarding::default()
        };
        self.post(regarding, event);
    }

    /// Waits until no event waits.
    pub(crate) async fn posted(&self) {
        self.waiting.close();
        self.waiting.wait().await;
    }

    fn post(&self, regarding: Regarding, event: Event) {
        let hash = self.chance.hash_one(&regarding.uid);
        let at = usize::try_from(hash % LANES as u64).unwrap_or_default();
        let next = Waiting {
            regarding,
            event,
            _token: self.waiting.token(),
        };
        if let Some(lane) = self.lanes.get(at)
            && let Err(error) = lane.try_send(next)
        {
            self.metrics.events_dropped.inc();
            let next = error.into_inner();
            debug!(
                object.namespace = next.regarding.namespace,
                object.name = next.regarding.name,
                "event dropped, because too many wait: {}",
                next.event.reason
            );
        }
    }
}
