//! What runs look like at each point of their life: a few recurring pipelines and tasks, whose
//! resolved specs are embedded in the status as real controllers do it.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Mix, Outcome, Plan, condition, random::Random};
use crate::clock::seconds;

const PIPELINES: &[(&str, &[&str])] = &[
    (
        "nightly-release",
        &["fetch-source", "build-image", "publish"],
    ),
    ("integration-tests", &["fetch-source", "run-tests"]),
    ("deploy-staging", &["render-manifests", "apply-manifests"]),
    ("docs-site", &["build-docs"]),
];
const TASKS: &[&str] = &["lint", "unit-tests", "security-scan", "backup-database"];
const CUSTOM: &[&str] = &["approval", "wait-for-window"];
const WORKFLOWS: &[&str] = &["etl", "train-model"];

/// A run with the task runs it owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) main: Act,
    pub(crate) children: Vec<Act>,
    /// How long it claims to have taken.
    pub(crate) seconds: u32,
}

/// The part of one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Act {
    role: Role,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) outcome: Outcome,
    /// The pipeline or task it runs.
    of: &'static str,
    revision: String,
    number: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    PipelineRun(&'static [&'static str]),
    TaskRun,
    CustomRun,
    Workflow,
}

/// From when to when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) created: Timestamp,
    pub(crate) finished: Timestamp,
}

impl Run {
    /// The `number`th run of a plan; `None` when no kind may be drawn.
    pub(crate) fn draw(random: &mut Random, number: usize, plan: &Plan, mix: &Mix) -> Option<Self> {
        let total = mix.pipeline_runs + mix.task_runs + mix.custom_runs + mix.workflows;
        if total == 0 {
            return None;
        }
        let mut drawn = random.below(total);
        let mut falls_in = |weight: u32| {
            let inside = drawn < weight;
            drawn = drawn.wrapping_sub(weight);
            inside
        };
        let (role, of) = if falls_in(mix.pipeline_runs) {
            let (pipeline, tasks) = random.one(PIPELINES)?;
            (Role::PipelineRun(tasks), *pipeline)
        } else if falls_in(mix.task_runs) {
            (Role::TaskRun, *random.one(TASKS)?)
        } else if falls_in(mix.custom_runs) {
            (Role::CustomRun, *random.one(CUSTOM)?)
        } else {
            (Role::Workflow, *random.one(WORKFLOWS)?)
        };
        let outcome = match random.below(100) {
            0..78 => Outcome::Succeeded,
            78..90 => Outcome::Failed,
            90..95 => Outcome::Cancelled,
            _ => Outcome::TimedOut,
        };
        let namespace = random
            .one(&plan.namespaces)
            .cloned()
            .unwrap_or_else(|| "default".into());
        let uid = random.uid();
        let revision = format!(
            "{:016x}{:016x}{:08x}",
            random.next(),
            random.next(),
            random.below(u32::MAX)
        );
        let name = format!("{of}-{number:05}");
        let main = Act {
            role,
            name,
            namespace,
            uid,
            outcome,
            of,
            revision,
            number,
        };
        let tasks = if let Role::PipelineRun(tasks) = role {
            tasks
        } else {
            &[]
        };
        let children = tasks
            .iter()
            .enumerate()
            .map(|(position, task)| Act {
                role: Role::TaskRun,
                name: format!("{}-{task}", main.name),
                uid: random.uid(),
                outcome: if position + 1 == tasks.len() {
                    outcome
                } else {
                    Outcome::Succeeded
                },
                of: task,
                ..main.clone()
            })
            .collect();
        let told = plan.told.end().saturating_sub(*plan.told.start());
        let seconds = plan.told.start() + random.below(told.saturating_add(1));
        Some(Self {
            main,
            children,
            seconds,
        })
    }

    /// When the child at `position` begins, and the one before it has ended.
    pub(crate) fn share_of(&self, created: Timestamp, position: usize) -> Timestamp {
        let parts = i64::try_from(self.children.len().max(1)).unwrap_or(1);
        let position = i64::try_from(position).unwrap_or(0);
        created + SignedDuration::from_secs(i64::from(self.seconds) * position / parts)
    }
}

impl Act {
    pub(crate) fn group(&self) -> &'static str {
        match self.role {
            Role::Workflow => "argoproj.io",
            _ => "tekton.dev",
        }
    }

    pub(crate) fn plural(&self) -> &'static str {
        match self.role {
            Role::PipelineRun(_) => "pipelineruns",
            Role::TaskRun => "taskruns",
            Role::CustomRun => "customruns",
            Role::Workflow => "workflows",
        }
    }

    fn types(&self) -> (&'static str, &'static str) {
        match self.role {
            Role::PipelineRun(_) => ("tekton.dev/v1", "PipelineRun"),
            Role::TaskRun => ("tekton.dev/v1", "TaskRun"),
            Role::CustomRun => ("tekton.dev/v1beta1", "CustomRun"),
            Role::Workflow => ("argoproj.io/v1alpha1", "Workflow"),
        }
    }

    pub(crate) fn creator(&self) -> &'static str {
        "kubectl-create"
    }

    /// Who moves it on.
    pub(crate) fn controller(&self) -> &'static str {
        match self.role {
            Role::Workflow => "workflow-controller",
            _ => "tekton-pipelines-controller",
        }
    }

    /// The object as it is created.
    pub(crate) fn creation(&self, at: Timestamp, owner: Option<&Self>) -> Value {
        let (api_version, kind) = self.types();
        let mut labels = json!({"app.kubernetes.io/managed-by": self.controller()});
        let mut metadata = json!({
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "creationTimestamp": seconds(at),
            "annotations": {
                "pipelinesascode.tekton.dev/sha": self.revision,
                "pipelinesascode.tekton.dev/repository": format!("org/repo-{}", self.number % 17),
            },
        });
        match self.role {
            Role::PipelineRun(_) => labels["tekton.dev/pipeline"] = self.of.into(),
            Role::TaskRun => labels["tekton.dev/task"] = self.of.into(),
            Role::CustomRun | Role::Workflow => {}
        }
        if let Some(owner) = owner {
            let (owner_version, owner_kind) = owner.types();
            labels["tekton.dev/pipeline"] = owner.of.into();
            labels["tekton.dev/pipelineRun"] = owner.name.as_str().into();
            labels["tekton.dev/pipelineTask"] = self.of.into();
            labels["tekton.dev/memberOf"] = "tasks".into();
            metadata["ownerReferences"] = json!([{
                "apiVersion": owner_version,
                "kind": owner_kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }]);
        }
        metadata["labels"] = labels;
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": self.spec()})
    }

    fn spec(&self) -> Value {
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

    /// The patch with which it begins to run.
    pub(crate) fn begin(&self, span: Span) -> Value {
        let start = seconds(span.created);
        match self.role {
            Role::Workflow => json!({
                "metadata": {"labels": {"workflows.argoproj.io/phase": "Running"}},
                "status": {"phase": "Running", "startedAt": start, "finishedAt": null, "progress": "0/1"},
            }),
            _ => {
                let message = "Not all Steps in the Task have finished executing";
                let mut status = json!({
                    "conditions": condition("Unknown", "Running", message, span.created),
                    "startTime": start,
                });
                match self.role {
                    Role::PipelineRun(tasks) => status["pipelineSpec"] = pipeline_spec(tasks),
                    Role::TaskRun => {
                        status["podName"] = format!("{}-pod", self.name).into();
                        status["taskSpec"] = task_spec(self.of);
                    }
                    Role::CustomRun | Role::Workflow => {}
                }
                json!({"status": status})
            }
        }
    }

    /// The patch with which somebody asks for a stop, before the end of a cancelled run.
    pub(crate) fn stop_order(&self) -> Option<Value> {
        let order = match self.role {
            Role::PipelineRun(_) => json!({"status": "Cancelled"}),
            Role::TaskRun => json!({"status": "TaskRunCancelled"}),
            Role::CustomRun => json!({"status": "RunCancelled"}),
            Role::Workflow => json!({"shutdown": "Stop"}),
        };
        (self.outcome == Outcome::Cancelled).then(|| json!({"spec": order}))
    }

    /// The patch with which it ends.
    pub(crate) fn end(&self, span: Span) -> Value {
        if self.role == Role::Workflow {
            return self.workflow_end(span);
        }
        let (reason, message) = self.verdict();
        let state = if self.outcome == Outcome::Succeeded {
            "True"
        } else {
            "False"
        };
        let mut status = json!({
            "conditions": condition(state, reason, &message, span.finished),
            "completionTime": seconds(span.finished),
        });
        match self.role {
            Role::PipelineRun(tasks) => {
                status["childReferences"] = tasks
                    .iter()
                    .map(|task| {
                        json!({
                            "apiVersion": "tekton.dev/v1",
                            "kind": "TaskRun",
                            "name": format!("{}-{task}", self.name),
                            "pipelineTaskName": task,
                        })
                    })
                    .collect();
            }
            Role::TaskRun => {
                status["steps"] = self.steps(span);
                if self.outcome == Outcome::Succeeded {
                    let digest = format!("sha256:{}{}", self.revision, &self.revision[..24]);
                    status["results"] =
                        json!([{"name": "digest", "type": "string", "value": digest}]);
                }
            }
            Role::CustomRun | Role::Workflow => {}
        }
        json!({"status": status})
    }

    fn verdict(&self) -> (&'static str, String) {
        let pipeline = matches!(self.role, Role::PipelineRun(_));
        match (self.outcome, self.role) {
            (Outcome::Succeeded, _) if pipeline => (
                "Succeeded",
                "Tasks Completed: all (Failed: 0, Cancelled 0), Skipped: 0".into(),
            ),
            (Outcome::Succeeded, Role::CustomRun) => ("Succeeded", "the gate opened".into()),
            (Outcome::Succeeded, _) => ("Succeeded", "All Steps have completed executing".into()),
            (Outcome::Failed, _) if pipeline => (
                "Failed",
                "Tasks Completed: all (Failed: 1, Cancelled 0), Skipped: 0".into(),
            ),
            (Outcome::Failed, Role::CustomRun) => ("Failed", "the gate stayed shut".into()),
            (Outcome::Failed, _) => (
                "Failed",
                "\"step-run\" exited with code 1 (image: \"registry.example/tools\")".into(),
            ),
            (Outcome::Cancelled, _) if pipeline => (
                "Cancelled",
                format!("PipelineRun \"{}\" was cancelled", self.name),
            ),
            (Outcome::Cancelled, Role::CustomRun) => ("CustomRunCancelled", "cancelled".into()),
            (Outcome::Cancelled, _) => (
                "TaskRunCancelled",
                format!("TaskRun \"{}\" was cancelled", self.name),
            ),
            (Outcome::TimedOut, _) if pipeline => (
                "PipelineRunTimeout",
                format!(
                    "PipelineRun \"{}\" failed to finish within \"1h0m0s\"",
                    self.name
                ),
            ),
            (Outcome::TimedOut, Role::CustomRun) => ("CustomRunTimedOut", "timed out".into()),
            (Outcome::TimedOut, _) => (
                "TaskRunTimeout",
                format!(
                    "TaskRun \"{}\" failed to finish within \"1h0m0s\"",
                    self.name
                ),
            ),
        }
    }

    fn steps(&self, span: Span) -> Value {
        let code = i32::from(self.outcome != Outcome::Succeeded);
        let step = |name: &str, code: i32| {
            json!({
                "name": name,
                "container": format!("step-{name}"),
                "imageID": format!("registry.example/tools/{}@sha256:{}", self.of, self.revision),
                "terminated": {
                    "exitCode": code,
                    "reason": if code == 0 { "Completed" } else { "Error" },
                    "startedAt": seconds(span.created),
                    "finishedAt": seconds(span.finished),
                    "containerID": format!("containerd://{}", self.uid),
                },
            })
        };
        json!([step("prepare", 0), step("run", code)])
    }

    fn workflow_end(&self, span: Span) -> Value {
        let (phase, message) = match self.outcome {
            Outcome::Succeeded => ("Succeeded", None),
            Outcome::Failed => ("Failed", Some("Error (exit code 7)")),
            Outcome::Cancelled => ("Failed", Some("Stopped with strategy 'Stop'")),
            Outcome::TimedOut => ("Failed", Some("Step exceeded its deadline")),
        };
        let node = json!({
            "id": self.name,
            "name": self.name,
            "displayName": self.of,
            "type": "Pod",
            "templateName": "main",
            "phase": phase,
            "message": message,
            "startedAt": seconds(span.created),
            "finishedAt": seconds(span.finished),
        });
        json!({
            "metadata": {"labels": {
                "workflows.argoproj.io/phase": phase,
                "workflows.argoproj.io/completed": "true",
            }},
            "status": {
                "phase": phase,
                "message": message,
                "finishedAt": seconds(span.finished),
                "progress": "1/1",
                "nodes": {self.name.as_str(): node},
            },
        })
    }
}

/// The resolved task: the same for every run of it.
fn task_spec(task: &str) -> Value {
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

fn pipeline_spec(tasks: &[&str]) -> Value {
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
