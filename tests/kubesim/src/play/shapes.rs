//! What runs look like at each point of their life: a few recurring pipelines and tasks, whose
//! resolved specs are embedded in the status as real controllers do it.

mod draw;
mod specs;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Outcome;
use crate::clock::seconds;
use specs::{pipeline_spec, task_spec};

pub(crate) use draw::Run;

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

/// A condition of type `Succeeded`.
fn condition(status: &str, reason: &str, message: &str, at: Timestamp) -> Value {
    json!([{
        "type": "Succeeded",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": seconds(at),
    }])
}
