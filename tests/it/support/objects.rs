//! Objects as a cluster would show them.

use serde_json::{Value, json};

pub const TASK_RUN: &str = "tekton.dev/v1.TaskRun";
pub const PIPELINE_RUN: &str = "tekton.dev/v1.PipelineRun";

pub fn task_run(name: &str, reason: &str) -> Value {
    let status = if reason == "Succeeded" {
        "True"
    } else {
        "False"
    };
    json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "TaskRun",
        "metadata": {
            "name": name, "namespace": "ci", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "labels": {"tekton.dev/pipeline": "nightly", "team": "blue"},
        },
        "spec": {"params": [{"name": "revision", "value": "abc"}], "timeout": "1h"},
        "status": {
            "startTime": "2026-03-01T10:00:05Z",
            "completionTime": "2026-03-01T10:03:05Z",
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
        },
    })
}

/// `value` as the bytes of a payload.
pub fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}
