//! A simulated cluster with Jobs that run, and controllers that come and go.

use std::{future::Future, time::Duration};

use hindsight_controller::{
    app::{App, Error},
    config::Config,
};
use hindsight_workflow::{Workflow, job_name};
use kubesim::{Crd, JobRunner, Jobs, Sim};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

pub(crate) const NAMESPACE: &str = "ci";
pub(crate) const GROUP: &str = "hindsight.dev";
pub(crate) const WORKFLOWS: &str = "workflows";

pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) config: Config,
    /// Whom the cluster takes controllers for, if not for one who may do everything.
    pub(crate) user: Option<&'static str>,
    controllers: Vec<Controller>,
    runner: Option<JobRunner>,
}

struct Controller {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl World {
    /// A cluster in which Jobs are run, and a controller.
    pub(crate) async fn new() -> Self {
        let mut world = Self::without_controller();
        world.start().await;
        world
    }

    pub(crate) fn without_controller() -> Self {
        let sim = Sim::new();
        sim.install(Crd::namespaced(GROUP, "v1alpha1", "Workflow", WORKFLOWS));
        sim.namespace(NAMESPACE);
        let runner = Some(sim.run_jobs(Jobs::default()));
        Self {
            sim,
            config: Config {
                external_poll: Duration::from_millis(200),
                ..Config::default()
            },
            user: None,
            controllers: Vec::new(),
            runner,
        }
    }

    /// Nothing happens to Jobs any more but what a test does.
    pub(crate) fn without_jobs(mut self) -> Self {
        self.runner = None;
        self
    }

    /// Starts one more controller.
    pub(crate) async fn start(&mut self) {
        let client = match self.user {
            Some(user) => self.sim.client_as(user),
            None => self.sim.client(),
        };
        let app = App::bind(self.config.clone(), client).await.unwrap();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(app.run(shutdown.clone()));
        self.controllers.push(Controller { shutdown, task });
    }

    /// Ends the oldest controller as SIGKILL would.
    pub(crate) async fn kill(&mut self) {
        let controller = self.controllers.remove(0);
        controller.task.abort();
        assert!(controller.task.await.unwrap_err().is_cancelled());
    }

    /// Ends the oldest controller in order.
    pub(crate) async fn stop(&mut self) {
        let controller = self.controllers.remove(0);
        controller.shutdown.cancel();
        within(controller.task).await.unwrap().unwrap();
    }

    /// Creates a workflow; returns it.
    #[track_caller]
    pub(crate) fn create(&self, name: &str, spec: &Value) -> Value {
        self.create_in(NAMESPACE, name, spec)
    }

    #[track_caller]
    pub(crate) fn create_in(&self, namespace: &str, name: &str, spec: &Value) -> Value {
        let object = json!({
            "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        self.sim.create(object).unwrap()
    }

    #[track_caller]
    pub(crate) fn workflow(&self, name: &str) -> Value {
        self.sim.get(GROUP, WORKFLOWS, NAMESPACE, name).unwrap()
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.workflow(name)["status"].clone()
    }

    /// Waits until the cluster is so.
    pub(crate) async fn until(&self, holds: impl FnMut(&Sim) -> bool) {
        within(self.sim.until(holds)).await;
    }

    /// Waits until the workflow has ended; returns its status.
    pub(crate) async fn ended(&self, name: &str) -> Value {
        self.until(|sim| ending(sim, name).is_some()).await;
        self.status(name)
    }

    /// Waits until the step of a workflow was started and the UID of its Job noted.
    pub(crate) async fn started(&self, name: &str, step: &str) {
        self.until(|sim| {
            let workflow = sim.get(GROUP, WORKFLOWS, NAMESPACE, name).unwrap();
            workflow["status"]["statuses"][step]["reference"]["uid"].is_string()
        })
        .await;
    }

    /// The Job of a step.
    pub(crate) fn job(&self, name: &str, step: &str) -> Option<Value> {
        let workflow = self.workflow(name);
        let job = job_of(&workflow, step);
        self.sim.get("batch", "jobs", NAMESPACE, &job)
    }

    /// How often a Job of this name was created.
    pub(crate) fn creates(&self) -> usize {
        self.sim
            .calls()
            .verb("create")
            .resource("jobs")
            .status(201)
            .count()
    }

    /// A Job ends.
    pub(crate) fn finish(&self, name: &str, step: &str, conditions: &[&str]) {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|r#type| json!({"type": r#type, "status": "True", "reason": "Test"}))
            .collect();
        let patch = json!({"status": {"conditions": conditions}});
        let job = job_of(&self.workflow(name), step);
        self.sim
            .merge("batch", "jobs", NAMESPACE, &job, patch, "test")
            .unwrap();
    }

    /// The reasons of the events about a workflow, oldest first.
    pub(crate) fn events(&self, name: &str) -> Vec<(String, String)> {
        let mut events = self.sim.list("events.k8s.io", "events");
        events.retain(|event| event["regarding"]["name"] == name);
        events.sort_by_key(|event| {
            event["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        assert!(
            events
                .iter()
                .all(|event| event["regarding"]["uid"].is_string())
        );
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        events
            .iter()
            .map(|event| (text(event, "reason"), text(event, "type")))
            .collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for controller in &self.controllers {
            controller.task.abort();
        }
    }
}

/// The name of the Job of a step.
pub(crate) fn job_of(workflow: &Value, step: &str) -> String {
    job_name(&Workflow::read(workflow).unwrap(), step)
}

/// How a workflow ended: its last condition, and the reason of that.
pub(crate) fn ending(sim: &Sim, name: &str) -> Option<(String, String)> {
    ending_of(&sim.get(GROUP, WORKFLOWS, NAMESPACE, name)?)
}

pub(crate) fn ending_of(workflow: &Value) -> Option<(String, String)> {
    let conditions = workflow["status"]["conditions"].as_array()?;
    let last = conditions
        .iter()
        .find(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")?;
    let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
    Some((text("type"), text("reason")))
}

pub(crate) fn failed(reason: &str) -> Option<(String, String)> {
    Some(("Failed".to_owned(), reason.to_owned()))
}

pub(crate) fn complete() -> Option<(String, String)> {
    Some(("Complete".to_owned(), String::new()))
}

/// A step that runs a Job once these are complete.
pub(crate) fn step(dependencies: &[&str]) -> Value {
    json!({
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
        }}}},
        "dependencies": dependencies,
    })
}

/// The same with annotations for the simulator.
pub(crate) fn step_with(dependencies: &[&str], annotations: &Value) -> Value {
    let mut step = step(dependencies);
    step["jobTemplate"]["metadata"] = json!({"annotations": annotations});
    step
}

/// A step whose Job does not end.
pub(crate) fn endless(dependencies: &[&str]) -> Value {
    step_with(dependencies, &json!({"kubesim.dev/outcome": "run"}))
}

/// Nothing that is waited for takes this long.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), what)
        .await
        .expect("what is waited for happens")
}
