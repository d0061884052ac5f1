//! PipelineRuns with three TaskRuns each, as they begin and as they end.

use std::fmt::Write as _;

use kubesim::Sim;
use serde_json::{Value, json};

/// Objects of one group.
pub const GROUP: usize = 4;
const NAMESPACES: usize = 10;

#[derive(Debug, Clone)]
struct Run {
    plural: &'static str,
    namespace: String,
    name: String,
    begun: Value,
    status: Value,
}

/// A PipelineRun and its TaskRuns.
#[derive(Debug, Clone)]
pub struct Group {
    children: Vec<Run>,
    root: Run,
}

/// Groups of so many objects together.
pub fn groups(objects: usize) -> Vec<Group> {
    (0..objects / GROUP).map(group).collect()
}

/// How many objects these are.
pub fn objects(groups: &[Group]) -> u64 {
    (groups.len() * GROUP) as u64
}

pub fn namespaces() -> impl Iterator<Item = String> {
    (0..NAMESPACES).map(namespace)
}

fn namespace(n: usize) -> String {
    format!("team-{}", n % NAMESPACES)
}

fn uid(group: usize, n: usize) -> String {
    format!("{n:08x}-0000-4000-8000-{group:012x}")
}

impl Group {
    fn all(&self) -> impl Iterator<Item = &Run> {
        [&self.root].into_iter().chain(&self.children)
    }

    /// The UIDs of its objects.
    pub fn uids(&self) -> impl Iterator<Item = &str> {
        self.all()
            .map(|run| run.begun["metadata"]["uid"].as_str().unwrap())
    }

    /// All of it begins.
    pub fn create(&self, sim: &Sim) {
        for run in self.all() {
            sim.load(run.begun.clone()).unwrap();
        }
    }

    /// All of it ends, the PipelineRun last.
    pub fn finish(&self, sim: &Sim) {
        for run in self.children.iter().chain([&self.root]) {
            let status = json!({"status": run.status});
            sim.merge(
                "tekton.dev",
                run.plural,
                &run.namespace,
                &run.name,
                status,
                "controller",
            )
            .unwrap();
        }
    }

    /// All of it is there, and has ended.
    pub fn load(&self, sim: &Sim) {
        for run in self.all() {
            let mut whole = run.begun.clone();
            whole["status"] = run.status.clone();
            sim.load(whole).unwrap();
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

fn steps(pipeline: usize) -> Vec<Value> {
    let step = |n: usize| {
        json!({"name": format!("step-{n}"), "image": format!("registry.example/tools:{pipeline}"),
            "script": script(pipeline, n), "env": [{"name": "HOME", "value": "/tekton/home"}]})
    };
    (0..4).map(step).collect()
}

fn conditions(group: usize) -> Value {
    let (reason, status) = if group.is_multiple_of(5) {
        ("Failed", "False")
    } else {
        ("Succeeded", "True")
    };
    json!([{"type": "Succeeded", "status": status, "reason": reason,
        "lastTransitionTime": "2026-05-01T10:01:02Z", "message": "All Steps have completed executing"}])
}

fn group(n: usize) -> Group {
    let (pipeline, namespace) = (n % 20, namespace(n));
    let name = format!("run-{n:06}");
    let children: Vec<Run> = (1..GROUP)
        .map(|task| task_run(n, task, &name, &namespace))
        .collect();
    let references: Vec<Value> = children
        .iter()
        .map(|child| {
            json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": child.name,
            "pipelineTaskName": "build"})
        })
        .collect();
    let tasks: Vec<Value> = (1..GROUP)
        .map(|task| json!({"name": format!("task-{task}"), "taskSpec": {"steps": steps(pipeline)}}))
        .collect();
    let root = Run {
        plural: "pipelineruns",
        begun: json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"name": name, "namespace": namespace, "uid": uid(n, 0),
                "creationTimestamp": "2026-05-01T10:00:00Z",
                "labels": {"tekton.dev/pipeline": format!("pipeline-{pipeline}")},
                "annotations": {"commit": format!("{:040x}", n * 1_000_003)}},
            "spec": {"pipelineSpec": {"tasks": tasks}},
            "status": {"startTime": "2026-05-01T10:00:02Z"},
        }),
        status: json!({"startTime": "2026-05-01T10:00:02Z", "completionTime": "2026-05-01T10:01:02Z",
            "conditions": conditions(n), "childReferences": references}),
        namespace,
        name,
    };
    Group { children, root }
}

fn task_run(group: usize, task: usize, owner: &str, namespace: &str) -> Run {
    let pipeline = group % 20;
    let name = format!("{owner}-task-{task}");
    let terminated: Vec<Value> = (0..4)
        .map(|step| {
            json!({"name": format!("step-{step}"), "container": format!("step-step-{step}"),
                "imageID": format!("registry.example/tools@sha256:{:064x}", pipeline * 7 + step),
                "terminated": {"exitCode": 0, "reason": "Completed",
                    "containerID": format!("containerd://{:064x}", group * 31 + step),
                    "startedAt": "2026-05-01T10:00:03Z", "finishedAt": "2026-05-01T10:01:00Z"}})
        })
        .collect();
    Run {
        plural: "taskruns",
        begun: json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": name, "namespace": namespace, "uid": uid(group, task),
                "creationTimestamp": "2026-05-01T10:00:00Z",
                "labels": {"tekton.dev/pipeline": format!("pipeline-{pipeline}"),
                    "tekton.dev/pipelineRun": owner, "tekton.dev/pipelineTask": "build"},
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                    "name": owner, "uid": uid(group, 0), "controller": true}]},
            "spec": {"params": [{"name": "revision", "value": format!("rev-{}", group % 10)}],
                "serviceAccountName": "pipeline", "taskSpec": {"steps": steps(pipeline)}},
            "status": {"startTime": "2026-05-01T10:00:02Z"},
        }),
        status: json!({"startTime": "2026-05-01T10:00:02Z", "completionTime": "2026-05-01T10:01:02Z",
            "conditions": conditions(group), "podName": format!("{name}-pod"), "steps": terminated,
            "taskSpec": {"steps": steps(pipeline)}}),
        namespace: namespace.to_owned(),
        name,
    }
}
