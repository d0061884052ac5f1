//! A world to watch: a simulated cluster, a server in memory, and a watcher between them that
//! can be stopped and started.

mod memory;
mod rpc;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_watcher::{
    app::{App, Error},
    backoff::Backoff,
    config::{Config, File, Launch, Sources, Tuning},
    policy::{Collect, Policy},
    progress::{Handle, Progress},
    spool,
};
use jiff::SignedDuration;
use kubesim::{Crd, Sim};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use memory::MemorySink;
pub(crate) use rpc::RpcServer;

pub(crate) const NAMESPACE: &str = "ci";

/// The world, with a watcher in it.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) config: Config,
    watcher: Option<Watcher>,
}

struct Watcher {
    handle: Handle,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// A watcher that is quick to try again, because tests are.
pub(crate) fn quick() -> Config {
    let quick = Backoff {
        first: Duration::from_millis(5),
        most: Duration::from_millis(50),
    };
    Config {
        tuning: Tuning {
            kind_poll: Duration::from_millis(20),
            server: quick,
            cluster: quick,
            retry: quick,
            rare_retry: Duration::from_millis(100),
            ..Tuning::default()
        },
        policy: Policy {
            verify_within: SignedDuration::from_secs(-1),
            ..Policy::default()
        },
        ..Config::default()
    }
}

/// What a watcher does with a file of configuration.
pub(crate) fn from_file(text: &str) -> Config {
    let file = File {
        path: "w.toml".to_owned(),
        text: Ok(text.to_owned()),
    };
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    Launch::load(&sources).unwrap().config
}

/// The same, deleting what is stored at once.
pub(crate) fn collecting() -> Config {
    let collect = Collect {
        grace: SignedDuration::ZERO,
        recheck: SignedDuration::from_millis(50),
        ..Collect::default()
    };
    Config {
        policy: Policy {
            collect: Some(collect),
            ..quick().policy
        },
        ..quick()
    }
}

impl World {
    /// A cluster with Tekton and a watcher that has seen all of it.
    pub(crate) async fn new(config: Config) -> Self {
        let mut world = Self::without_watcher(config);
        world.start().await;
        within(world.handle().until(|w| w.progress().is_listed)).await;
        world
    }

    /// A cluster with Tekton.
    pub(crate) fn without_watcher(config: Config) -> Self {
        let sim = Sim::new();
        sim.install_all(Crd::tekton());
        sim.namespace(NAMESPACE);
        Self {
            sim,
            sink: Arc::default(),
            config,
            watcher: None,
        }
    }

    pub(crate) async fn start(&mut self) {
        let sink = Arc::clone(&self.sink);
        // A watcher that was killed lets its spool go when its last task has ended.
        let app = within(async {
            loop {
                let sink = Arc::clone(&sink);
                match App::bind(self.config.clone(), self.sim.client(), sink).await {
                    Err(Error::Spool {
                        source: spool::Error::InUse { .. },
                    }) => tokio::time::sleep(Duration::from_millis(1)).await,
                    app => return app.unwrap(),
                }
            }
        })
        .await;
        let handle = app.handle();
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let task = tokio::spawn(async move { app.run(token).await.unwrap() });
        self.watcher = Some(Watcher {
            handle,
            shutdown,
            task,
        });
    }

    /// Stops the watcher in order.
    pub(crate) async fn stop(&mut self) {
        let watcher = self.watcher.take().unwrap();
        watcher.shutdown.cancel();
        within(watcher.task).await.unwrap();
    }

    /// Ends the watcher as SIGKILL would.
    pub(crate) async fn kill(&mut self) {
        let watcher = self.watcher.take().unwrap();
        watcher.task.abort();
        assert!(watcher.task.await.unwrap_err().is_cancelled());
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.watcher.as_ref().expect("the watcher runs").handle
    }

    pub(crate) fn progress(&self) -> Progress {
        self.handle().progress()
    }

    /// Waits until the watcher has come so far.
    pub(crate) async fn until(&self, mut holds: impl FnMut(&Progress) -> bool) {
        within(self.handle().until(|watcher| holds(&watcher.progress()))).await;
    }

    /// Waits until the cluster is so.
    pub(crate) async fn cluster(&self, holds: impl FnMut(&Sim) -> bool) {
        within(self.sim.until(holds)).await;
    }

    /// Waits until the run has the annotation that says that it is stored.
    pub(crate) async fn annotated(&self, name: &str) {
        self.cluster(|sim| stored_annotation(sim, name).as_deref() == Some("true"))
            .await;
    }

    /// The same for a PipelineRun.
    pub(crate) async fn annotated_pipeline(&self, name: &str) {
        let is_stored = |sim: &Sim| {
            let run = sim.get("tekton.dev", "pipelineruns", NAMESPACE, name);
            run.is_some_and(|run| {
                run["metadata"]["annotations"]["results.tekton.dev/stored"] == json!("true")
            })
        };
        self.cluster(is_stored).await;
    }

    /// Creates a run; returns its UID.
    pub(crate) fn create(&self, run: Value) -> String {
        uid(&self.sim.create(run).unwrap())
    }

    /// Creates a TaskRun and lets it finish; returns its UID.
    pub(crate) fn finished(&self, name: &str) -> String {
        let uid = self.create(task_run(name));
        self.finish("taskruns", name);
        uid
    }

    /// Lets a Tekton run finish.
    pub(crate) fn finish(&self, plural: &str, name: &str) {
        let patch = json!({"status": done()});
        self.sim
            .merge("tekton.dev", plural, NAMESPACE, name, patch, "tekton")
            .unwrap();
    }

    pub(crate) fn annotate(&self, name: &str, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.sim
            .merge("tekton.dev", "taskruns", NAMESPACE, name, patch, "somebody")
            .unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        self.sim
            .delete("tekton.dev", "taskruns", NAMESPACE, name)
            .unwrap();
    }

    /// The TaskRun in the cluster.
    pub(crate) fn run(&self, name: &str) -> Option<Value> {
        self.sim.get("tekton.dev", "taskruns", NAMESPACE, name)
    }

    /// The stored object of a run, by its UID.
    #[track_caller]
    pub(crate) fn copy(&self, uid: &str) -> Value {
        self.sink.copy(uid).expect("the run is stored")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.task.abort();
        }
    }
}

/// Nothing that is waited for takes this long.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what)
        .await
        .expect("what is waited for happens")
}

/// Waits longer than other tests do.
pub(crate) async fn patiently(mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < patience, "what is waited for happens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

pub(crate) fn is_done(object: &Value) -> bool {
    object["status"]["completionTime"].is_string()
}

pub(crate) fn stored_annotation(sim: &Sim, name: &str) -> Option<String> {
    let run = sim.get("tekton.dev", "taskruns", NAMESPACE, name)?;
    Some(
        run["metadata"]["annotations"]["results.tekton.dev/stored"]
            .as_str()?
            .to_owned(),
    )
}

pub(crate) fn task_run(name: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"taskRef": {"name": "build"}},
    })
}

/// A TaskRun that `owner` owns.
pub(crate) fn child(name: &str, owner: &Value) -> Value {
    let mut run = task_run(name);
    run["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    run
}

pub(crate) fn pipeline_run(name: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"pipelineRef": {"name": "nightly"}},
    })
}

pub(crate) fn done() -> Value {
    json!({
        "startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:05:00Z",
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}],
    })
}
