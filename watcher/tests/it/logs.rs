//! Logs of containers are stored: each line once, in order, and what is missing is said.

mod chaos;
mod denied;
mod ends;
mod holding;
mod memory;
mod resuming;

use hindsight_watcher::config::{Config, Logs, Tuning};
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::{LogStore, NAMESPACE, World, done, eventually, quick, task_run, uid};

/// A watcher that reads logs, and is quick about it.
pub(super) fn reading(logs: Logs) -> Config {
    let tuning = Tuning {
        logs_interval: Duration::from_millis(5),
        logs_settle: Duration::from_millis(50),
        ..quick().tuning
    };
    Config {
        logs,
        tuning,
        ..quick()
    }
}

/// The pod of a TaskRun, with these containers.
pub(super) fn pod(run: &Value, name: &str, containers: &[&str]) -> Value {
    let of = |names: &[&str]| -> Vec<Value> {
        let container = |name: &&str| json!({"name": name, "image": "i"});
        names.iter().map(container).collect()
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {"tekton.dev/taskRun": run["metadata"]["name"]},
            "ownerReferences": [{
                "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": run["metadata"]["name"],
                "uid": run["metadata"]["uid"], "controller": true,
            }],
        },
        "spec": {"nodeName": "n", "initContainers": of(&["prepare"]), "containers": of(containers)},
    })
}

/// Creates a TaskRun with a pod of one step, which runs; returns the UID of the run.
pub(super) fn begin(world: &World, name: &str) -> String {
    let run = world.sim.create(task_run(name)).unwrap();
    let name = format!("{name}-pod");
    world.sim.create(pod(&run, &name, &["step-a"])).unwrap();
    world
        .sim
        .start_container(NAMESPACE, &name, "step-a")
        .unwrap();
    uid(&run)
}

/// The step of a run writes.
pub(super) fn write(world: &World, name: &str, text: &str) {
    let pod = format!("{name}-pod");
    world
        .sim
        .write_log(NAMESPACE, &pod, "step-a", text)
        .unwrap();
}

/// The step of a run ends, and so does the run.
pub(super) fn finish(world: &World, name: &str) {
    let pod = format!("{name}-pod");
    world
        .sim
        .end_container(NAMESPACE, &pod, "step-a", 0)
        .unwrap();
    finish_run(world, name);
}

/// A run ends.
pub(super) fn finish_run(world: &World, name: &str) {
    let status = finished(name);
    world.merge("tekton.dev", "taskruns", name, json!({"status": status}));
}

/// The status of a run whose step ended.
pub(super) fn finished(name: &str) -> Value {
    let mut status = done();
    status["podName"] = format!("{name}-pod").into();
    let ran = json!({"exitCode": 0, "containerID": "c"});
    status["steps"] = json!([{"container": "step-a", "terminated": ran}]);
    status
}

pub(super) fn logs(world: &World) -> &LogStore {
    &world.sink.logs
}

/// Waits until the log of the step of a run is sealed; its lines.
pub(super) async fn sealed(world: &World, name: &str) -> Vec<String> {
    let pod = format!("{name}-pod");
    eventually(|| logs(world).of(&pod, "step-a", 0).sealed).await;
    logs(world).of(&pod, "step-a", 0).texts()
}

#[tokio::test]
async fn lines_are_stored_while_the_container_runs() {
    let world = World::new(reading(Logs::Follow)).await;
    let uid = begin(&world, "build");
    write(&world, "build", "one\ntwo\n");
    let stored = || logs(&world).of("build-pod", "step-a", 0);
    eventually(|| stored().texts() == ["one", "two"]).await;
    assert!(!stored().sealed);
    write(&world, "build", "three\nfour");
    finish(&world, "build");
    assert_eq!(
        sealed(&world, "build").await,
        ["one", "two", "three", "four"]
    );
    assert_eq!(stored().holes(), [""; 0]);
    assert_eq!(
        logs(&world).names(),
        [format!("{NAMESPACE}/results/{uid}/logs/{uid}")]
    );
    let calls = world.sim.calls().resource("pods");
    let reads = calls.clone().filter(|call| call.subresource == "log");
    assert_eq!(reads.count(), 1, "one request for the whole log");
    assert_eq!(
        calls
            .verb("get")
            .filter(|call| call.subresource.is_empty())
            .count(),
        0
    );
}

#[tokio::test]
async fn a_reader_that_is_full_does_not_wait_for_the_interval() {
    let mut config = reading(Logs::Follow);
    config.tuning.logs_interval = Duration::from_secs(1);
    let world = World::new(config).await;
    begin(&world, "build");
    const LINES: usize = 160_000;
    write(
        &world,
        "build",
        &format!("{}\n", "x".repeat(99)).repeat(LINES),
    );
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await.len(), LINES);
}

#[tokio::test]
async fn finished_containers_are_read_once_and_no_others() {
    let world = World::new(reading(Logs::Finished)).await;
    begin(&world, "build");
    write(&world, "build", "one\n");
    begin(&world, "other");
    write(&world, "other", "a\n");
    finish(&world, "other");
    assert_eq!(sealed(&world, "other").await, ["a"]);
    assert_eq!(logs(&world).of("build-pod", "step-a", 0).lines.len(), 0);
    finish(&world, "build");
    assert_eq!(sealed(&world, "build").await, ["one"]);
    let calls = world.sim.calls().resource("pods");
    assert_eq!(calls.filter(|call| call.subresource == "log").count(), 2);
}

#[tokio::test]
async fn init_containers_and_sidecars_have_logs_too() {
    let world = World::new(reading(Logs::Follow)).await;
    let run = world.sim.create(task_run("build")).unwrap();
    world
        .sim
        .create(pod(&run, "p", &["step-a", "sidecar-s"]))
        .unwrap();
    for container in ["prepare", "sidecar-s"] {
        world
            .sim
            .start_container(NAMESPACE, "p", container)
            .unwrap();
        world
            .sim
            .write_log(NAMESPACE, "p", container, container)
            .unwrap();
        world
            .sim
            .end_container(NAMESPACE, "p", container, 0)
            .unwrap();
    }
    for container in ["prepare", "sidecar-s"] {
        eventually(|| logs(&world).of("p", container, 0).sealed).await;
        assert_eq!(logs(&world).of("p", container, 0).texts(), [container]);
    }
}

#[tokio::test]
async fn nothing_is_asked_for_without_the_setting() {
    let world = World::new(reading(Logs::Off)).await;
    begin(&world, "build");
    finish(&world, "build");
    world.annotated("build").await;
    assert_eq!(world.sim.calls().resource("pods").count(), 0);
}

#[tokio::test]
async fn pods_of_the_job_of_a_ray_job_are_read() {
    let mut world = World::without_watcher(reading(Logs::Follow));
    world.sim.install_all(kubesim::Crd::ray());
    let ray = hindsight_run::Kind::named("ray.io", "RayJob").unwrap();
    if !world.config.kinds.contains(&ray) {
        world.config.kinds.push(ray);
    }
    world.start().await;
    let run = world.sim.create(json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob",
        "metadata": {"name": "train", "namespace": NAMESPACE}, "spec": {},
    }));
    let uid = uid(&run.unwrap());
    let log = format!("{NAMESPACE}/results/{uid}/logs/{uid}");
    let submitter = |name: &str, job: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "labels": {"batch.kubernetes.io/job-name": job},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job,
                    "uid": format!("uid-of-{job}"), "controller": true}],
            },
            "spec": {"nodeName": "n", "containers": [{"name": "submitter", "image": "i"}]},
        })
    };
    // A Job of another name is of no run.
    for (pod, job) in [("other-x", "other"), ("train-x", "train")] {
        world.sim.create(submitter(pod, job)).unwrap();
        world
            .sim
            .start_container(NAMESPACE, pod, "submitter")
            .unwrap();
        world
            .sim
            .write_log(NAMESPACE, pod, "submitter", "submitted\n")
            .unwrap();
        world
            .sim
            .end_container(NAMESPACE, pod, "submitter", 0)
            .unwrap();
    }
    eventually(|| logs(&world).of("train-x", "submitter", 0).sealed).await;
    assert_eq!(
        logs(&world).of("train-x", "submitter", 0).texts(),
        ["submitted"]
    );
    assert_eq!(logs(&world).names(), [log]);
}

#[tokio::test]
async fn pods_of_workflows_and_jobs_are_read() {
    let mut world = World::without_watcher(reading(Logs::Follow));
    world.sim.install(kubesim::Crd::argo_workflow());
    world.config.selectors = vec![(
        hindsight_run::Kind::named("batch", "Job").unwrap(),
        "a=b".to_owned(),
    )];
    let job = hindsight_run::Kind::named("batch", "Job").unwrap();
    world.config.kinds.push(job);
    world.start().await;
    for (api, kind, label) in [
        (
            "argoproj.io/v1alpha1",
            "Workflow",
            "workflows.argoproj.io/workflow",
        ),
        ("batch/v1", "Job", "batch.kubernetes.io/job-name"),
    ] {
        let name = kind.to_lowercase();
        let run = world.sim.create(json!({
            "apiVersion": api, "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"a": "b"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never"}}},
        }));
        let run = run.unwrap();
        let mut pod = pod(&run, &name, &["main"]);
        pod["metadata"]["labels"] = json!({label: name});
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!(api);
        pod["metadata"]["ownerReferences"][0]["kind"] = json!(kind);
        world.sim.create(pod).unwrap();
        world.sim.start_container(NAMESPACE, &name, "main").unwrap();
        world
            .sim
            .write_log(NAMESPACE, &name, "main", "hi\n")
            .unwrap();
        eventually(|| logs(&world).of(&name, "main", 0).texts() == ["hi"]).await;
    }
}
