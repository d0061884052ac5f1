//! Runs of one pipeline, as Tekton writes them.

use serde_json::{Value, json};

use crate::support::{
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
    server::TestServer,
};

/// The record of a run of the pipeline `release`.
pub(super) fn record(run: &str) -> String {
    format!("shop/results/{run}/records/{run}")
}

/// A run of the pipeline `release` that started in this hour and ended so.
pub(super) fn release(run: &str, hour: u32, revision: &str, reason: &str) -> Value {
    let status = if reason == "Succeeded" {
        "True"
    } else {
        "False"
    };
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": run, "namespace": "shop", "uid": run,
            "creationTimestamp": format!("2026-03-02T{hour:02}:00:00Z"),
            "labels": {"tekton.dev/pipeline": "release"}},
        "spec": {"pipelineRef": {"name": "release"},
            "params": [{"name": "revision", "value": revision}]},
        "status": {
            "startTime": format!("2026-03-02T{hour:02}:00:04Z"),
            "completionTime": format!("2026-03-02T{hour:02}:07:05Z"),
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
        },
    })
}

/// Stores a run of the pipeline `release`.
pub(super) async fn given(server: &TestServer, object: &Value) {
    let run = object["metadata"]["uid"].as_str().unwrap();
    server
        .given_record(&record(run), PIPELINE_RUN, &bytes(object))
        .await;
}

/// A task of a run of the pipeline `release`, which began at the minute of its run and took so many
/// seconds, and whose step `run` ended with this code.
pub(super) fn task_of(run: &Value, task: &str, at: (u32, i64), code: i32) -> Value {
    let owner = run["metadata"]["uid"].as_str().unwrap();
    let made: jiff::Timestamp = run["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let start = made + jiff::SignedDuration::from_mins(at.0.into());
    let end = start + jiff::SignedDuration::from_secs(at.1);
    let (status, reason) = if code == 0 {
        ("True", "Succeeded")
    } else {
        ("False", "Failed")
    };
    let why = if code == 137 {
        "OOMKilled"
    } else {
        "Completed"
    };
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": format!("{owner}-{task}"), "namespace": "shop", "uid": format!("{owner}-{task}"),
            "creationTimestamp": start.to_string(),
            "labels": {"tekton.dev/pipeline": "release", "tekton.dev/pipelineTask": task,
                "tekton.dev/pipelineRun": owner},
            "ownerReferences": [{"kind": "PipelineRun", "name": owner, "uid": owner}]},
        "spec": {"taskRef": {"name": task}},
        "status": {
            "startTime": start.to_string(), "completionTime": end.to_string(),
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason,
                "message": format!("step run of {task} exited")}],
            "steps": [{"name": "run", "imageID": format!("golang@sha256:{owner}"),
                "terminated": {"exitCode": code, "reason": why,
                    "startedAt": start.to_string(), "finishedAt": end.to_string()}}],
        },
    })
}

/// Stores such a task.
pub(super) async fn given_task(
    server: &TestServer,
    run: &Value,
    task: &str,
    at: (u32, i64),
    code: i32,
) {
    given_below(server, run, &task_of(run, task, at, code)).await;
}

/// Stores a run of the pipeline `release` that failed at this hour, because its task `test` ended
/// with this code and said this.
pub(super) async fn given_failure(
    server: &TestServer,
    (run, hour): (&str, u32),
    code: i32,
    message: &str,
) {
    let object = release(run, hour, "a", "Failed");
    let mut task = task_of(&object, "test", (2, 100), code);
    task["status"]["conditions"][0]["message"] = json!(message);
    given(server, &object).await;
    given_below(server, &object, &task).await;
}

async fn given_below(server: &TestServer, run: &Value, task: &Value) {
    let [run, name] = [run, task].map(|object| object["metadata"]["uid"].as_str().unwrap());
    let name = format!("shop/results/{run}/records/{name}");
    server.given_record(&name, TASK_RUN, &bytes(task)).await;
}

/// Two good runs, three bad ones, one that runs, and a good one.
pub(super) async fn history(server: &TestServer) {
    for (run, hour, revision, reason) in [
        ("release-40", 7, "a0", "Succeeded"),
        ("release-41", 8, "a1", "Succeeded"),
        ("release-42", 9, "b2", "Failed"),
        ("release-43", 10, "b3", "PipelineRunTimeout"),
        ("release-44", 11, "b4", "Failed"),
        ("release-45", 12, "b5", "Succeeded"),
    ] {
        let object = release(run, hour, revision, reason);
        given(server, &object).await;
        let (took, code) = if reason == "Succeeded" {
            (110, 0)
        } else {
            (161, 137)
        };
        given_task(server, &object, "build", (0, 60), 0).await;
        given_task(server, &object, "test", (2, took), code).await;
    }
    let mut running = release("release-46", 13, "b6", "Running");
    running["status"] = json!({"startTime": "2026-03-02T13:00:04Z",
        "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]});
    given(server, &running).await;
}
