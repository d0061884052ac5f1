//! Events, which are posted beside the passes that tell them: neither a pass nor a watch waits for an answer.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use hindsight_workflow::{
    Event, GROUP, KIND, VERSION, Workflow,
    custom::{CustomRun, Form},
    pipeline::{ChildKind, PipelineRun},
};
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
    /// The tasks that post, which end when this is dropped.
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
        let version = format!("{GROUP}/{VERSION}");
        self.post(
            regarding((&version, KIND), (&of.namespace, &of.name), &of.uid),
            event,
        );
    }

    /// Tells something about a custom run.
    pub(crate) fn of_run(&self, of: &CustomRun, event: Event) {
        let version = format!("{}/{}", Form::GROUP, of.form.version());
        let kind = (version.as_str(), of.form.kind());
        self.post(regarding(kind, (&of.namespace, &of.name), &of.uid), event);
    }

    /// Tells something about a PipelineRun.
    pub(crate) fn of_pipeline_run(&self, of: &PipelineRun, event: Event) {
        let version = format!("{}/v1", ChildKind::GROUP);
        let kind = (version.as_str(), "PipelineRun");
        self.post(regarding(kind, (&of.namespace, &of.name), &of.uid), event);
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

/// What an event is about: its version and kind, its namespace and name, and its UID.
fn regarding(
    (version, kind): (&str, &str),
    (namespace, name): (&str, &str),
    uid: &str,
) -> Regarding {
    Regarding {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..Regarding::default()
    }
}
