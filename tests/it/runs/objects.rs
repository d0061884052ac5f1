//! Runs of one pipeline, as Tekton writes them.

use serde_json::{Value, json};

use crate::support::{
    objects::{PIPELINE_RUN, bytes},
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
