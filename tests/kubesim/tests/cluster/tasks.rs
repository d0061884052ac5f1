//! TaskRuns that the simulated Tekton runs, and PipelineRuns that it leaves to others.

use std::time::Duration;

use kubesim::{Crd, Sim};
use serde_json::{Value, json};
use tokio::time::timeout;

fn task_run(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"taskRef": {"name": "clone"}},
    })
}

fn status(sim: &Sim, plural: &str, name: &str) -> Value {
    let run = sim.get("tekton.dev", plural, "default", name).unwrap();
    run["status"].clone()
}

fn reason(sim: &Sim, plural: &str, name: &str) -> String {
    let reason = &status(sim, plural, name)["conditions"][0]["reason"];
    reason.as_str().unwrap_or_default().to_owned()
}

async fn until(sim: &Sim, plural: &str, name: &str, wanted: &str) {
    let is_it = |sim: &Sim| reason(sim, plural, name) == wanted;
    timeout(Duration::from_secs(20), sim.until(is_it))
        .await
        .unwrap();
}

#[tokio::test]
async fn task_runs_end_as_their_annotations_say_or_once_they_are_cancelled() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    let _runner = sim.run_tasks();
    let results = json!([{"name": "digest", "value": "sha256:1"}]);
    for (name, annotations) in [
        ("good", json!({"kubesim.dev/results": results.to_string()})),
        ("bad", json!({"kubesim.dev/outcome": "fail"})),
        ("long", json!({"kubesim.dev/outcome": "run"})),
    ] {
        sim.create(task_run(name, &annotations)).unwrap();
    }
    until(&sim, "taskruns", "good", "Succeeded").await;
    assert_eq!(status(&sim, "taskruns", "good")["results"], results);
    until(&sim, "taskruns", "bad", "Failed").await;
    until(&sim, "taskruns", "long", "Running").await;
    let cancel = json!({"spec": {"status": "TaskRunCancelled"}});
    sim.merge("tekton.dev", "taskruns", "default", "long", cancel, "test")
        .unwrap();
    until(&sim, "taskruns", "long", "TaskRunCancelled").await;
    let ended = status(&sim, "taskruns", "long");
    assert!(ended["startTime"].is_string() && ended["completionTime"].is_string());
}

#[tokio::test]
async fn pipeline_runs_that_others_manage_are_left_to_them() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    for (name, by) in [("others", json!("example.dev/x")), ("own", Value::Null)] {
        sim.create(json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"managedBy": by, "pipelineSpec": {"tasks": [{"name": "a", "taskRef": {"name": "clone"}}]}},
        }))
        .unwrap();
    }
    let _runner = sim.run_pipelines();
    until(&sim, "pipelineruns", "own", "Succeeded").await;
    assert!(status(&sim, "pipelineruns", "others").is_null());
}
