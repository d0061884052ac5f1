//! A workflow of Jobs, and a pipeline that embeds another, run by the controller of workflows.

use std::time::Duration;

use hindsight_controller::{
    app::{App, Error},
    config::Config,
};
use kubesim::{JobRunner, Jobs, PipelineRunner, Sim};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The runs that are played, and what the names of their parts hold.
pub(crate) const PLAYED: [(&str, &[&str]); 2] = [
    (
        "data/catalogue",
        &["-fetch-", "-prices-", "-pictures-", "-index-", "-publish-"],
    ),
    (
        "shop/ship-web",
        &[
            "clone",
            "ship-web-build-",
            "-compile-",
            "-lint-",
            "-test-",
            "deploy",
        ],
    ),
];

/// The controller in this process, and what becomes of Jobs on the simulated cluster.
#[derive(Debug)]
pub(crate) struct Controller {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
    _jobs: JobRunner,
}

impl Controller {
    pub(crate) async fn start(sim: &Sim) -> anyhow::Result<Self> {
        let app = App::bind(Config::default(), sim.client()).await?;
        let shutdown = CancellationToken::new();
        Ok(Self {
            task: tokio::spawn(app.run(shutdown.clone())),
            shutdown,
            _jobs: sim.run_jobs(Jobs {
                start_after: Duration::from_millis(400),
                run_for: Duration::from_millis(1200),
            }),
        })
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        Ok(self.task.await??)
    }
}

/// Creates what [`PLAYED`] lists. Pipelines go on until the answer is dropped.
pub(crate) fn play(sim: &Sim) -> anyhow::Result<PipelineRunner> {
    let kind = json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow"});
    let object = |namespace: &str, name: &str, mut object: Value, spec: Value| {
        sim.namespace(namespace);
        object["metadata"] = json!({"name": name, "namespace": namespace});
        object["spec"] = spec;
        sim.create(object)
    };
    let catalogue = json!({"steps": {
        "fetch": step(&[]),
        "prices": step(&["fetch"]),
        "pictures": step(&["fetch"]),
        "index": step(&["prices", "pictures"]),
        "publish": step(&["index"]),
    }});
    object("data", "catalogue", kind.clone(), catalogue)?;
    let mut embedded = kind;
    embedded["spec"] = json!({"steps": {
        "compile": step(&[]), "lint": step(&[]), "test": step(&["compile"]),
    }});
    let ship = json!({"pipelineSpec": {"tasks": [
        {"name": "clone", "taskRef": {"name": "git-clone"}},
        {"name": "build", "runAfter": ["clone"], "taskSpec": embedded},
        {"name": "deploy", "taskRef": {"name": "deploy"},
            "params": [{"name": "of", "value": "$(tasks.build.results.workflow)"}]},
    ]}});
    let pipeline_run = json!({"apiVersion": "tekton.dev/v1", "kind": "PipelineRun"});
    object("shop", "ship-web", pipeline_run, ship)?;
    Ok(sim.run_pipelines())
}

/// A step whose Job starts once these are complete.
fn step(dependencies: &[&str]) -> Value {
    json!({"dependencies": dependencies, "jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "command": ["true"]}],
    }}}}})
}
