//! Many runs whose pods go soon after they end, while watchers are killed, connections break and the
//! server comes and goes: lines that were written against lines that are stored.

use std::{sync::Arc, time::Duration};

use hindsight_watcher::config::Logs;
use jiff::SignedDuration;
use kubesim::Sim;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, sleep},
};

use super::{logs, pod, reading};
use crate::support::{NAMESPACE, World, done, patiently, task_run};

/// So many runs, and of a thousand lines so many that must be stored; `make chaos-logs` plays more, with
/// the machine for itself. On a busy one a watcher may start later than the two seconds of a pod.
const SHORT: (usize, usize) = (200, 950);
const LARGE: usize = 999;
const AT_ONCE: usize = 20;

/// How many lines a run writes.
fn count(run: usize) -> usize {
    10 + run % 37
}

/// A run from its begin until two seconds after its end, when its pod goes.
async fn live(sim: Sim, n: usize) {
    let name = format!("build-{n}");
    let pod_name = format!("{name}-pod");
    let run = sim.create(task_run(&name)).unwrap();
    sim.create(pod(&run, &pod_name, &["step-a"])).unwrap();
    sim.start_container(NAMESPACE, &pod_name, "step-a").unwrap();
    for line in 0..count(n) {
        let text = format!("run {n} line {line}\n");
        sim.write_log(NAMESPACE, &pod_name, "step-a", text).unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    let is_cancelled = n.is_multiple_of(10);
    sim.end_container(NAMESPACE, &pod_name, "step-a", i32::from(is_cancelled))
        .unwrap();
    let mut status = done();
    status["podName"] = pod_name.as_str().into();
    let ran = json!({"exitCode": 0, "containerID": "c"});
    status["steps"] = json!([{"container": "step-a", "terminated": ran}]);
    if is_cancelled {
        status["conditions"] =
            json!([{"type": "Succeeded", "status": "False", "reason": "TaskRunCancelled"}]);
    }
    let patch = json!({"status": status});
    sim.merge("tekton.dev", "taskruns", NAMESPACE, &name, patch, "tekton")
        .unwrap();
    sleep(Duration::from_secs(2)).await;
    sim.delete("", "pods", NAMESPACE, &pod_name).unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the number of runs of a large play"
)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_runs_whose_pods_go_soon_are_stored_whatever_dies() {
    let large = std::env::var("HINDSIGHT_TEST_LOGGED_RUNS").ok();
    let (count_of_runs, share) = large.map_or(SHORT, |runs| (runs.parse().unwrap(), LARGE));
    let mut config = reading(Logs::Follow);
    config.policy.verify_within = SignedDuration::from_hours(1);
    let mut world = World::new(config).await;
    let mut runs = JoinSet::new();
    let turns = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    for n in 0..count_of_runs {
        let (sim, turns) = (world.sim.clone(), Arc::clone(&turns));
        runs.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            live(sim, n).await;
        });
    }
    let mut strikes = 0;
    let mut next = tokio::time::interval(Duration::from_millis(400));
    next.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !runs.is_empty() {
        tokio::select! {
            ended = runs.join_next() => ended.unwrap().unwrap(),
            _ = next.tick() => {
                strikes += 1;
                match strikes % 8 {
                    0 => { world.kill().await; world.start().await; }
                    1 => world.sim.faults().drop_logs(),
                    2 => world.sink.away(true),
                    5 => world.sim.faults().drop_watches(),
                    _ => world.sink.away(false),
                }
            }
        }
    }
    world.sink.away(false);
    let log = |n: usize| logs(&world).of(&format!("build-{n}-pod"), "step-a", 0);
    patiently(|| (0..count_of_runs).all(|n| log(n).sealed)).await;
    let (mut written, mut stored, mut holes) = (0, 0, 0);
    for n in 0..count_of_runs {
        let log = log(n);
        let lines = log.texts();
        let wanted: Vec<String> = (0..count(n))
            .map(|line| format!("run {n} line {line}"))
            .collect();
        // In order, none twice, none that was not written.
        let mut rest = wanted.iter();
        assert!(
            lines.iter().all(|line| rest.any(|wanted| wanted == line)),
            "{lines:?}"
        );
        assert!(
            lines.len() == wanted.len() || !log.holes.is_empty(),
            "{n}: a hole is marked"
        );
        written += wanted.len();
        stored += lines.len();
        holes += log.holes.len();
        for hole in log.holes() {
            println!("{n}: {hole}");
        }
    }
    println!("{stored} of {written} lines stored, {holes} holes, {strikes} strikes");
    assert!(stored * 1000 >= written * share, "{stored} of {written}");
    assert!(strikes >= 16, "{strikes}");
}
