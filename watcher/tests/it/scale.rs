//! How it does with many runs. What is measured is printed; see it with `--nocapture`.

use std::{path::Path, time::Instant};

use kubesim::{Crd, Sim};
use serde_json::json;

use crate::support::{
    NAMESPACE, RpcServer, World, collecting, done, patiently, process::Process, quick, task_run,
};

const RUNS: usize = 2000;
/// As many as a large cluster that nobody cleans up.
const MANY: usize = 5_000;

/// A finished run of about ten kilobytes, as a pipeline of a few steps has.
fn large(n: usize) -> serde_json::Value {
    let mut run = task_run(&format!("build-{n}"));
    let step = |n| json!({"name": format!("step-{n}"), "script": "make all\n".repeat(200)});
    run["spec"]["taskSpec"] = json!({"steps": (0..5).map(step).collect::<Vec<_>>()});
    run["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{n:012}"));
    run["status"] = done();
    run
}

/// A line of `/proc/<process>/status` in KiB.
fn memory(process: &str, line: &str) -> usize {
    let path = Path::new("/proc").join(process).join("status");
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|l| l.starts_with(line)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn resident_mib() -> usize {
    memory("self", "VmRSS") / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_cluster_is_caught_up_with_and_a_restart_writes_nothing_and_reads_little() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.namespace(NAMESPACE);
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = RpcServer::start();
    let address = format!("http://{}", server.addr);
    // What is asked here is how fast it can be, and what it takes.
    let args = ["--server", address.as_str(), "--writes-per-second=100000"];
    let process = Process::start(listening.kubeconfig(), &args);
    // A watch of each kind that is there.
    patiently(|| sim.calls().verb("watch").count() == 3).await;
    let idle = memory(&process.id(), "VmRSS");
    assert_eq!(process.terminate().await, Some(0));
    for n in 0..MANY {
        sim.load(large(n)).unwrap();
    }
    let began = Instant::now();
    let process = Process::start(listening.kubeconfig(), &args);
    let calls = || sim.calls().verb("patch").count();
    patiently(|| server.records() == MANY).await;
    let stored = began.elapsed();
    let annotated = |run: &serde_json::Value| {
        run["metadata"]["annotations"]["results.tekton.dev/stored"] == json!("true")
    };
    patiently(|| sim.list("tekton.dev", "taskruns").iter().all(annotated)).await;
    let peak = memory(&process.id(), "VmHWM") / 1024;
    let rate = MANY as f64 / stored.as_secs_f64();
    println!("{MANY} runs stored in {stored:?}, {rate:.0} a second; peak {peak} MiB");
    assert!(peak < 150, "{peak} MiB");
    assert_eq!(process.terminate().await, Some(0));
    let made = server.calls();
    assert_eq!(made.len(), 2 * MANY, "a run takes two calls");

    sim.clear_calls();
    let began = Instant::now();
    let process = Process::start(listening.kubeconfig(), &args);
    patiently(|| sim.calls().verb("watch").count() == 3).await;
    let resident = memory(&process.id(), "VmRSS");
    println!(
        "seen again in {:?}; {idle} KiB with none, {resident} KiB with all: {} bytes a run",
        began.elapsed(),
        resident.saturating_sub(idle) * 1024 / MANY
    );
    assert_eq!(process.terminate().await, Some(0));
    let asked = server.calls();
    // They are verified bit by bit, over an hour.
    assert!(asked.len() < MANY / 50, "{}", asked.len());
    assert!(asked.iter().all(|call| *call == "get_record"));
    assert_eq!(calls(), 0);
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
