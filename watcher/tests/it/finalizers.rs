//! Deletes of others wait until a run is stored, and no longer than agreed.

mod waiting;

use std::sync::Arc;

use hindsight_watcher::{config::Config, policy::Policy};
use jiff::SignedDuration;
use kubesim::Fault;
use serde_json::{Value, json};

use crate::support::{NAMESPACE, World, collecting, is_done, quick, task_run, within};

const OURS: &str = "results.tekton.dev/taskrun";

fn finalizing(config: Config, deadline: SignedDuration) -> Config {
    let policy = Policy {
        finalizers: true,
        store_deadline: deadline,
        ..config.policy
    };
    Config { policy, ..config }
}

fn patient() -> Config {
    finalizing(quick(), SignedDuration::from_mins(10))
}

fn hasty() -> Config {
    finalizing(quick(), SignedDuration::from_millis(1200))
}

fn finalizers(sim: &kubesim::Sim, name: &str) -> Vec<Value> {
    sim.get("tekton.dev", "taskruns", NAMESPACE, name)
        .and_then(|run| run["metadata"]["finalizers"].as_array().cloned())
        .unwrap_or_default()
}

async fn protected(world: &World, name: &str) {
    world
        .cluster(|sim| finalizers(sim, name).contains(&json!(OURS)))
        .await;
}

async fn gone(world: &World, name: &str) {
    world
        .cluster(|sim| sim.get("tekton.dev", "taskruns", NAMESPACE, name).is_none())
        .await;
}

/// As Tekton Results' watcher puts it on.
fn put_by_upstream(world: &World, name: &str) {
    let patch = json!({"metadata": {"finalizers": [OURS]}});
    world
        .sim
        .merge(
            "tekton.dev",
            "taskruns",
            NAMESPACE,
            name,
            patch,
            "tekton-results-watcher/finalizers",
        )
        .unwrap();
}

#[tokio::test]
async fn a_delete_waits_until_the_run_is_stored() {
    let world = World::new(patient()).await;
    let uid = world.create(task_run("build"));
    protected(&world, "build").await;
    world.sink.away(true);
    world.finish("taskruns", "build");
    world.delete("build");
    within(world.sink.until(|sink| sink.calls() > 5)).await;
    assert!(world.run("build").is_some());
    world.sink.away(false);
    gone(&world, "build").await;
    assert!(is_done(&world.copy(&uid)));
    assert!(world.copy(&uid)["metadata"]["deletionTimestamp"].is_string());
    world.until(|p| p.in_cluster == 0).await;
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn no_finalizer_is_put_on_unless_it_is_wanted_but_that_of_upstream_is_taken_off() {
    let world = World::new(quick()).await;
    let uid = world.create(task_run("build"));
    put_by_upstream(&world, "build");
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert_eq!(finalizers(&world.sim, "build"), [json!(OURS)]);
    world.delete("build");
    gone(&world, "build").await;
    assert!(is_done(&world.copy(&uid)));
    world.finished("other");
    world.annotated("other").await;
    assert!(finalizers(&world.sim, "other").is_empty());
}

#[tokio::test]
async fn finalizers_of_others_stay() {
    let world = World::new(patient()).await;
    let mut run = task_run("build");
    run["metadata"]["finalizers"] = json!(["chains.tekton.dev/taskrun"]);
    world.create(run);
    protected(&world, "build").await;
    world.finish("taskruns", "build");
    world.delete("build");
    world
        .cluster(|sim| finalizers(sim, "build") == [json!("chains.tekton.dev/taskrun")])
        .await;
    world.annotated("build").await;
}

#[tokio::test]
async fn at_the_deadline_a_run_is_let_go_and_stored_later() {
    let world = World::new(hasty()).await;
    let uid = world.create(task_run("build"));
    protected(&world, "build").await;
    world.sink.away(true);
    world.finish("taskruns", "build");
    // All workers are busy with a server that is away.
    world.finish_all("other", 20);
    world.until(|p| !p.is_server_up).await;
    world.delete("build");
    gone(&world, "build").await;
    assert_eq!(world.sink.writes(), 0);
    world.sink.away(false);
    world.until(|p| p.stored == 21 && p.in_cluster == 20).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_namespace_full_of_runs_that_cannot_be_stored_is_not_wedged() {
    let world = World::new(hasty()).await;
    world.sink.refuse("bad");
    world.create(task_run("bad"));
    world.create(task_run("running"));
    protected(&world, "bad").await;
    protected(&world, "running").await;
    world.finish("taskruns", "bad");
    world.sim.delete("", "namespaces", "", NAMESPACE).unwrap();
    world
        .cluster(|sim| sim.get("", "namespaces", "", NAMESPACE).is_none())
        .await;
    // It can never be stored, and is kept in mind for as long as it may be.
    let listed = |w: &hindsight_watcher::progress::Handle| {
        w.unstored(9).len() == 1 && w.progress().in_cluster == 1
    };
    within(world.handle().until(listed)).await;
}

#[tokio::test]
async fn a_run_deleted_before_it_ended_is_stored_and_let_go_at_once() {
    let world = World::new(patient()).await;
    let uid = world.create(task_run("build"));
    protected(&world, "build").await;
    world.delete("build");
    gone(&world, "build").await;
    world.until(|p| p.in_cluster == 0).await;
    assert!(!is_done(&world.copy(&uid)));
    let result = world.result(&uid);
    assert!(result.annotations.contains_key("hindsight.dev/closed"));
}

#[tokio::test]
async fn collected_runs_are_let_go_and_a_run_of_the_same_name_keeps_its_finalizer() {
    let world = World::new(finalizing(collecting(), SignedDuration::from_mins(10))).await;
    let first = world.create(task_run("build"));
    protected(&world, "build").await;
    world.finish("taskruns", "build");
    world.until(|p| p.collected == 1 && p.in_cluster == 0).await;
    let second = world.create(task_run("build"));
    protected(&world, "build").await;
    world.until(|p| p.in_cluster == 1 && p.waiting == 0).await;
    assert!(is_done(&world.copy(&first)));
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_release_that_comes_too_late_for_its_version_is_decided_anew() {
    let world = World::new(patient()).await;
    let uid = world.create(task_run("build"));
    protected(&world, "build").await;
    world.fault(Fault::status(409).verb("patch"));
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert_eq!(world.sim.faults().pending(), 0);
    assert!(finalizers(&world.sim, "build").is_empty());
    world.delete("build");
    gone(&world, "build").await;
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn a_cluster_that_allows_no_finalizers_does_not_keep_runs_from_being_stored() {
    let world = World::new(patient()).await;
    let sink = Arc::clone(&world.sink);
    for code in [403, 503] {
        world.fault(Fault::status(code).verb("patch"));
        let uid = world.finished(&format!("build-{code}"));
        within(sink.until(|sink| sink.copy(&uid).is_some())).await;
        world.annotated(&format!("build-{code}")).await;
    }
}

#[tokio::test]
async fn a_restart_puts_nothing_on_that_is_there() {
    let mut world = World::new(patient()).await;
    world.create(task_run("running"));
    protected(&world, "running").await;
    world.finished("done");
    world.annotated("done").await;
    world.stop().await;
    world.sim.clear_calls();
    world.start().await;
    world.until(|p| p.is_listed && p.stored == 1).await;
    world.stop().await;
    assert_eq!(world.sim.calls().verb("patch").count(), 0);
}

#[tokio::test]
async fn what_is_overdue_at_the_start_is_stored_before_it_is_let_go() {
    let mut world = World::without_watcher(finalizing(quick(), SignedDuration::ZERO));
    let uid = world.create(task_run("build"));
    put_by_upstream(&world, "build");
    world.finish("taskruns", "build");
    world.delete("build");
    let sink = Arc::clone(&world.sink);
    world.start().await;
    within(sink.until(|sink| sink.writes() == 1)).await;
    gone(&world, "build").await;
    world.until(|p| p.stored == 1 && p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    // It was stored while it was there, and not only from memory.
    assert!(world.copy(&uid)["metadata"]["finalizers"].is_array());
}
