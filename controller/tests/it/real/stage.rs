//! Two namespaces of an API server, a controller of the first, and the Jobs, which the scene ends.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use hindsight_controller::{
    app::{App, Error},
    config::Config,
};
use hindsight_runtime::telemetry::Registry;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, Status},
};
use kubesim::contract::{Arena, Difference, Ground, eventually};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{self, job_of, within};

/// The name of the webhook, as in the manifest.
pub(super) const WEBHOOK: &str = "workflows.hindsight.dev";

/// Who ends the Jobs of the scenes, so that the Job controller does not.
const MANAGER: &str = "contract.kubesim.dev/suite";

pub(super) struct Stage {
    /// Where the controller works.
    pub(super) here: Arena,
    /// A namespace that the scene may reach into, beside its own.
    pub(super) there: Arena,
    /// Whether the API server reaches what listens on this machine.
    pub(super) is_near: bool,
    pub(super) config: Config,
    /// How controllers reach the API server.
    pub(super) client: Client,
    controllers: Vec<Running>,
}

struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
    registry: Arc<Registry>,
}

impl Stage {
    pub(super) async fn new(ground: &Ground, is_near: bool) -> Result<Self, Difference> {
        let (here, there) = (ground.arena().await?, ground.arena().await?);
        Ok(Self {
            config: Config {
                namespace: Some(here.namespace.clone()),
                external_poll: Duration::from_millis(200),
                ..Config::default()
            },
            client: here.client.clone(),
            here,
            there,
            is_near,
            controllers: Vec::new(),
        })
    }

    /// The same with a controller.
    pub(super) async fn with_controller(mut self) -> Self {
        self.start().await;
        self
    }

    pub(super) fn namespaces(&self) -> [Arena; 2] {
        [self.here.clone(), self.there.clone()]
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.here.sim().is_some()
    }

    /// Starts one more controller; returns where its webhook is, if it serves one.
    pub(super) async fn start(&mut self) -> Option<SocketAddr> {
        let app = App::bind(self.config.clone(), self.client.clone()).await;
        let app = app.unwrap();
        let webhook = app.webhook_addr();
        let (registry, shutdown) = (app.registry(), CancellationToken::new());
        let task = tokio::spawn(app.run(shutdown.clone()));
        self.controllers.push(Running {
            shutdown,
            task,
            registry,
        });
        webhook
    }

    /// Ends the oldest controller in order; returns its metrics.
    pub(super) async fn stop(&mut self) -> String {
        let controller = self.controllers.remove(0);
        controller.shutdown.cancel();
        within(controller.task).await.unwrap().unwrap();
        controller.registry.render()
    }

    pub(super) fn workflows(&self) -> Api<DynamicObject> {
        workflows(&self.here)
    }

    pub(super) fn jobs(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"));
        Api::namespaced_with(self.here.client.clone(), &self.here.namespace, &kind)
    }

    /// Creates a workflow; returns it.
    pub(super) async fn create(&self, name: &str, spec: Value) -> Value {
        self.try_create(name, spec).await.unwrap()
    }

    /// The same, or why the API server refuses it.
    pub(super) async fn try_create(&self, name: &str, spec: Value) -> Result<Value, Box<Status>> {
        let made = self.workflows();
        answered(
            made.create(&PostParams::default(), &workflow(name, spec))
                .await,
        )
    }

    pub(super) async fn create_there(&self, name: &str, spec: Value) -> Value {
        let api = workflows(&self.there);
        answered(
            api.create(&PostParams::default(), &workflow(name, spec))
                .await,
        )
        .unwrap()
    }

    /// Merges into a workflow, or says why the API server refuses to.
    pub(super) async fn change(&self, name: &str, patch: Value) -> Result<Value, Box<Status>> {
        let params = PatchParams::default();
        answered(
            self.workflows()
                .patch(name, &params, &Patch::Merge(patch))
                .await,
        )
    }

    pub(super) async fn delete(&self, name: &str) {
        let params = DeleteParams::background();
        self.workflows().delete(name, &params).await.unwrap();
    }

    pub(super) async fn workflow(&self, name: &str) -> Value {
        json!(self.workflows().get(name).await.unwrap())
    }

    /// Waits until a workflow is so; returns it.
    pub(super) async fn until(
        &self,
        what: &str,
        name: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let (api, holds) = (self.workflows(), &holds);
        let api = &api;
        eventually(
            what,
            || async move { Ok(holds(&json!(api.get(name).await?))) },
        )
        .await
        .unwrap();
        self.workflow(name).await
    }

    /// Waits until a workflow is gone.
    pub(super) async fn gone(&self, name: &str) {
        let api = &self.workflows();
        eventually("it goes", || async move {
            Ok(api.get_opt(name).await?.is_none())
        })
        .await
        .unwrap();
    }

    /// Waits until a step was started and the UID of what it runs noted; returns the workflow.
    pub(super) async fn started(&self, name: &str, step: &str) -> Value {
        let has_uid =
            |object: &Value| object["status"]["statuses"][step]["reference"]["uid"].is_string();
        self.until(&format!("{step} of {name} starts"), name, has_uid)
            .await
    }

    /// Waits until a workflow has ended: its last condition, and the reason of that.
    pub(super) async fn ended(&self, name: &str) -> (Value, Option<(String, String)>) {
        let what = format!("{name} ends");
        let object = self
            .until(&what, name, |object| support::ending_of(object).is_some())
            .await;
        let ending = support::ending_of(&object);
        (object, ending)
    }

    /// A workflow is created and ends: what the controller knew before, it has worked on.
    pub(super) async fn settle(&self) {
        let made = workflows(&self.here);
        let mut mark = workflow("", json!({}));
        mark.metadata.name = None;
        mark.metadata.generate_name = Some("mark-".to_owned());
        let mark = made.create(&PostParams::default(), &mark).await.unwrap();
        self.ended(&mark.metadata.name.unwrap()).await;
    }

    /// The Job of a step.
    pub(super) async fn job(&self, name: &str, step: &str) -> Option<Value> {
        let job = job_of(&self.workflow(name).await, step);
        let found = self.jobs().get_opt(&job).await.unwrap();
        found.map(|job| json!(job))
    }

    /// All Jobs, by the names of their steps.
    pub(super) async fn all_jobs(&self) -> Vec<Value> {
        let jobs = self.jobs().list(&ListParams::default()).await.unwrap();
        jobs.items.iter().map(|job| json!(job)).collect()
    }

    /// The Job of a step ends well.
    pub(super) async fn finish(&self, name: &str, step: &str) {
        let job = self.job(name, step).await.unwrap();
        end(&self.jobs(), &job, true).await;
    }

    /// The Job of a step fails.
    pub(super) async fn fail(&self, name: &str, step: &str) {
        let job = self.job(name, step).await.unwrap();
        end(&self.jobs(), &job, false).await;
    }

    /// The Jobs of all steps of a workflow end well, as they come.
    pub(super) async fn finish_all(&self, name: &str, steps: &[&str]) {
        for step in steps {
            self.started(name, step).await;
            self.finish(name, step).await;
        }
    }

    /// Reasons and types of the events about a workflow, with how often each was told.
    pub(super) async fn events(&self, name: &str) -> HashMap<(String, String), usize> {
        let kind = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
        let api: Api<DynamicObject> = Api::namespaced_with(
            self.here.client.clone(),
            &self.here.namespace,
            &ApiResource::from_gvk(&kind),
        );
        let mut found = HashMap::new();
        for event in api.list(&ListParams::default()).await.unwrap().items {
            if event.data["regarding"]["name"] == name {
                assert!(event.data["regarding"]["uid"].is_string());
                let text = |field: &str| event.data[field].as_str().unwrap().to_owned();
                *found.entry((text("reason"), text("type"))).or_default() += 1;
            }
        }
        found
    }

    /// Waits until an event about a workflow was told.
    pub(super) async fn told(&self, name: &str, reason: &str, r#type: &str) {
        let event = &(reason.to_owned(), r#type.to_owned());
        eventually(reason, || async move {
            Ok(self.events(name).await.contains_key(event))
        })
        .await
        .unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for controller in &self.controllers {
            controller.task.abort();
        }
    }
}

/// The workflows of a namespace.
pub(super) fn workflows(arena: &Arena) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("hindsight.dev", "v1alpha1", "Workflow");
    let kind = ApiResource::from_gvk(&kind);
    Api::namespaced_with(arena.client.clone(), &arena.namespace, &kind)
}

fn workflow(name: &str, spec: Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// An object, or the refusal of the API server.
fn answered(outcome: Result<DynamicObject, kube::Error>) -> Result<Value, Box<Status>> {
    match outcome {
        Ok(object) => Ok(json!(object)),
        Err(kube::Error::Api(status)) => Err(status),
        Err(error) => unreachable!("an API server answers: {error}"),
    }
}

/// Ends a Job well or not, as an API server demands it: the target condition beside the last one, and a time of
/// completion only after success. No more time passes than a Job controller could be quick.
pub(super) async fn end(jobs: &Api<DynamicObject>, job: &Value, is_good: bool) {
    let now = &job["metadata"]["creationTimestamp"];
    let condition = |r#type: &str| json!({"type": r#type, "status": "True", "reason": "Test", "lastTransitionTime": now});
    let types = if is_good {
        ["SuccessCriteriaMet", "Complete"]
    } else {
        ["FailureTarget", "Failed"]
    };
    let mut status = json!({"startTime": now, "conditions": types.map(condition)});
    if is_good {
        status["completionTime"] = now.clone();
    }
    let name = job["metadata"]["name"].as_str().unwrap();
    let patch = Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    jobs.patch_status(name, &params, &patch).await.unwrap();
}

/// A step whose Job the scene ends.
pub(super) fn step(dependencies: &[&str]) -> Value {
    let mut step = support::step(dependencies);
    step["jobTemplate"]["spec"]["managedBy"] = json!(MANAGER);
    step
}
