//! One run and its result, that filters are written for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::{Etag, Payload, Record, RunResult, Summary};

/// The time that an RFC 3339 text says.
pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a sample is well formed")
}

/// A record of this name with this payload.
pub fn record(name: &str, data_type: &str, value: &[u8]) -> Record {
    Record {
        name: name.parse().expect("a sample is well formed"),
        uid: "record-uid".to_owned(),
        etag: Etag::from_text("e"),
        create_time: time("2026-03-01T10:00:00Z"),
        update_time: time("2026-03-01T10:05:00Z"),
        data: Some(Payload::new(data_type.to_owned(), value.to_vec().into())),
    }
}

/// A finished, failed TaskRun of a nightly pipeline.
pub fn task_run() -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {
            "name": "nightly-build", "namespace": "ci", "uid": "u-1",
            "creationTimestamp": "2026-03-01T09:00:00Z",
            "labels": {"tekton.dev/pipelineRun": "nightly", "tier": "5", "app": "shop"},
            "annotations": {"build.note": "a % of _ it"},
        },
        "spec": {
            "taskRef": {"name": "build"}, "retries": 3, "timeout": "1h0m0s", "ratio": 0.5,
            "debug": true, "none": null,
            "params": [
                {"name": "env", "value": "prod"},
                {"name": "count", "value": "7"},
                {"name": "flags", "value": ["fast", "loud"]}],
        },
        "status": {
            "startTime": "2026-03-01T09:00:01Z", "completionTime": "2026-03-01T09:10:01Z",
            "conditions": [
                {"type": "Succeeded", "status": "False", "reason": "Failed",
                 "message": "exit code 1"},
                {"type": "Ready", "status": "True"}],
            "steps": [
                {"name": "clone", "terminated": {"exitCode": 0}},
                {"name": "compile", "terminated": {"exitCode": 1}}],
        },
    })
}

/// The record of [`task_run`].
pub fn task_record() -> Record {
    let body = task_run().to_string();
    record(
        "ci/results/r-1/records/u-1",
        "tekton.dev/v1.TaskRun",
        body.as_bytes(),
    )
}

/// The result that [`task_record`] belongs to.
pub fn result() -> RunResult {
    RunResult {
        name: "ci/results/r-1".parse().expect("a sample is well formed"),
        uid: "result-uid".to_owned(),
        etag: Etag::from_text("e"),
        create_time: time("2026-03-01T10:00:00Z"),
        update_time: time("2026-03-01T10:05:00Z"),
        annotations: texts(&[("repo", "tektoncd/results"), ("plain", "x")]),
        summary: Some(Summary {
            record: "ci/results/r-1/records/u-1"
                .parse()
                .expect("a sample is well formed"),
            data_type: "tekton.dev/v1.TaskRun".to_owned(),
            start_time: Some(time("2026-03-01T09:00:01Z")),
            end_time: None,
            status: 3,
            annotations: texts(&[("branch", "main")]),
        }),
    }
}

/// A map of these pairs.
pub fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
