//! Logs from a cluster: the watcher reads them of pods, the server keeps them, and clients of Tekton
//! Results read them when run and pod are gone.

use std::time::Duration;

use kubesim::{Crd, Sim};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{database::each_database, http::Http, program::Program};

const PATIENCE: Duration = Duration::from_secs(60);

/// Creates a TaskRun with a pod of two steps, which both run; returns its UID.
fn begin(sim: &Sim) -> String {
    let run = sim.create(json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "build", "namespace": "ci"}, "spec": {},
    }));
    let run = run.unwrap();
    let container = |name| json!({"name": name, "image": "i"});
    sim.create(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "build-pod", "namespace": "ci",
            "labels": {"tekton.dev/taskRun": "build"},
            "ownerReferences": [{
                "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "build",
                "uid": run["metadata"]["uid"], "controller": true,
            }],
        },
        "spec": {"nodeName": "n", "containers": [container("step-compile"), container("step-test")]},
    }))
    .unwrap();
    for step in ["step-compile", "step-test"] {
        sim.start_container("ci", "build-pod", step).unwrap();
    }
    run["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Both steps end, the second with an error, and so does the run.
fn finish(sim: &Sim) {
    let mut steps = Vec::<Value>::new();
    for (step, code) in [("step-compile", 0), ("step-test", 1)] {
        sim.end_container("ci", "build-pod", step, code).unwrap();
        let ended = json!({"exitCode": code, "containerID": step});
        let name = step.trim_start_matches("step-");
        steps.push(json!({"name": name, "container": step, "terminated": ended}));
    }
    let failed = json!({"type": "Succeeded", "status": "False", "reason": "Failed"});
    let status = json!({
        "podName": "build-pod", "steps": steps, "conditions": [failed],
        "startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:05:00Z",
    });
    let patch = json!({"status": status});
    sim.merge("tekton.dev", "taskruns", "ci", "build", patch, "tekton")
        .unwrap();
}

#[tokio::test]
async fn logs_of_a_run_outlive_it_and_its_pod() {
    for database in each_database().await {
        let sim = Sim::new();
        sim.install_all(Crd::tekton());
        sim.namespace("ci");
        let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let kubeconfig = listening.kubeconfig().display().to_string();
        let (db, url) = ("--db", database.url());
        let arguments = [
            db,
            &url,
            "--metrics-listen=off",
            "--watcher-kubeconfig",
            &kubeconfig,
            "--watcher-logs=follow",
            "--watcher-collect",
            "--watcher-grace=0s",
        ];
        let program = Program::start("all-in-one", &arguments).await;
        let uid = begin(&sim);
        let write = |step: &str, text: &str| sim.write_log("ci", "build-pod", step, text).unwrap();
        write("step-compile", "compiling\n");
        write("step-compile", "\u{1b}[32mdone\u{1b}[0m\n");
        write("step-test", "2 tests\nnot as expected: 3");
        finish(&sim);
        let gone = sim.until(|sim| sim.get("tekton.dev", "taskruns", "ci", "build").is_none());
        timeout(PATIENCE, gone).await.expect("the run is collected");
        drop(sim.delete("", "pods", "ci", "build-pod"));

        let text = "[compile] compiling\n[compile] \u{1b}[32mdone\u{1b}[0m\n\n\
                    [test] 2 tests\n[test] not as expected: 3\n\n";
        let mut http = Http::one(&program.url).await;
        let path = format!("ci/results/{uid}/logs/{uid}");
        for version in ["v1alpha2", "v1alpha3"] {
            let target = format!("/apis/results.tekton.dev/{version}/parents/{path}");
            let reply = http.send("GET", &target, &[], "").await;
            assert_eq!(
                (reply.status, reply.text().as_str()),
                (200, text),
                "{target}"
            );
        }
        let listed = http.get(&format!("ci/results/{uid}/logs"), &[]).await.ok();
        let listed = listed["records"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{listed:?}");
        drop(http);
        let (code, _) = program.terminate().await;
        assert_eq!(code, Some(0));
        database.remove().await;
    }
}
