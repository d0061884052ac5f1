//! Objects of a run of the pipeline `release`, as Tekton writes them.

use serde_json::{Value, json};

/// So many seconds after the run was made.
pub(in super::super) fn at(seconds: i64) -> String {
    let start: jiff::Timestamp = "2026-03-02T14:02:11Z".parse().unwrap();
    (start + jiff::SignedDuration::from_secs(seconds)).to_string()
}

pub(in super::super) fn pipeline_run() -> Value {
    let task = |name: &str, after: &[&str]| json!({"name": name, "runAfter": after});
    let child = |kind: &str, task: &str| json!({"kind": kind, "name": format!("release-42-{task}"), "pipelineTaskName": task});
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "release-42", "namespace": "shop", "uid": "release-42",
            "creationTimestamp": at(-4)},
        "spec": {"pipelineRef": {"name": "release"}},
        "status": {
            "startTime": at(0), "completionTime": at(420),
            "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed",
                "message": "Tasks Completed: 4 (Failed: 1, Cancelled 0), Skipped: 1"}],
            "childReferences": [child("TaskRun", "build"), child("TaskRun", "lint"),
                child("TaskRun", "test"), child("TaskRun", "report"), child("CustomRun", "approve")],
            "skippedTasks": [{"name": "deploy", "reason": "Parent Tasks were skipped"}],
            "pipelineSpec": {
                "tasks": [task("build", &[]), task("lint", &[]), task("test", &["build"]),
                    task("approve", &["test"]), task("deploy", &["test", "approve"])],
                "finally": [task("report", &[])],
            },
        },
    })
}

/// A task that was made 2 seconds before it began; its step `run` ends with the code.
pub(in super::super) fn task_run(task: &str, (from, to): (i64, i64), code: Option<i32>) -> Value {
    let (status, reason) = match code {
        None => ("True", "Succeeded"),
        Some(_) => ("False", "Failed"),
    };
    let why = if code.is_some() {
        "OOMKilled"
    } else {
        "Completed"
    };
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": format!("release-42-{task}"), "namespace": "shop", "uid": task,
            "creationTimestamp": at(from - 2),
            "labels": {"tekton.dev/pipelineTask": task},
            "ownerReferences": [{"kind": "PipelineRun", "name": "release-42", "uid": "release-42"}]},
        "status": {
            "startTime": at(from), "completionTime": at(to),
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
            "steps": [
                {"name": "prepare", "terminated": {"exitCode": 0, "reason": "Completed",
                    "startedAt": at(from + 12), "finishedAt": at(from + 12)}},
                {"name": "run", "terminated": {"exitCode": code.unwrap_or(0), "reason": why,
                    "message": "[{\"key\":\"digest\",\"value\":\"sha256:0\"}]",
                    "startedAt": at(from + 12), "finishedAt": at(to)}},
            ],
        },
    })
}
