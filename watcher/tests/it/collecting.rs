//! Stored runs leave the cluster; nothing else does.

use std::sync::Arc;

use hindsight_watcher::{
    config::Config,
    policy::{Collect, Policy},
};
use jiff::SignedDuration;
use kubesim::Fault;
use serde_json::json;

use crate::support::{
    NAMESPACE, World, child, collecting, done, is_done, pipeline_run, task_run, uid, within,
};

fn with(change: impl FnOnce(&mut Collect)) -> Config {
    let mut config = collecting();
    change(config.policy.collect.as_mut().unwrap());
    config
}

#[tokio::test]
async fn a_run_goes_once_it_is_stored() {
    let world = World::new(collecting()).await;
    let uids = world.finish_all("build", 20);
    world.create(task_run("running"));
    world
        .until(|p| p.collected == 20 && p.in_cluster == 1)
        .await;
    assert_eq!(world.sim.count("tekton.dev", "taskruns"), 1);
    assert!(world.all_done(&uids));
    assert_eq!(world.sink.writes(), 20);
    assert_eq!((world.progress().lost, world.deletes()), (0, 20));
}

#[tokio::test]
async fn nothing_goes_while_the_server_is_away() {
    let world = World::new(collecting()).await;
    world.sink.away(true);
    world.finished("build");
    world.until(|p| !p.is_server_up).await;
    within(world.sink.until(|sink| sink.calls() > 5)).await;
    assert_eq!(world.deletes(), 0);
    world.sink.away(false);
    world.until(|p| p.collected == 1).await;
    assert_eq!(world.sink.writes(), 1);
}

#[tokio::test]
async fn a_server_that_forgot_a_run_gets_it_again_before_it_goes() {
    let world = World::new(collecting()).await;
    let sink = Arc::clone(&world.sink);
    world.sink.when_asked(move || {
        sink.forget();
        sink.choke_on("build");
    });
    let uid = world.finished("build");
    // The proof is missing, and the run cannot be stored again yet; so it stays.
    world.until(|p| !p.is_server_up).await;
    assert_eq!(world.deletes(), 0);
    world.sink.choke_on("");
    world.until(|p| p.collected == 1).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.sink.writes(), 2);
}

#[tokio::test]
async fn a_restarted_watcher_asks_again_before_it_deletes() {
    let mut world = World::new(with(|c| c.selector = "never=true".parse().unwrap())).await;
    let uid = world.finished("build");
    world.annotated("build").await;
    world.stop().await;
    world.sink.forget();
    world.config = collecting();
    world.start().await;
    world.until(|p| p.collected == 1).await;
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn a_run_that_changes_between_storing_and_deleting_is_stored_again() {
    let world = World::new(collecting()).await;
    // The first delete comes too late: somebody writes on the run before it.
    world.fault(Fault::status(409).verb("delete"));
    let uid = world.finished("build");
    world.cluster(|sim| sim.faults().pending() == 0).await;
    world.until(|p| p.collected == 1).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.deletes(), 2);
}

#[tokio::test]
async fn a_run_that_changes_after_its_proof_is_not_deleted_as_it_was() {
    let world = World::new(collecting()).await;
    let sim = world.sim.clone();
    world.sink.when_asked(move || {
        let patch = json!({"metadata": {"annotations": {"late": "yes"}}});
        sim.merge("tekton.dev", "taskruns", NAMESPACE, "build", patch, "x")
            .unwrap();
    });
    let uid = world.finished("build");
    world.until(|p| p.collected == 1 && p.in_cluster == 0).await;
    assert_eq!(
        world.copy(&uid)["metadata"]["annotations"]["late"],
        json!("yes")
    );
    let refused = world.sim.calls().verb("delete").status(409);
    assert_eq!(refused.count(), 1);
}

#[tokio::test]
async fn a_run_that_takes_the_name_after_the_proof_is_not_hit() {
    let world = World::new(collecting()).await;
    let sim = world.sim.clone();
    let (told, second) = std::sync::mpsc::channel();
    world.sink.when_asked(move || {
        sim.delete("tekton.dev", "taskruns", NAMESPACE, "build")
            .unwrap();
        told.send(uid(&sim.create(task_run("build")).unwrap()))
            .unwrap();
    });
    let first = world.finished("build");
    world.until(|p| p.stored == 1).await;
    // What is done about the first is over once the next one is done.
    world.finished("next");
    world.until(|p| p.collected == 1 && p.in_cluster == 1).await;
    assert_eq!(uid(&world.run("build").unwrap()), second.recv().unwrap());
    assert!(is_done(&world.copy(&first)));
}

#[tokio::test]
async fn a_lost_answer_to_a_delete_is_no_loss() {
    let world = World::new(collecting()).await;
    world.fault(Fault::lost_answer().verb("delete"));
    let uid = world.finished("build");
    world.until(|p| p.stored == 1 && p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.progress().lost, 0);
}

/// The run is stored and stays, while another one goes.
async fn stays(world: &World, run: serde_json::Value, name: &str) {
    world.create(run);
    world.finish("taskruns", name);
    world.annotated(name).await;
    world.finished("free");
    world.until(|p| p.collected == 1).await;
    assert!(world.run(name).is_some());
}

#[tokio::test]
async fn a_run_that_is_held_stays_until_it_is_let_go() {
    let world = World::new(collecting()).await;
    let mut run = task_run("held");
    run["metadata"]["annotations"] = json!({"hindsight.dev/hold": "true"});
    stays(&world, run, "held").await;
    world.annotate("held", "hindsight.dev/hold", "false");
    world.until(|p| p.collected == 2).await;
}

#[tokio::test]
async fn only_selected_runs_go() {
    let world = World::new(with(|c| c.selector = "keep!=yes".parse().unwrap())).await;
    let mut run = task_run("kept");
    run["metadata"]["labels"] = json!({"keep": "yes"});
    stays(&world, run, "kept").await;
}

#[tokio::test]
async fn a_run_stays_for_its_grace() {
    let world = World::new(with(|c| c.grace = SignedDuration::from_millis(300))).await;
    let uid = world.create(task_run("build"));
    let mut status = done();
    let ended = world.sim.now();
    status["completionTime"] = json!(ended.to_string());
    let status = json!({"status": status});
    world.merge("tekton.dev", "taskruns", "build", status);
    world.until(|p| p.collected == 1).await;
    assert!(world.sim.now().duration_since(ended) >= SignedDuration::from_millis(300));
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let world = World::new(Config {
        dry_run: true,
        ..collecting()
    })
    .await;
    world.finished("build");
    world.annotated("build").await;
    // What is proved before a delete is proved all the same.
    within(world.sink.until(|sink| sink.calls() >= 2)).await;
    world.until(|p| p.waiting == 0).await;
    assert_eq!((world.progress().collected, world.deletes()), (0, 0));
}

#[tokio::test]
async fn collection_is_off_unless_asked_for() {
    let config = Config {
        policy: Policy::default(),
        ..collecting()
    };
    let world = World::new(config).await;
    world.finished("build");
    world.annotated("build").await;
    world.until(|p| p.waiting == 0).await;
    assert_eq!(world.deletes(), 0);
}

#[tokio::test]
async fn a_pipeline_run_waits_for_all_of_its_children_and_takes_them_along() {
    let world = World::new(collecting()).await;
    world.sink.refuse("nightly-test");
    let owner = world.sim.create(pipeline_run("nightly")).unwrap();
    let mut uids = vec![uid(&owner)];
    for name in ["nightly-build", "nightly-test"] {
        uids.push(world.create(child(name, &owner)));
        world.finish("taskruns", name);
    }
    let names = json!([
        {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "nightly-build"},
        {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "nightly-test"}]);
    world.finish_pipeline("nightly", names);
    world.until(|p| p.stored == 2).await;
    // The refused child is tried more than once, and its owner stays.
    let calls = world.sink.calls();
    within(world.sink.until(|sink| sink.calls() > calls + 3)).await;
    assert_eq!(world.deletes(), 0);
    world.sink.refuse("");
    world.until(|p| p.in_cluster == 0).await;
    assert_eq!(world.progress().collected, 1);
    assert!(world.all_done(&uids));
    let owners = world.sim.calls().verb("delete").resource("pipelineruns");
    assert_eq!(owners.count(), world.deletes());
}

#[tokio::test]
async fn a_child_that_is_not_watched_keeps_its_owner() {
    let mut config = collecting();
    config.kinds.retain(|kind| kind.kind != "CustomRun");
    let world = World::new(config).await;
    world.create(pipeline_run("nightly"));
    let child = json!([{"apiVersion": "tekton.dev/v1beta1", "kind": "CustomRun", "name": "loop"}]);
    world.finish_pipeline("nightly", child);
    world.until(|p| p.stored == 1).await;
    world.finished("free");
    world.until(|p| p.collected == 1).await;
    assert_eq!(world.sim.count("tekton.dev", "pipelineruns"), 1);
}

#[tokio::test]
async fn a_run_made_again_under_the_same_name_is_not_hit() {
    let world = World::new(collecting()).await;
    // The watcher believes that its delete had no effect, and meanwhile the name is used again.
    world.fault(Fault::lost_answer().verb("delete"));
    let first = world.finished("build");
    world
        .cluster(|sim| sim.count("tekton.dev", "taskruns") == 0)
        .await;
    let second = world.create(task_run("build"));
    world.finished("other");
    world
        .until(|p| p.collected >= 1 && p.in_cluster == 1 && p.waiting == 0)
        .await;
    assert_eq!(uid(&world.run("build").unwrap()), second);
    assert!(is_done(&world.copy(&first)));
}

#[tokio::test]
async fn a_finalizer_of_somebody_else_only_delays() {
    let world = World::new(collecting()).await;
    let mut run = task_run("build");
    run["metadata"]["finalizers"] = json!(["example.dev/wait"]);
    let uid = world.create(run);
    world.finish("taskruns", "build");
    world.until(|p| p.collected == 1).await;
    assert!(world.run("build").unwrap()["metadata"]["deletionTimestamp"].is_string());
    let free = json!({"metadata": {"finalizers": null}});
    world.merge("tekton.dev", "taskruns", "build", free);
    world.until(|p| p.in_cluster == 0).await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.deletes(), 1);
}
