//! What is asked of the API server about one workflow.

mod custom;
mod pipeline;

use std::sync::Arc;

use hindsight_cluster::{ClusterError, Pace, call, kept};
use hindsight_runtime::clock::Clock;
use hindsight_workflow::{
    Delete, End, Event, JobSeen, ObjectReference, Severity, TargetSeen, UID_LABEL, Workflow,
};
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ObjectReference as Regarding};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
    runtime::{
        events::{Event as Posted, EventType, Recorder, Reporter},
        watcher,
    },
};
use serde_json::Value;
use tracing::debug;

use crate::object::{JobObject, WorkflowObject};

/// How the controller calls itself in events and `managedFields`.
pub(crate) const NAME: &str = "hindsight-workflow";

/// How many Jobs are in a page of a list.
const PAGE: u32 = 500;

/// Of a list that a workflow needs, most pages.
const PAGES: usize = 20;

/// How long the API server is asked to keep a watch.
const WATCH_LASTS: u32 = 240;

/// What the controller asks of the API server.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    namespace: Option<String>,
    recorder: Recorder,
    writes: Arc<Pace>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(
        client: Client,
        namespace: Option<String>,
        writes: Pace,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let client = kept(client);
        let reporter = Reporter {
            controller: NAME.to_owned(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            client,
            namespace,
            writes: Arc::new(writes),
            clock,
        }
    }

    /// The workflows that are run.
    pub(crate) fn workflows(&self) -> Api<WorkflowObject> {
        self.watched()
    }

    /// All Jobs of workflows that are run, and perhaps others.
    pub(crate) fn jobs(&self) -> Api<JobObject> {
        self.watched()
    }

    fn watched<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// How both kinds are watched.
    pub(crate) fn watch(labels: Option<&str>) -> watcher::Config {
        let config = watcher::Config::default().timeout(WATCH_LASTS);
        match labels {
            Some(labels) => config.labels(labels),
            None => config,
        }
    }

    /// The leases of a namespace, or of the one that we are in.
    pub(crate) fn leases(&self, namespace: Option<&str>) -> Api<Lease> {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::default_namespaced(self.client.clone()),
        }
    }

    fn workflows_in(&self, namespace: &str) -> Api<WorkflowObject> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn jobs_in(&self, namespace: &str) -> Api<JobObject> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Waits until a write is due.
    async fn turn(&self) {
        let now = self.clock.now();
        let turn = self.writes.turn(now);
        if let Ok(wait) = turn.duration_since(now).try_into()
            && turn > now
        {
            tokio::time::sleep(wait).await;
        }
    }

    /// Writes wait until this moment, which an API server that is busy names.
    pub(crate) fn spare(&self, error: &ClusterError) {
        if let Some(wait) = error.retry_after()
            && let Ok(until) = self.clock.now().checked_add(wait)
        {
            self.writes.pause(until);
        }
    }

    /// The workflow, if it is there and still the one with this UID.
    pub(crate) async fn workflow(
        &self,
        of: &Workflow,
    ) -> Result<Option<WorkflowObject>, ClusterError> {
        match call(self.workflows_in(&of.namespace).get(&of.name)).await {
            Ok(object) => {
                let is_it = kube::Resource::meta(&object).uid.as_deref() == Some(of.uid.as_str());
                Ok(is_it.then_some(object))
            }
            Err(ClusterError::Moved) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the status of a workflow; of its version alone.
    pub(crate) async fn write_status(
        &self,
        of: &Workflow,
        object: &WorkflowObject,
    ) -> Result<WorkflowObject, ClusterError> {
        self.turn().await;
        call(
            self.workflows_in(&of.namespace)
                .replace_status(&of.name, &posted(), object),
        )
        .await
    }

    /// Replaces a workflow; of its version alone.
    pub(crate) async fn write(
        &self,
        of: &Workflow,
        object: &WorkflowObject,
    ) -> Result<WorkflowObject, ClusterError> {
        self.turn().await;
        call(
            self.workflows_in(&of.namespace)
                .replace(&of.name, &posted(), object),
        )
        .await
    }

    /// The Job of this name.
    pub(crate) async fn job(&self, namespace: &str, name: &str) -> Result<JobSeen, ClusterError> {
        match call(self.jobs_in(namespace).get(name)).await {
            Ok(found) => Ok(JobSeen::There(found.job)),
            Err(ClusterError::Moved) => Ok(JobSeen::Gone),
            Err(error) => Err(error),
        }
    }

    /// The Jobs with the label of a workflow.
    pub(crate) async fn list_jobs(
        &self,
        of: &Workflow,
    ) -> Result<Vec<hindsight_workflow::Job>, ClusterError> {
        let api = self.jobs_in(&of.namespace);
        let labels = format!("{UID_LABEL}={}", of.uid);
        let mut params = ListParams::default().labels(&labels).limit(PAGE);
        let mut jobs = Vec::new();
        for _ in 0..PAGES {
            let page = call(api.list(&params)).await?;
            jobs.extend(page.items.into_iter().map(|object| object.job));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(jobs),
            }
        }
        // Each step has one.
        Err(ClusterError::Passing {
            message: "more Jobs than a workflow has steps".to_owned(),
            retry_after: None,
        })
    }

    /// Creates a Job. One of this name that is there already is as good: whose it is, it says itself.
    pub(crate) async fn create_job(
        &self,
        namespace: &str,
        name: &str,
        manifest: &Value,
    ) -> Result<JobSeen, ClusterError> {
        self.turn().await;
        let body = serde_json::to_vec(manifest).map_err(|error| ClusterError::Refused {
            code: 0,
            message: error.to_string(),
        })?;
        let request =
            kube::core::Request::new(format!("/apis/batch/v1/namespaces/{namespace}/jobs"));
        let request = request
            .create(&posted(), body)
            .map_err(|error| ClusterError::Refused {
                code: 0,
                message: error.to_string(),
            })?;
        match call(self.client.request::<JobObject>(request)).await {
            Ok(object) => Ok(JobSeen::There(object.job)),
            // There is one of the name, or the namespace is not there any more.
            Err(ClusterError::Moved) => match self.job(namespace, name).await? {
                JobSeen::Gone => Err(ClusterError::Moved),
                seen => Ok(seen),
            },
            // What the template says is not valid, and will not be.
            Err(ClusterError::Refused {
                code: 400 | 422,
                message,
            }) => Ok(JobSeen::Refused(message)),
            Err(error) => Err(error),
        }
    }

    /// Deletes a Job in the background, if it still is this one in this version: without a propagation
    /// policy an API server orphans the pods of Jobs. One that is gone is as good.
    pub(crate) async fn delete_job(
        &self,
        namespace: &str,
        job: &Delete,
    ) -> Result<(), ClusterError> {
        self.turn().await;
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(job.uid.clone()),
            resource_version: Some(job.version.clone()),
        });
        match call(self.jobs_in(namespace).delete(&job.name, &params)).await {
            Ok(_) => Ok(()),
            Err(ClusterError::Moved) => match self.job(namespace, &job.name).await? {
                JobSeen::There(found) if found.uid == job.uid && !found.is_deleting => {
                    Err(ClusterError::Moved)
                }
                _ => Ok(()),
            },
            Err(error) => Err(error),
        }
    }

    /// What a step waits for.
    pub(crate) async fn target(
        &self,
        target: &ObjectReference,
    ) -> Result<TargetSeen, ClusterError> {
        if target.kind == "Job" {
            let seen = self.job(&target.namespace, &target.name).await?;
            return Ok(match seen {
                JobSeen::There(job) => TargetSeen::There {
                    uid: job.uid,
                    end: job.end,
                },
                _ => TargetSeen::Gone,
            });
        }
        let found = match call(self.workflows_in(&target.namespace).get(&target.name)).await {
            Ok(found) => found,
            Err(ClusterError::Moved) => return Ok(TargetSeen::Gone),
            Err(error) => return Err(error),
        };
        target_of(&found).map_err(|message| ClusterError::Refused { code: 0, message })
    }

    /// Posts an event. One that is refused is no reason not to go on.
    pub(crate) async fn publish(&self, regarding: &Regarding, event: Event) {
        let mut note = event.note;
        // The API server takes at most 1 KiB.
        note.truncate(note.floor_char_boundary(1000));
        let posted = Posted {
            type_: match event.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: event.reason.to_owned(),
            note: Some(note),
            action: "Run".to_owned(),
            secondary: None,
        };
        self.turn().await;
        if let Err(error) = call(self.recorder.publish(&posted, regarding)).await {
            debug!(
                object.namespace = regarding.namespace,
                object.name = regarding.name,
                "event not posted: {error}"
            );
        }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What a workflow is to those that wait for it.
pub(crate) fn target_of(object: &WorkflowObject) -> Result<TargetSeen, String> {
    let workflow = object.read()?;
    let end = workflow.status.is_finished().then(|| {
        let failure = workflow.status.failure();
        failure.map_or(End::Complete, |failure| {
            End::Failed(failure.reason.clone().unwrap_or_default())
        })
    });
    let uid = workflow.uid;
    Ok(TargetSeen::There { uid, end })
}

fn posted() -> PostParams {
    PostParams {
        field_manager: Some(NAME.to_owned()),
        ..PostParams::default()
    }
}
