//! The data set that docs/filters.md asks about.

use std::collections::BTreeMap;

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};

use crate::support::{
    TestServer,
    objects::{PIPELINE_RUN, bytes},
};

/// A run of Tekton: kind and name, start and end, status and reason of its condition.
fn run(
    (kind, name): (&str, &str),
    (start, end): (&str, &str),
    (status, reason): (&str, &str),
) -> Value {
    let mut run = json!({
        "apiVersion": "tekton.dev/v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "creationTimestamp": start, "labels": {"tekton.dev/pipeline": "release"},
        },
        "spec": {},
        "status": {
            "startTime": start,
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
        },
    });
    if !end.is_empty() {
        run["status"]["completionTime"] = json!(end);
    }
    run
}

fn pipeline_run(name: &str, times: (&str, &str), end: (&str, &str), commit: &str) -> Value {
    let mut run = run(("PipelineRun", name), times, end);
    run["metadata"]["labels"]["commit"] = json!(commit);
    run["spec"] = json!({
        "pipelineRef": {"name": "release"},
        "params": [{"name": "revision", "value": commit}, {"name": "targets", "value": ["eu", "us"]}],
    });
    run
}

fn releases() -> Vec<Value> {
    let mut first = pipeline_run(
        "release-41",
        ("2026-03-01T10:00:00Z", "2026-03-01T10:12:00Z"),
        ("True", "Succeeded"),
        "a1b2c3",
    );
    first["status"]["results"] =
        json!([{"name": "image", "value": "registry.example/shop@sha256:41"}]);
    let mut second = pipeline_run(
        "release-42",
        ("2026-03-02T10:00:00Z", "2026-03-02T10:07:00Z"),
        ("False", "Failed"),
        "d4e5f6",
    );
    second["status"]["conditions"][0]["message"] =
        json!("Tasks Completed: 2 (Failed: 1, Cancelled 0), Skipped: 1");
    let mut third = pipeline_run(
        "release-43",
        ("2026-03-02T22:30:00Z", "2026-03-02T22:31:00Z"),
        ("False", "Cancelled"),
        "d4e5f6",
    );
    third["metadata"]["annotations"] = json!({"example.com/cancelled-by": "ana"});
    let mut fourth = pipeline_run(
        "release-44",
        ("2026-03-03T08:00:00Z", ""),
        ("Unknown", "Running"),
        "778899",
    );
    fourth["metadata"]["creationTimestamp"] = json!("2026-03-03T07:55:00Z");
    vec![first, second, third, fourth]
}

fn tasks() -> Vec<Value> {
    let mut build = run(
        ("TaskRun", "release-42-build"),
        ("2026-03-02T10:00:02Z", "2026-03-02T10:02:02Z"),
        ("True", "Succeeded"),
    );
    build["spec"] = json!({"taskRef": {"name": "go-build"}});
    build["status"]["taskSpec"] = json!({"steps": [{"name": "compile", "image": "golang:1.24"}]});
    build["status"]["provenance"] = json!({"refSource": {
        "uri": "git+https://git.example/catalog.git", "digest": {"sha1": "9f2c1d"},
        "entryPoint": "go-build.yaml",
    }});
    build["status"]["steps"] = json!([{"name": "compile", "terminated": {"exitCode": 0}}]);
    let mut test = run(
        ("TaskRun", "release-42-test"),
        ("2026-03-02T10:02:05Z", "2026-03-02T10:06:50Z"),
        ("False", "Failed"),
    );
    test["spec"] = json!({"taskRef": {"name": "go-test"}, "retries": 1, "timeout": "30m"});
    test["status"]["conditions"][0]["message"] = json!("\"step-unit\" exited with code 137");
    test["status"]["taskSpec"] = json!({"steps": [{"name": "unit", "image": "golang:1.24"}]});
    test["status"]["steps"] =
        json!([{"name": "unit", "terminated": {"exitCode": 137, "reason": "OOMKilled"}}]);
    test["status"]["retriesStatus"] = json!([{"podName": "release-42-test-pod"}]);
    for task in [&mut build, &mut test] {
        task["metadata"]["labels"]["tekton.dev/pipelineRun"] = json!("release-42");
    }
    vec![build, test]
}

fn others() -> Vec<Value> {
    let mut nightly = run(
        ("PipelineRun", "nightly-7"),
        ("2026-03-03T01:00:00Z", "2026-03-03T02:00:00Z"),
        ("False", "PipelineRunTimeout"),
    );
    nightly["metadata"]["namespace"] = json!("data");
    nightly["metadata"]["labels"] = json!({"tekton.dev/pipeline": "nightly"});
    nightly["spec"] = json!({"pipelineRef": {"name": "nightly"}});
    let mut approve = run(
        ("CustomRun", "approve-3"),
        ("2026-03-01T10:08:00Z", "2026-03-01T10:11:00Z"),
        ("True", "Succeeded"),
    );
    approve["apiVersion"] = json!("tekton.dev/v1beta1");
    approve["spec"] = json!({"customRef": {"kind": "Approval"}});
    let etl = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "etl-9", "namespace": "data", "uid": "uid-etl-9",
            "creationTimestamp": "2026-03-03T03:00:00Z", "labels": {"team": "data"}},
        "spec": {"entrypoint": "main"},
        "status": {"phase": "Failed", "message": "child 'load' failed",
            "startedAt": "2026-03-03T03:00:01Z", "finishedAt": "2026-03-03T03:20:01Z"},
    });
    vec![nightly, approve, etl]
}

/// Names, types and payloads of all records, oldest first.
pub fn records() -> Vec<(String, String, Vec<u8>)> {
    let runs = releases().into_iter().chain(tasks()).chain(others());
    let mut records: Vec<_> = runs
        .map(|run| {
            let text = |pointer: &str| run.pointer(pointer).and_then(Value::as_str).unwrap();
            let name = text("/metadata/name");
            let result = match name {
                "release-42-build" | "release-42-test" => "release-42",
                "approve-3" => "release-41",
                own => own,
            };
            let namespace = text("/metadata/namespace");
            let full = format!("{namespace}/results/{result}/records/{name}");
            let data_type = format!("{}.{}", text("/apiVersion"), text("/kind"));
            (full, data_type, bytes(&run))
        })
        .collect();
    let scan = json!({"kind": "Scan", "score": "7", "limit": null, "count": 3, "ratio": 0.5,
        "found": [{"id": "CVE-1", "level": "high"}, {"id": "CVE-2"}]});
    let of = |id: &str| format!("shop/results/adhoc/records/{id}");
    records.push((of("scan-5"), "example.com/v1.Scan".to_owned(), bytes(&scan)));
    records.push((of("note-6"), "text/plain".to_owned(), b"no JSON".to_vec()));
    records
}

/// Those with a summary: name, type and status of the summary, and its start and end in seconds.
pub const RESULTS: [(&str, &str, i32, i64, i64); 6] = [
    (
        "shop/results/release-41",
        PIPELINE_RUN,
        1,
        1_772_359_200,
        1_772_359_920,
    ),
    (
        "shop/results/release-42",
        PIPELINE_RUN,
        2,
        1_772_445_600,
        1_772_446_020,
    ),
    (
        "shop/results/release-43",
        PIPELINE_RUN,
        4,
        1_772_490_600,
        1_772_490_660,
    ),
    ("shop/results/release-44", PIPELINE_RUN, 0, 1_772_524_800, 0),
    (
        "data/results/nightly-7",
        PIPELINE_RUN,
        3,
        1_772_499_600,
        1_772_503_200,
    ),
    (
        "data/results/etl-9",
        "argoproj.io/v1alpha1.Workflow",
        2,
        1_772_506_801,
        1_772_508_001,
    ),
];

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Stores all of it.
pub async fn given(server: &TestServer) {
    for (name, data_type, status, start, end) in RESULTS {
        let id = name.rsplit('/').next().unwrap();
        let time = |seconds| prost_types::Timestamp { seconds, nanos: 0 };
        let branch = if id == "release-43" {
            "fix/login"
        } else {
            "main"
        };
        let result = pb::Result {
            name: name.to_owned(),
            annotations: texts(&[
                ("object.metadata.name", id),
                (
                    "repo",
                    if name.starts_with("shop") {
                        "example/shop"
                    } else {
                        "example/data"
                    },
                ),
            ]),
            summary: Some(pb::RecordSummary {
                record: format!("{name}/records/{id}"),
                r#type: data_type.to_owned(),
                start_time: Some(time(start)),
                end_time: (end > 0).then(|| time(end)),
                status,
                annotations: texts(&[("branch", branch)]),
            }),
            ..pb::Result::default()
        };
        server.create_result(result).await.unwrap();
    }
    for (name, data_type, value) in records() {
        server.given_record(&name, &data_type, &value).await;
    }
}
