//! What following many containers costs, of the program itself.

use std::{path::Path, time::Duration};

use kubesim::{Crd, Sim};
use tokio::time::sleep;

use super::pod;
use crate::support::{NAMESPACE, RpcServer, patiently, process::Process, task_run};

const CONTAINERS: usize = 500;

/// Of each, before they are read.
const LINES: usize = 4_000;

/// The most memory that the process had, in MiB.
fn peak(process: &str) -> usize {
    let path = Path::new("/proc").join(process).join("status");
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_containers_are_followed_in_150_mebibytes() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.namespace(NAMESPACE);
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = RpcServer::start();
    let address = format!("http://{}", server.addr);
    let args = [
        "--server",
        address.as_str(),
        "--logs=follow",
        "--no-annotations",
    ];
    let process = Process::start(listening.kubeconfig(), &args);
    let name = |n: usize| format!("build-{n}");
    for n in 0..CONTAINERS {
        let run = sim.create(task_run(&name(n))).unwrap();
        sim.create(pod(&run, &name(n), &["step-a"])).unwrap();
        sim.start_container(NAMESPACE, &name(n), "step-a").unwrap();
    }
    // More than is held for each, so that readers wait for the server.
    let text = format!("{}\n", "x".repeat(99)).repeat(LINES);
    for n in 0..CONTAINERS {
        sim.write_log(NAMESPACE, &name(n), "step-a", &text).unwrap();
    }
    let stored = |lines: usize| {
        let counts = server.logs().counts();
        counts.len() == CONTAINERS && counts.iter().all(|count| *count == lines)
    };
    patiently(|| stored(LINES)).await;
    let followed = |call: &kubesim::Call| call.subresource == "log";
    assert_eq!(sim.calls().filter(followed).count(), CONTAINERS);
    // Then each goes on, slowly.
    for round in 1..=5 {
        for n in 0..CONTAINERS {
            sim.write_log(NAMESPACE, &name(n), "step-a", "more\n")
                .unwrap();
        }
        patiently(|| stored(LINES + round)).await;
        sleep(Duration::from_millis(10)).await;
    }
    let peak = peak(&process.id());
    println!("{CONTAINERS} containers followed: peak {peak} MiB");
    assert!(peak <= 150, "{peak} MiB");
    assert_eq!(process.terminate().await, Some(0));
}
