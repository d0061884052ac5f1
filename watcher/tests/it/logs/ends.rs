//! Logs of runs that do not end as they should, and what is never to be read.

use hindsight_watcher::config::{Config, Logs};
use kubesim::Fault;
use serde_json::json;

use super::{begin, finish, logs, pod, reading, sealed, write};
use crate::support::{NAMESPACE, World, eventually, task_run};

#[tokio::test]
async fn lines_of_a_cancelled_run_are_stored_before_its_pod_goes() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", "one\ntwo\n");
    eventually(|| logs(&world).of("build-pod", "step-a", 0).lines.len() == 2).await;
    // Tekton deletes the pod of a run that is cancelled.
    world
        .sim
        .delete("", "pods", NAMESPACE, "build-pod")
        .unwrap();
    let condition = json!({"type": "Succeeded", "status": "False", "reason": "TaskRunCancelled"});
    let status = json!({"completionTime": "2026-03-01T10:05:00Z", "conditions": [condition]});
    world.merge("tekton.dev", "taskruns", "build", json!({"status": status}));
    assert_eq!(sealed(&world, "build").await, ["one", "two"]);
    let holes = logs(&world).of("build-pod", "step-a", 0).holes();
    assert_eq!(holes.len(), 1, "{holes:?}");
    assert!(holes[0].contains("the pod was deleted"), "{holes:?}");
}

#[tokio::test]
async fn an_evicted_pod_and_its_successor_have_logs() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", "first\n");
    let sim = &world.sim;
    sim.end_container(NAMESPACE, "build-pod", "step-a", 137)
        .unwrap();
    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    world.merge("", "pods", "build-pod", evicted);
    let run = world.run("build").unwrap();
    sim.create(pod(&run, "build-pod-retry1", &["step-a"]))
        .unwrap();
    sim.start_container(NAMESPACE, "build-pod-retry1", "step-a")
        .unwrap();
    sim.write_log(NAMESPACE, "build-pod-retry1", "step-a", "second\n")
        .unwrap();
    sim.end_container(NAMESPACE, "build-pod-retry1", "step-a", 0)
        .unwrap();
    for (pod, text) in [("build-pod", "first"), ("build-pod-retry1", "second")] {
        eventually(|| logs(&world).of(pod, "step-a", 0).sealed).await;
        assert_eq!(logs(&world).of(pod, "step-a", 0).texts(), [text]);
    }
}

#[tokio::test]
async fn a_pod_that_went_while_no_watcher_ran_leaves_a_hole() {
    let mut world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    eventually(|| logs(&world).of("build-pod", "step-a", 0).lines.len() == 1).await;
    world.kill().await;
    write(&world, "build", "two\n");
    finish(&world, "build");
    world
        .sim
        .delete("", "pods", NAMESPACE, "build-pod")
        .unwrap();
    // One of which nothing is stored.
    begin(&world, "other");
    finish(&world, "other");
    world
        .sim
        .delete("", "pods", NAMESPACE, "other-pod")
        .unwrap();
    world.start().await;
    for (name, texts) in [("build", &["one"][..]), ("other", &[][..])] {
        assert_eq!(sealed(&world, name).await, texts);
        let holes = logs(&world).of(&format!("{name}-pod"), "step-a", 0).holes();
        assert_eq!(holes.len(), 1);
        assert!(holes[0].contains("the pod was deleted"), "{holes:?}");
    }
}

#[tokio::test]
async fn a_log_that_is_too_long_ends_with_a_line_that_says_so() {
    let world = World::new(Config {
        logs_max_bytes: 10,
        ..reading(Logs::Follow)
    })
    .await;
    begin(&world, "build");
    write(&world, "build", "1234\n1234\n1234\n");
    assert_eq!(sealed(&world, "build").await, ["1234", "1234"]);
    let stored = logs(&world).of("build-pod", "step-a", 0);
    assert_eq!(stored.holes, [2]);
    assert!(stored.holes()[0].contains("logs_max_bytes"));
}

#[tokio::test]
async fn logs_of_a_namespace_without_room_end_with_a_line_that_says_so() {
    let world = World::new(reading(Logs::Follow)).await;
    begin(&world, "build");
    write(&world, "build", "1234\n");
    eventually(|| logs(&world).of("build-pod", "step-a", 0).lines.len() == 1).await;
    logs(&world).bound(8);
    write(&world, "build", "5678\n");
    write(&world, "build", "9\n");
    assert_eq!(sealed(&world, "build").await, ["1234"]);
    let stored = logs(&world).of("build-pod", "step-a", 0);
    assert_eq!(stored.holes, [1]);
    assert!(stored.holes()[0].contains("as many bytes as the server allows"));
    // What comes after it is not read, and holds up nothing.
    write(&world, "build", "more\n");
    begin(&world, "other");
    write(&world, "other", "long line\n");
    assert_eq!(sealed(&world, "other").await, [""; 0]);
    finish(&world, "build");
    assert_eq!(logs(&world).of("build-pod", "step-a", 0).lines.len(), 2);
}

#[tokio::test]
async fn an_api_server_that_is_busy_is_asked_again() {
    let world = World::new(reading(Logs::Follow)).await;
    let logs_of_pods = |fault: Fault| fault.resource("pods").verb("get");
    world
        .sim
        .faults()
        .plan(logs_of_pods(Fault::status(429)).times(2));
    world
        .sim
        .faults()
        .plan(logs_of_pods(Fault::status(500)).times(2));
    begin(&world, "build");
    write(&world, "build", "one\n");
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, ["one"]);
}

#[tokio::test]
async fn bytes_are_kept_as_they_are_and_long_lines_are_cut() {
    let world = World::new(reading(Logs::Follow)).await;
    let run = world.sim.create(task_run("build")).unwrap();
    world
        .sim
        .create(pod(&run, "build-pod", &["step-a"]))
        .unwrap();
    let sim = &world.sim;
    sim.start_container(NAMESPACE, "build-pod", "step-a")
        .unwrap();
    let mut line = vec![b'x'; 600_000];
    line.extend_from_slice(b"\xff\0\r\n");
    sim.write_log(NAMESPACE, "build-pod", "step-a", &line)
        .unwrap();
    sim.write_log(NAMESPACE, "build-pod", "step-a", "end\n")
        .unwrap();
    finish(&world, "build");
    sealed(&world, "build").await;
    let stored = logs(&world).of("build-pod", "step-a", 0).lines;
    assert_eq!(stored.len(), 4);
    let text: Vec<u8> = stored.iter().flat_map(|(_, text)| text.clone()).collect();
    assert_eq!(text, [&line[..], b"end\n"].concat());
}
