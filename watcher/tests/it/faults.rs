//! An API server that lags behind what it has told, or keeps some requests waiting.

use std::time::Duration;

use crate::support::{World, collecting, eventually, is_done, quick, task_run};
use hindsight_watcher::config::{Config, Tuning};
use kubesim::Fault;

/// Nothing is held in memory, so that every run is read again.
fn forgetful(config: Config) -> Config {
    Config {
        tuning: Tuning {
            hold_bytes: 0,
            ..config.tuning
        },
        ..config
    }
}

#[tokio::test]
async fn an_end_that_was_told_is_stored_though_reads_lag_behind() {
    let world = World::new(forgetful(quick())).await;
    let uid = world.create(task_run("build"));
    world.until(|p| p.in_cluster == 1 && p.waiting == 0).await;
    let before = world.sim.version();
    let stale = Fault::stale(before).verb("get").resource("taskruns");
    world.fault(stale.times(3));
    world.finish("taskruns", "build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(world.sim.faults().pending(), 0);
}

#[tokio::test]
async fn a_run_that_an_outdated_list_does_not_know_is_neither_lost_nor_closed() {
    let world = World::new(quick()).await;
    let before = world.sim.version();
    let running = world.create(task_run("running"));
    let ended = world.finished("ended");
    world.annotated("ended").await;
    world.until(|p| p.in_cluster == 2).await;
    // The watch is refused for a while, and the next list is of before they were made.
    let stale = Fault::stale(before).verb("list").resource("taskruns");
    let refused = Fault::status(403).verb("watch").resource("taskruns");
    world.fault(refused.times(3));
    world.fault(stale);
    world.sim.faults().drop_watches();
    eventually(|| world.sim.faults().pending() == 0).await;
    world.until(|p| p.in_cluster == 2).await;
    world.finish("taskruns", "running");
    world.annotated("running").await;
    assert_eq!(world.progress().lost, 0, "{:?}", world.handle().lost(9));
    for uid in [running, ended] {
        assert!(is_done(&world.copy(&uid)));
        let result = world.result(&uid);
        let closed = result.annotations.get("hindsight.dev/closed").cloned();
        assert_eq!(closed, None);
    }
}

#[tokio::test]
async fn nothing_goes_unstored_while_reads_lag_behind_and_lists_are_slow() {
    let world = World::new(collecting()).await;
    let mut uids = Vec::new();
    for n in 0..40 {
        let name = format!("build-{n}");
        let before = world.sim.version();
        let faults = world.sim.faults();
        faults.plan(Fault::stale(before).verb("get").times(2));
        faults.plan(Fault::stale(before).verb("list"));
        faults.plan(Fault::slow(Duration::from_millis(20)).verb("list"));
        let uid = world.create(task_run(&name));
        faults.drop_watches();
        if n % 3 == 0 {
            world.sim.compact();
        }
        world.finish("taskruns", &name);
        uids.push(uid);
    }
    world.until(|p| p.collected == 40).await;
    world
        .cluster(|sim| sim.count("tekton.dev", "taskruns") == 0)
        .await;
    assert_eq!(world.progress().lost, 0, "{:?}", world.handle().lost(9));
    for uid in &uids {
        assert!(is_done(&world.copy(uid)));
    }
    // Each was deleted once.
    let deletes = world.sim.calls().verb("delete").status(200);
    assert_eq!(deletes.count(), 40);
}

#[tokio::test]
async fn a_kind_that_is_slow_to_list_keeps_no_other_kind_waiting() {
    let mut world = World::without_watcher(quick());
    let slow = Fault::slow(Duration::from_secs(3600));
    world.fault(slow.verb("list").resource("pipelineruns"));
    world.start().await;
    let uid = world.finished("build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert!(!world.progress().is_listed);
    world.stop().await;
}
