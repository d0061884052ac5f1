//! Runs wait for their logs before they leave the cluster, and not for longer than was agreed.

use std::time::Instant;

use hindsight_watcher::{
    config::{Config, Logs},
    policy::Policy,
};
use jiff::SignedDuration;
use kubesim::Sim;
use serde_json::{Value, json};

use super::{begin, logs, pod, reading, sealed, write};
use crate::support::{NAMESPACE, World, child, collecting, done, eventually, pipeline_run};

/// A watcher that deletes what is stored at once, with finalizers or not.
fn holding(how: Logs, finalizers: bool, deadline: SignedDuration) -> Config {
    Config {
        policy: Policy {
            logs_deadline: deadline,
            finalizers,
            ..match finalizers {
                true => reading(how).policy,
                false => collecting().policy,
            }
        },
        ..reading(how)
    }
}

fn long() -> SignedDuration {
    SignedDuration::from_hours(24 * 365 * 100)
}

/// The run ends, and its container goes on.
fn end_run(world: &World, name: &str) {
    world.merge("tekton.dev", "taskruns", name, json!({"status": done()}));
}

fn end_step(world: &World, name: &str) {
    let pod = format!("{name}-pod");
    world
        .sim
        .end_container(NAMESPACE, &pod, "step-a", 0)
        .unwrap();
}

fn is_there(sim: &Sim, plural: &str, name: &str) -> bool {
    sim.get("tekton.dev", plural, NAMESPACE, name).is_some()
}

#[tokio::test]
async fn a_run_is_collected_once_its_logs_are_sealed() {
    let world = World::new(holding(Logs::Finished, false, long())).await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    end_run(&world, "build");
    world.until(|p| p.stored == 1 && p.waiting == 0).await;
    assert!(is_there(&world.sim, "taskruns", "build"));
    end_step(&world, "build");
    world.until(|p| p.collected == 1).await;
    assert_eq!(sealed(&world, "build").await, ["one"]);
}

#[tokio::test]
async fn at_the_deadline_a_run_is_collected_without_its_logs() {
    let deadline = SignedDuration::from_millis(700);
    let world = World::new(holding(Logs::Finished, false, deadline)).await;
    begin(&world, "build");
    let ended = Instant::now();
    // It says of itself that it ended long ago, which does not count.
    end_run(&world, "build");
    world.until(|p| p.collected == 1).await;
    assert!(ended.elapsed() >= deadline.unsigned_abs());
}

#[tokio::test]
async fn a_pipeline_waits_for_the_logs_of_its_tasks() {
    let world = World::new(holding(Logs::Finished, false, long())).await;
    let owner = world.sim.create(pipeline_run("nightly")).unwrap();
    let run = world.sim.create(child("build", &owner)).unwrap();
    world
        .sim
        .create(pod(&run, "build-pod", &["step-a"]))
        .unwrap();
    world
        .sim
        .start_container(NAMESPACE, "build-pod", "step-a")
        .unwrap();
    write(&world, "build", "one\n");
    end_run(&world, "build");
    world.finish("pipelineruns", "nightly");
    world.until(|p| p.stored == 2 && p.waiting == 0).await;
    assert!(is_there(&world.sim, "pipelineruns", "nightly"));
    end_step(&world, "build");
    world.until(|p| p.collected >= 1).await;
    assert_eq!(sealed(&world, "build").await, ["one"]);
}

#[tokio::test]
async fn a_finalizer_holds_a_run_until_its_logs_are_sealed() {
    let world = World::new(holding(Logs::Finished, true, long())).await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    let has_finalizer = |run: &Value| run["metadata"]["finalizers"].is_array();
    world
        .cluster(|sim| {
            let run = sim.get("tekton.dev", "taskruns", NAMESPACE, "build");
            run.is_some_and(|run| has_finalizer(&run))
        })
        .await;
    end_run(&world, "build");
    world.until(|p| p.stored == 1 && p.waiting == 0).await;
    world
        .sim
        .delete("tekton.dev", "taskruns", NAMESPACE, "build")
        .unwrap();
    world.until(|p| p.waiting == 0).await;
    assert!(is_there(&world.sim, "taskruns", "build"));
    end_step(&world, "build");
    world
        .cluster(|sim| !is_there(sim, "taskruns", "build"))
        .await;
    assert_eq!(sealed(&world, "build").await, ["one"]);
}

#[tokio::test]
async fn a_run_that_is_deleted_while_it_runs_waits_for_what_was_written() {
    for how in [Logs::Follow, Logs::Finished] {
        let world = World::new(holding(how, true, long())).await;
        begin(&world, "build");
        let has_finalizer = |sim: &Sim| {
            let run = sim.get("tekton.dev", "taskruns", NAMESPACE, "build");
            run.is_some_and(|run| run["metadata"]["finalizers"].is_array())
        };
        world.cluster(has_finalizer).await;
        write(&world, "build", "one\ntwo\n");
        world
            .sim
            .delete("tekton.dev", "taskruns", NAMESPACE, "build")
            .unwrap();
        world
            .cluster(|sim| !is_there(sim, "taskruns", "build"))
            .await;
        assert_eq!(sealed(&world, "build").await, ["one", "two"], "{how}");
        let holes = logs(&world).of("build-pod", "step-a", 0).holes();
        assert!(holes[0].contains("the run was deleted"), "{holes:?}");
    }
}

#[tokio::test]
async fn a_server_without_logs_holds_nothing_up() {
    let world = World::without_watcher(holding(Logs::Follow, false, long()));
    world.sink.no_logs(true);
    let mut world = world;
    world.start().await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    end_run(&world, "build");
    end_step(&world, "build");
    world.until(|p| p.collected == 1).await;
    // One that learns to keep logs gets those that are still there.
    world.sink.no_logs(false);
    begin(&world, "later");
    write(&world, "later", "two\n");
    let stored = || logs(&world).of("later-pod", "step-a", 0).texts();
    eventually(|| stored() == ["two"]).await;
}

#[tokio::test]
async fn what_the_cluster_does_not_show_holds_a_run_until_the_deadline_alone() {
    let config = holding(Logs::Follow, false, SignedDuration::from_secs(1));
    let mut world = World::without_watcher(config);
    let policy = world.sim.policy();
    policy.allow("watcher", "*", "tekton.dev", "*", "*");
    policy
        .allow("watcher", "*", "", "namespaces", "*")
        .enforce();
    world.user = Some("watcher");
    world.start().await;
    begin(&world, "build");
    end_run(&world, "build");
    world.until(|p| p.collected == 1).await;
    let refused = world.sim.calls().resource("pods").status(403);
    assert!(refused.count() >= 1);
}

#[tokio::test]
async fn a_right_that_comes_later_is_used() {
    let mut world = World::without_watcher(reading(Logs::Follow));
    let policy = world.sim.policy();
    policy.allow("watcher", "*", "tekton.dev", "*", "*");
    policy.allow("watcher", "list", "", "pods", "*");
    policy.allow("watcher", "watch", "", "pods", "*").enforce();
    world.user = Some("watcher");
    world.start().await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    let refused = || world.sim.calls().resource("pods").status(403).count() > 0;
    eventually(refused).await;
    world
        .sim
        .policy()
        .allow("watcher", "get", "", "pods/log", "*");
    super::finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, ["one"]);
}
