//! What a run is to do: the specs of tasks and pipelines, the same for every run of them.

use serde_json::{Value, json};

use super::{Act, Role};

impl Act {
    /// What it is created with.
    pub(super) fn spec(&self) -> Value {
        let params = json!([{"name": "revision", "value": self.revision}]);
        match self.role {
            Role::PipelineRun(_) => json!({
                "pipelineRef": {"name": self.of},
                "params": params,
                "taskRunTemplate": {"serviceAccountName": "pipeline"},
                "timeouts": {"pipeline": "1h0m0s"},
            }),
            Role::TaskRun => json!({
                "taskRef": {"kind": "Task", "name": self.of},
                "params": params,
                "serviceAccountName": "pipeline",
                "timeout": "1h0m0s",
            }),
            Role::CustomRun => json!({
                "customRef": {"apiVersion": "gates.example.dev/v1", "kind": "Gate", "name": self.of},
                "params": params,
                "serviceAccountName": "default",
            }),
            Role::Workflow => json!({
                "entrypoint": "main",
                "arguments": {"parameters": params},
                "templates": [{
                    "name": "main",
                    "container": {
                        "image": format!("registry.example/{}:2.4", self.of),
                        "command": ["sh", "-c"],
                        "args": [script(self.of, 0)],
                    },
                }],
            }),
        }
    }
}

/// The resolved task: the same for every run of it.
pub(super) fn task_spec(task: &str) -> Value {
    let step = |name: &str, part: usize| {
        json!({
            "name": name,
            "image": format!("registry.example/tools/{task}:1.{part}"),
            "computeResources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
            "env": [
                {"name": "HOME", "value": "/tekton/home"},
                {"name": "REVISION", "value": "$(params.revision)"},
            ],
            "script": script(task, part),
        })
    };
    json!({
        "params": [{"name": "revision", "type": "string"}],
        "results": [{"name": "digest", "type": "string", "description": "digest of what was made"}],
        "steps": [step("prepare", 0), step("run", 1)],
    })
}

pub(super) fn pipeline_spec(tasks: &[&str]) -> Value {
    let tasks: Vec<Value> = tasks
        .iter()
        .enumerate()
        .map(|(position, task)| {
            let mut entry = json!({
                "name": task,
                "params": [{"name": "revision", "value": "$(params.revision)"}],
                "taskSpec": task_spec(task),
            });
            if position > 0 {
                entry["runAfter"] = json!([tasks[position - 1]]);
            }
            entry
        })
        .collect();
    json!({"params": [{"name": "revision", "type": "string"}], "tasks": tasks})
}

/// A shell script of some length that is the same for every run of a task.
fn script(task: &str, part: usize) -> String {
    let mut text = String::from("#!/usr/bin/env bash\nset -euo pipefail\n");
    for line in 0..14 {
        text.push_str(&format!(
            "echo \"{task}: part {part}, line {line}: working on $(params.revision)\" | tee -a /workspace/log-{part}.txt\n"
        ));
    }
    text
}
