//! Runs that are stored while they go on: how often, and what becomes of those whose end is not seen.

use std::time::Duration;

use hindsight_run::View;
use hindsight_watcher::config::Config;
use serde_json::{Value, json};

use crate::support::{World, child, is_done, pipeline_run, quick, task_run, within};

/// Stores runs as they progress, each at most so often.
fn progressing(interval: Duration) -> Config {
    let mut config = quick();
    config.policy.store_incomplete = true;
    config.tuning.progress_interval = interval;
    config
}

const HOUR: Duration = Duration::from_hours(1);

fn step(world: &World, name: &str, step: u32) {
    let patch = json!({"status": {"startTime": "2026-03-01T10:00:00Z", "step": step,
        "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]}});
    world.merge("tekton.dev", "taskruns", name, patch);
}

fn closed(object: &Value) -> Option<String> {
    let view = View::new(object);
    view.closed().map(|closed| closed.reason.to_owned())
}

#[tokio::test]
async fn progress_is_stored_at_first_sight_and_then_not_before_the_interval_is_over() {
    let world = World::new(progressing(HOUR)).await;
    let uid = world.create(task_run("build"));
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    for n in 1..4 {
        step(&world, "build", n);
    }
    world.until(|p| p.held > 0 && p.waiting == 0).await;
    assert_eq!(world.sink.writes(), 1);
    // The end waits for nothing.
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.sink.writes(), 2);
}

#[tokio::test]
async fn what_came_during_the_interval_is_stored_after_it_without_a_read() {
    let world = World::new(progressing(Duration::from_millis(300))).await;
    let uid = world.create(task_run("build"));
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    for n in 1..4 {
        step(&world, "build", n);
    }
    within(
        world
            .sink
            .until(|sink| sink.copy(&uid).unwrap()["status"]["step"] == 3),
    )
    .await;
    assert_eq!(world.sink.writes(), 2);
    assert_eq!(
        world.sim.calls().verb("get").resource("taskruns").count(),
        0
    );
}

#[tokio::test]
async fn a_run_that_is_deleted_unfinished_does_not_run_for_ever() {
    let world = World::new(progressing(HOUR)).await;
    let owner = world.sim.create(pipeline_run("nightly")).unwrap();
    let part = world.create(child("build", &owner));
    within(world.sink.until(|sink| sink.writes() == 2)).await;
    step(&world, "build", 1);
    world.delete("build");
    within(
        world
            .sink
            .until(|sink| closed(&sink.copy(&part).unwrap()).is_some()),
    )
    .await;
    let copy = world.copy(&part);
    assert_eq!(closed(&copy).as_deref(), Some("deleted before it finished"));
    // It is the last state that was seen.
    assert_eq!(copy["status"]["step"], 1);
    assert!(View::new(&copy).ended().is_some());
}

#[tokio::test]
async fn a_run_that_vanishes_while_no_watcher_runs_is_closed_at_the_next_start() {
    let mut world = World::new(progressing(HOUR)).await;
    let gone = world.create(task_run("gone"));
    let other = world.create(task_run("other"));
    let there = world.create(task_run("there"));
    within(world.sink.until(|sink| sink.writes() == 3)).await;
    world.kill().await;
    world.delete("gone");
    world.delete("other");
    world.start().await;
    for uid in [&gone, &other] {
        within(
            world
                .sink
                .until(|sink| closed(&sink.copy(uid).unwrap()).is_some()),
        )
        .await;
        let reason = closed(&world.copy(uid)).unwrap();
        assert_eq!(
            reason,
            "vanished while the watch was interrupted, last seen unfinished"
        );
    }
    assert!(
        world
            .result(&gone)
            .annotations
            .contains_key("hindsight.dev/closed")
    );
    assert_eq!(closed(&world.copy(&there)), None);
    assert_eq!(world.progress().lost, 0);
    // It is still followed.
    world.finish("taskruns", "there");
    world.annotated("there").await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_does_not_keep_others_from_being_closed() {
    let mut world = World::new(progressing(HOUR)).await;
    let names = ["a", "b", "c"];
    let uids = names.map(|name| world.create(task_run(name)));
    within(world.sink.until(|sink| sink.writes() == 3)).await;
    world.kill().await;
    // It is the first of those that the server lists.
    let first = world.sink.records().into_iter().min().unwrap();
    let (damaged, others): (Vec<_>, Vec<_>) =
        uids.iter().partition(|uid| first.ends_with(uid.as_str()));
    world.sink.damage(damaged[0]);
    for name in names {
        world.delete(name);
    }
    world.start().await;
    for uid in others {
        within(
            world
                .sink
                .until(|sink| closed(&sink.copy(uid).unwrap()).is_some()),
        )
        .await;
    }
    assert_eq!(closed(&world.copy(damaged[0])), None);
}

#[tokio::test]
async fn a_closed_run_that_turns_out_to_exist_is_open_again() {
    let mut world = World::new(progressing(HOUR)).await;
    let uid = world.create(task_run("build"));
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    world.kill().await;
    world.sink.change(&uid, |object| {
        let at = "2026-03-01T10:00:00Z".parse().unwrap();
        let reason = "vanished";
        *object = View::new(object)
            .close(hindsight_run::Closed { at, reason })
            .unwrap();
    });
    world.start().await;
    within(
        world
            .sink
            .until(|sink| closed(&sink.copy(&uid).unwrap()).is_none()),
    )
    .await;
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
}
