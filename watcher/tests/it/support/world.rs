//! The world of a test: a cluster, a server in memory, and a watcher that comes and goes.

use std::{sync::Arc, time::Duration};

use hindsight_run::Upload;
use hindsight_watcher::{
    app::{App, Error},
    config::Config,
    progress::{Handle, Progress},
    spool,
};
use kubesim::{Crd, Fault, Sim};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{NAMESPACE, done, is_done, task_run, uid, within};
use crate::support::memory::MemorySink;

const STORED: &str = "results.tekton.dev/stored";

/// The world, with a watcher in it.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) config: Config,
    /// Whom the cluster takes the watcher for, if not for one who may do everything.
    pub(crate) user: Option<&'static str>,
    watcher: Option<Watcher>,
}

struct Watcher {
    handle: Handle,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
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
            user: None,
            watcher: None,
        }
    }

    pub(crate) async fn start(&mut self) {
        let sink = Arc::clone(&self.sink);
        // A watcher that was killed lets its spool go when its last task has ended.
        let app = within(async {
            loop {
                let sink = Arc::clone(&sink);
                let client = match self.user {
                    Some(user) => self.sim.client_as(user),
                    None => self.sim.client(),
                };
                match App::bind(self.config.clone(), client, sink).await {
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
            run.is_some_and(|run| run["metadata"]["annotations"][STORED] == "true")
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
        self.merge("tekton.dev", plural, name, json!({"status": done()}));
    }

    /// Creates so many TaskRuns, numbered, and lets them finish; returns their UIDs.
    pub(crate) fn finish_all(&self, name: &str, count: usize) -> Vec<String> {
        (0..count)
            .map(|n| self.finished(&format!("{name}-{n}")))
            .collect()
    }

    /// Waits until all of these have the annotation.
    pub(crate) async fn all_annotated(&self, name: &str, count: usize) {
        for n in 0..count {
            self.annotated(&format!("{name}-{n}")).await;
        }
    }

    /// Lets a PipelineRun finish that names these children.
    pub(crate) fn finish_pipeline(&self, name: &str, children: Value) {
        let mut status = done();
        status["childReferences"] = children;
        let patch = json!({"status": status});
        self.merge("tekton.dev", "pipelineruns", name, patch);
    }

    /// Somebody writes on an object.
    #[track_caller]
    pub(crate) fn merge(&self, group: &str, plural: &str, name: &str, patch: Value) {
        self.sim
            .merge(group, plural, NAMESPACE, name, patch, "somebody")
            .unwrap();
    }

    pub(crate) fn annotate(&self, name: &str, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.merge("tekton.dev", "taskruns", name, patch);
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.sim.faults().plan(fault);
    }

    /// How often the cluster was asked to delete something.
    pub(crate) fn deletes(&self) -> usize {
        self.sim.calls().verb("delete").count()
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

    /// Whether all of these are stored in their final state.
    #[track_caller]
    pub(crate) fn all_done(&self, uids: &[String]) -> bool {
        uids.iter().all(|uid| is_done(&self.copy(uid)))
    }

    /// The result that a run made, by the UID of the run.
    #[track_caller]
    pub(crate) fn result(&self, uid: &str) -> Upload {
        let name = format!("{NAMESPACE}/results/{uid}");
        self.sink.result(&name).expect("the run has a result")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(watcher) = &self.watcher {
            watcher.task.abort();
        }
    }
}

pub(crate) fn stored_annotation(sim: &Sim, name: &str) -> Option<String> {
    let run = sim.get("tekton.dev", "taskruns", NAMESPACE, name)?;
    let stored = run["metadata"]["annotations"][STORED].as_str()?;
    Some(stored.to_owned())
}
