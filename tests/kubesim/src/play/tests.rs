//! The player keeps its account, and the same plan gives the same play.

use std::{collections::HashSet, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{Outcome, Plan, Player};
use crate::{Crd, ManualClock, Settings, Sim};

fn sim() -> Sim {
    let start = Timestamp::from_second(1_790_000_000).expect("in range");
    let sim = Sim::with(Settings::default(), Arc::new(ManualClock::at(start)));
    sim.install_all(Crd::tekton()).install(Crd::argo_workflow());
    sim
}

fn quick(runs: usize) -> Plan {
    Plan {
        runs,
        rate: f64::INFINITY,
        life: Duration::ZERO,
        ..Plan::default()
    }
}

#[tokio::test]
async fn every_run_comes_to_its_end_with_its_children() {
    let sim = sim();
    let playing = Player::new(&sim, quick(60)).start();
    let progress = playing.over().await;
    assert_eq!(
        (
            progress.created,
            progress.running,
            progress.finished,
            progress.lost
        ),
        (60, 60, 60, 0)
    );

    let finished = playing.finished();
    let uids: HashSet<_> = finished.iter().map(|object| object.uid.clone()).collect();
    let plurals = ["pipelineruns", "taskruns", "customruns"];
    let kept: usize = plurals
        .iter()
        .map(|plural| sim.count("tekton.dev", plural))
        .sum();
    assert_eq!(uids.len(), kept + sim.count("argoproj.io", "workflows"));
    for outcome in [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::Cancelled,
        Outcome::TimedOut,
    ] {
        assert!(
            finished.iter().any(|object| object.outcome == outcome),
            "{outcome:?}"
        );
    }
    for run in sim.list("tekton.dev", "taskruns") {
        assert_ne!(run["status"]["conditions"][0]["status"], "Unknown");
        assert!(run["status"]["completionTime"].is_string());
        let size = run.to_string().len();
        assert!(
            (3_000..11_000).contains(&size),
            "a task run has {size} bytes"
        );
    }
}

#[tokio::test]
async fn the_same_plan_gives_the_same_objects() {
    let mut all = Vec::new();
    for _ in 0..2 {
        let sim = sim();
        Player::new(&sim, quick(20)).start().over().await;
        let mut objects = sim.list("tekton.dev", "pipelineruns");
        objects.extend(sim.list("tekton.dev", "taskruns"));
        for object in &mut objects {
            object["metadata"]["resourceVersion"].take();
        }
        all.push(objects);
    }
    assert_eq!(all[0], all[1]);
}

#[tokio::test]
async fn runs_wait_while_the_server_is_down() {
    let sim = sim();
    sim.faults().down();
    let playing = Player::new(&sim, quick(3)).start();
    tokio::task::yield_now().await;
    assert_eq!(
        sim.count("tekton.dev", "taskruns") + sim.count("tekton.dev", "pipelineruns"),
        0
    );
    sim.faults().up();
    assert_eq!(playing.over().await.finished, 3);
}
