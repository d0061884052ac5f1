//! How it does with many runs.

use std::time::Instant;

use serde_json::json;

use crate::support::{World, collecting, done, quick, task_run};

const RUNS: usize = 2000;

/// A finished run of about ten kilobytes, as a pipeline of a few steps has.
fn large(n: usize) -> serde_json::Value {
    let mut run = task_run(&format!("build-{n}"));
    let step = |n| json!({"name": format!("step-{n}"), "script": "make all\n".repeat(200)});
    run["spec"]["taskSpec"] = json!({"steps": (0..5).map(step).collect::<Vec<_>>()});
    run["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{n:012}"));
    run["status"] = done();
    run
}

fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_full_of_finished_runs_is_caught_up_with() {
    for config in [quick(), collecting()] {
        let mut world = World::without_watcher(config);
        for n in 0..RUNS {
            world.sim.load(large(n)).unwrap();
        }
        let (before, began) = (resident_mib(), Instant::now());
        world.start().await;
        world.until(|p| p.stored == RUNS as u64).await;
        println!(
            "{RUNS} stored in {:?}; {before} MiB before, {} MiB after",
            began.elapsed(),
            resident_mib()
        );
        if world.config.policy.collect.is_some() {
            world.until(|p| p.collected == RUNS as u64).await;
            println!("and collected after {:?}", began.elapsed());
        }
        assert_eq!(world.sink.records().len(), RUNS);
    }
}
