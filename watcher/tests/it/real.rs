//! The watcher against an API server that may be a real one: `make contract` points these tests at it.
//! Without, they run on a simulated cluster alone.

use std::sync::Arc;

use hindsight_run::View;
use hindsight_watcher::{
    app::App,
    config::Config,
    policy::{Collect, Policy},
    sink::Sink,
};
use jiff::SignedDuration;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use kubesim::{
    Crd, Sim,
    contract::{Arena, Ground, eventually},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{MemorySink, done, is_done, quick, within};

/// A watcher of one namespace of some API server.
struct Watched {
    runs: Api<DynamicObject>,
    sink: Arc<MemorySink>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Watched {
    async fn start(arena: &Arena, policy: Policy) -> Self {
        let kind = GroupVersionKind::gvk("tekton.dev", "v1", "TaskRun");
        let kind = ApiResource::from_gvk(&kind);
        let runs = Api::namespaced_with(arena.client.clone(), &arena.namespace, &kind);
        let config = Config {
            namespace: Some(arena.namespace.clone()),
            policy,
            ..quick()
        };
        let (sink, stop) = (Arc::<MemorySink>::default(), CancellationToken::new());
        let server: Arc<dyn Sink> = Arc::<MemorySink>::clone(&sink);
        let app = App::bind(config, arena.client.clone(), server).await;
        let (app, token) = (app.unwrap(), stop.clone());
        let handle = app.handle();
        let task = tokio::spawn(async move { app.run(token).await.unwrap() });
        // What comes and goes before is never seen.
        within(handle.until(|watcher| watcher.progress().is_listed)).await;
        Self {
            runs,
            sink,
            stop,
            task,
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        within(self.task).await.unwrap();
    }

    /// Creates a run; its UID.
    async fn create(&self, name: &str) -> String {
        let run = json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"name": name},
            "spec": {"taskRef": {"name": "build"}},
        });
        let run = serde_json::from_value(run).unwrap();
        let made = self.runs.create(&PostParams::default(), &run).await;
        made.unwrap().metadata.uid.unwrap()
    }

    async fn finish(&self, name: &str) {
        let patch = Patch::Merge(json!({"status": done()}));
        let params = PatchParams::default();
        self.runs.patch_status(name, &params, &patch).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let params = DeleteParams::default();
        self.runs.delete(name, &params).await.unwrap();
    }

    /// Waits until the run in the cluster is so; `None` when it is gone.
    async fn until(&self, what: &str, name: &str, holds: impl Fn(Option<&DynamicObject>) -> bool) {
        let (runs, holds) = (&self.runs, &holds);
        let seen = eventually(what, || async move {
            Ok(holds(runs.get_opt(name).await?.as_ref()))
        });
        seen.await.unwrap();
    }

    async fn stored(&self, what: &str, uid: &str, holds: impl Fn(&Value) -> bool) {
        let (sink, holds) = (&self.sink, &holds);
        let stored = eventually(what, || async move {
            Ok(sink.copy(uid).is_some_and(|copy| holds(&copy)))
        });
        stored.await.unwrap();
    }
}

async fn a_finished_run_is_stored_and_annotated(arena: Arena) {
    let watched = Watched::start(&arena, quick().policy).await;
    let uid = watched.create("a").await;
    watched.finish("a").await;
    let is_stored = |run: Option<&DynamicObject>| {
        let annotations = run.and_then(|run| run.metadata.annotations.as_ref());
        annotations.is_some_and(|all| {
            all.get("results.tekton.dev/stored").map(String::as_str) == Some("true")
        })
    };
    watched.until("the annotation comes", "a", is_stored).await;
    watched.stored("the end is stored", &uid, is_done).await;
    watched.stop().await;
}

async fn a_stored_run_is_collected(arena: Arena) {
    let collect = Collect {
        grace: SignedDuration::ZERO,
        recheck: SignedDuration::from_millis(50),
        ..Collect::default()
    };
    let policy = Policy {
        collect: Some(collect),
        ..quick().policy
    };
    let watched = Watched::start(&arena, policy).await;
    let (uid, left) = (watched.create("a").await, watched.create("b").await);
    watched.finish("a").await;
    watched
        .until("it is deleted", "a", |run| run.is_none())
        .await;
    watched.stored("the end is stored", &uid, is_done).await;
    let running = watched.runs.get("b").await.unwrap();
    assert_eq!(running.metadata.uid, Some(left));
    watched.stop().await;
}

async fn a_delete_waits_until_the_run_is_stored(arena: Arena) {
    let policy = Policy {
        finalizers: true,
        store_deadline: SignedDuration::from_mins(10),
        ..quick().policy
    };
    let watched = Watched::start(&arena, policy).await;
    watched.sink.away(true);
    let uid = watched.create("a").await;
    let is_held = |run: Option<&DynamicObject>| {
        let finalizers = run.and_then(|run| run.metadata.finalizers.as_ref());
        finalizers.is_some_and(|all| all.iter().any(|one| one == "results.tekton.dev/taskrun"))
    };
    watched.until("the finalizer comes", "a", is_held).await;
    watched.finish("a").await;
    watched.delete("a").await;
    let held = watched.runs.get("a").await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
    watched.sink.away(false);
    watched.until("it goes", "a", |run| run.is_none()).await;
    assert!(is_done(&watched.sink.copy(&uid).unwrap()));
    watched.stop().await;
}

async fn a_run_that_vanishes_is_stored_as_it_was_last(arena: Arena) {
    let watched = Watched::start(&arena, quick().policy).await;
    watched.sink.away(true);
    let uid = watched.create("a").await;
    watched.finish("a").await;
    watched.delete("a").await;
    watched.sink.away(false);
    watched.stored("the end is stored", &uid, is_done).await;
    watched.stop().await;
}

async fn a_cluster_of_ray_is_stored_as_it_was_when_it_was_deleted(arena: Arena) {
    let watched = Watched::start(&arena, quick().policy).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", "RayCluster"));
    let clusters: Api<DynamicObject> =
        Api::namespaced_with(arena.client.clone(), &arena.namespace, &kind);
    let template = json!({"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}});
    let cluster = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a"},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": template}},
    });
    let cluster = serde_json::from_value(cluster).unwrap();
    let made = clusters.create(&PostParams::default(), &cluster).await;
    let uid = made.unwrap().metadata.uid.unwrap();
    watched
        .stored("the cluster is stored", &uid, |_| true)
        .await;
    let ready = Patch::Merge(json!({"status": {"state": "ready"}}));
    let patched = clusters
        .patch_status("a", &PatchParams::default(), &ready)
        .await;
    patched.unwrap();
    clusters
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    let is_ended =
        |copy: &Value| View::new(copy).ended().is_some() && copy["status"]["state"] == "ready";
    watched.stored("its end is stored", &uid, is_ended).await;
    watched.stop().await;
}

/// Plays every scene, each in a namespace of its own, and says how many.
async fn play(ground: &Ground) -> usize {
    macro_rules! scenes {
        ($($scene:ident),*) => {[$((stringify!($scene), {
            let arena = ground.arena().await.unwrap();
            let outcome = tokio::spawn($scene(arena.clone())).await;
            ground.clear(&arena).await.unwrap();
            outcome
        })),*]};
    }
    let outcomes = scenes![
        a_finished_run_is_stored_and_annotated,
        a_stored_run_is_collected,
        a_delete_waits_until_the_run_is_stored,
        a_run_that_vanishes_is_stored_as_it_was_last,
        a_cluster_of_ray_is_stored_as_it_was_when_it_was_deleted
    ];
    let failed: Vec<_> = outcomes.iter().filter(|(_, one)| one.is_err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    outcomes.len()
}

/// The kinds of the scenes.
fn kinds() -> Vec<Crd> {
    Crd::tekton().into_iter().chain(Crd::ray()).collect()
}

#[tokio::test]
async fn the_watcher_does_the_same_on_a_simulated_cluster() {
    let sim = Sim::new();
    sim.install_all(kinds());
    play(&Ground::simulated(&sim, sim.client())).await;
}

#[tokio::test]
async fn the_watcher_does_the_same_on_a_real_server() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer points the suite at a server with it"
    )]
    let path = std::env::var("KUBESIM_CONTRACT_KUBECONFIG");
    let Ok(path) = path else {
        eprintln!("skipped: KUBESIM_CONTRACT_KUBECONFIG is not set");
        return;
    };
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    let ground = Ground::real(client, &kinds()).await.unwrap();
    let played = play(&ground).await;
    ground.leave().await.unwrap();
    eprintln!("contract: {played} scenes of the watcher ran");
}
