//! TaskRuns of about 10 KB, the same in every run of the bench.

use std::{fmt::Write as _, io::Write as _, path::Path};

use hindsight_proto::v1alpha2 as pb;
use serde_json::json;

#[derive(Debug, Clone)]
pub struct Run {
    result: String,
    id: String,
    pub value: Vec<u8>,
}

impl Run {
    pub fn name(&self) -> String {
        format!("{}/records/{}", self.result, self.id)
    }

    pub fn record(&self) -> pb::Record {
        let data = pb::Any {
            r#type: "tekton.dev/v1.TaskRun".to_owned(),
            value: self.value.clone().into(),
        };
        pb::Record {
            name: self.name(),
            data: Some(data),
            ..pb::Record::default()
        }
    }
}

/// A step's script, one of a few as in real pipelines.
fn script(pipeline: usize, step: usize) -> String {
    let mut script = String::from("#!/usr/bin/env bash\nset -euo pipefail\n");
    for line in 0..12 {
        writeln!(
            script,
            "run-tool --pipeline p{pipeline} --step {step} --phase {line} \"$@\""
        )
        .unwrap();
    }
    script
}

/// `count` runs over 20 pipelines and 10 namespaces; every fifth failed.
pub fn runs(count: usize) -> Vec<Run> {
    some(0..count)
}

pub fn some(numbers: std::ops::Range<usize>) -> Vec<Run> {
    numbers.map(run).collect()
}

fn run(n: usize) -> Run {
    let (pipeline, namespace) = (n % 20, n % 10);
    let uid = format!("00000000-0000-4000-8000-{n:012x}");
    let group = format!("10000000-0000-4000-8000-{:012x}", n / 10);
    let (reason, status) = if n.is_multiple_of(5) {
        ("Failed", "False")
    } else {
        ("Succeeded", "True")
    };
    let steps: Vec<_> = (0..4)
        .map(|step| {
            json!({"name": format!("step-{step}"), "image": format!("registry.example/tools:{pipeline}"),
                "script": script(pipeline, step), "env": [{"name": "HOME", "value": "/tekton/home"}]})
        })
        .collect();
    let terminated: Vec<_> = (0..4)
        .map(|step| {
            json!({"name": format!("step-{step}"), "container": format!("step-step-{step}"),
                "imageID": format!("registry.example/tools@sha256:{:064x}", pipeline * 7 + step),
                "terminated": {"exitCode": 0, "reason": "Completed",
                    "containerID": format!("containerd://{:064x}", n * 31 + step),
                    "startedAt": "2026-05-01T10:00:03Z", "finishedAt": "2026-05-01T10:01:00Z"}})
        })
        .collect();
    let object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": format!("build-{n:05}"), "namespace": format!("team-{namespace}"),
            "uid": uid, "resourceVersion": (1_000 + n).to_string(),
            "creationTimestamp": "2026-05-01T10:00:00Z",
            "labels": {"tekton.dev/pipeline": format!("pipeline-{pipeline}"),
                "tekton.dev/pipelineTask": "build", "app": format!("app-{}", n % 50)},
            "annotations": {"commit": format!("{:040x}", n * 1_000_003)},
            "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                "name": format!("run-{}", n / 10), "uid": group, "controller": true}]},
        "spec": {"params": [{"name": "revision", "value": format!("rev-{}", n % 10)}],
            "serviceAccountName": "pipeline", "taskSpec": {"steps": steps}},
        "status": {"startTime": "2026-05-01T10:00:02Z", "completionTime": "2026-05-01T10:01:02Z",
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason,
                "lastTransitionTime": "2026-05-01T10:01:02Z", "message": "All Steps have completed executing"}],
            "podName": format!("build-{n:05}-pod"), "steps": terminated,
            "taskSpec": {"steps": steps}},
    });
    Run {
        result: format!("team-{namespace}/results/{group}"),
        id: uid,
        value: serde_json::to_vec(&object).unwrap(),
    }
}

/// The names of all results, each once.
pub fn results(runs: &[Run]) -> std::collections::BTreeSet<String> {
    runs.iter().map(|run| run.result.clone()).collect()
}

/// Writes the runs as `kubectl get -o json` prints them.
pub fn write_list(file: &Path, runs: &[Run]) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
    out.write_all(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[")
        .unwrap();
    for (n, run) in runs.iter().enumerate() {
        if n > 0 {
            out.write_all(b",\n").unwrap();
        }
        out.write_all(&run.value).unwrap();
    }
    out.write_all(b"]}").unwrap();
    out.flush().unwrap();
}
