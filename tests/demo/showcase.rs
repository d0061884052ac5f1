//! Runs with a history: a pipeline that broke, one that is flaky, one that became slower, a
//! workflow with many items, and one that waits for hours. The same time gives the same objects.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A task of a run: name, seconds after the start of the run at which it is made, seconds that it
/// takes, how it ends.
#[derive(Debug, Clone)]
struct Task {
    name: String,
    at: i64,
    took: i64,
    end: End,
    after: &'static [&'static str],
}

/// How something ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Good,
    OutOfMemory,
    Exit(i64, &'static str),
    Timeout,
    Cancelled,
    Unfinished,
}

/// One run of a pipeline.
#[derive(Debug)]
struct Release<'a> {
    namespace: &'a str,
    pipeline: &'a str,
    number: i64,
    created: Timestamp,
    revision: String,
    image: &'a str,
    end: End,
    tasks: Vec<Task>,
}

/// All objects, the oldest first.
pub(crate) fn showcase(now: Timestamp) -> Vec<Value> {
    let mut objects = Vec::new();
    for number in 0..44 {
        release(now, number).add_to(&mut objects);
        storefront(now, number).add_to(&mut objects);
    }
    for number in 0..90 {
        nightly(now, number).add_to(&mut objects);
    }
    for number in 0..20 {
        cleanup(now, number).add_to(&mut objects);
    }
    train(now).add_to(&mut objects);
    for number in 0..12 {
        objects.push(etl(now, number));
    }
    // In the order in which a watcher would have stored them.
    objects.sort_by_key(|object| object["metadata"]["creationTimestamp"].to_string());
    objects
}

fn ago(now: Timestamp, minutes: i64) -> Timestamp {
    let whole = now.as_second() - now.as_second().rem_euclid(60);
    Timestamp::from_second(whole - minutes * 60).unwrap_or(now)
}

fn text(time: Timestamp, seconds: i64) -> String {
    (time + SignedDuration::from_secs(seconds)).to_string()
}

/// A number below `below` that looks drawn and is not.
fn drawn(seed: i64, below: i64) -> i64 {
    let mixed = (seed + 11).wrapping_mul(2_654_435_761).wrapping_mul(40_503);
    (mixed >> 13).rem_euclid(below)
}

fn revision(seed: i64) -> String {
    format!(
        "{:08x}{:08x}",
        drawn(seed, 1 << 32),
        drawn(seed + 77, 1 << 32)
    )
}

fn task(name: &str, at: i64, took: i64, end: End, after: &'static [&'static str]) -> Task {
    Task {
        name: name.to_owned(),
        at,
        took,
        end,
        after,
    }
}

/// A run of four every day. The last three fail since an image changed.
fn release(now: Timestamp, number: i64) -> Release<'static> {
    let is_broken = number >= 41;
    let end = match number {
        41.. => End::OutOfMemory,
        12 => End::Timeout,
        23 => End::Cancelled,
        30 => End::Exit(
            1,
            "--- FAIL: TestCheckout (0.31s)\n    cart_test.go:88: want 3 items, got 2",
        ),
        _ => End::Good,
    };
    let build = 150 + drawn(number, 60);
    let test = if is_broken {
        161
    } else {
        105 + drawn(number + 9, 30)
    };
    let mut tasks = vec![
        task("clone", 2, 12, End::Good, &[]),
        task("lint", 16, 48, End::Good, &["clone"]),
        task("build", 16, build, End::Good, &["clone"]),
    ];
    for shard in 1..=6 {
        let name = format!("unit-{shard}");
        let took = 40 + drawn(number * 6 + shard, 50);
        tasks.push(task(&name, 18 + build, took, End::Good, &["build"]));
    }
    tasks.push(task("test", 18 + build, test, end, &["build"]));
    if end == End::Good {
        tasks.push(task("deploy", 22 + build + test, 64, End::Good, &["test"]));
    }
    Release {
        namespace: "shop",
        pipeline: "release",
        number: number + 1,
        created: ago(now, (43 - number) * 353 + 37),
        revision: revision(if number >= 41 { number } else { number / 2 }),
        image: if is_broken {
            "golang:1.26"
        } else {
            "golang:1.25"
        },
        end,
        tasks,
    }
}

/// Fails now and then, and succeeds on the same version an hour later.
fn storefront(now: Timestamp, number: i64) -> Release<'static> {
    let end = match number % 9 {
        4 => End::Exit(
            1,
            "Timeout: locator(\"#cart\") was not visible after 30000 ms",
        ),
        _ => End::Good,
    };
    Release {
        namespace: "shop",
        pipeline: "storefront-checks",
        number: number + 1,
        created: ago(now, (43 - number) * 181 + 64),
        revision: revision(1_000 + number / 3),
        image: "node:24",
        end,
        tasks: vec![
            task("install", 2, 38 + drawn(number, 9), End::Good, &[]),
            task("e2e", 52, 190 + drawn(number + 5, 50), end, &["install"]),
        ],
    }
}

/// Takes half as long again since its sixtieth run.
fn nightly(now: Timestamp, number: i64) -> Release<'static> {
    let slow = if number >= 60 { 3 } else { 2 };
    let index = (600 + drawn(number, 70)) * slow / 2;
    Release {
        namespace: "data",
        pipeline: "search-index",
        number: number + 1,
        created: ago(now, (89 - number) * 120 + 75),
        revision: revision(5_000 + number / 10),
        image: "indexer:3.1",
        end: End::Good,
        tasks: vec![
            task("export", 3, 120 + drawn(number + 3, 25), End::Good, &[]),
            task("index", 152, index, End::Good, &["export"]),
        ],
    }
}

/// A pipeline that never succeeded.
fn cleanup(now: Timestamp, number: i64) -> Release<'static> {
    let end = End::Exit(
        2,
        "error: permission denied: pods.v1 \"preview-118\" is forbidden",
    );
    Release {
        namespace: "infra",
        pipeline: "preview-cleanup",
        number: number + 1,
        created: ago(now, (19 - number) * 720 + 21),
        revision: revision(9_000),
        image: "kubectl:1.34",
        end,
        tasks: vec![task("sweep", 2, 9 + drawn(number, 4), end, &[])],
    }
}

/// Waited hours for an approval, and goes on.
fn train(now: Timestamp) -> Release<'static> {
    Release {
        namespace: "data",
        pipeline: "train-ranking",
        number: 18,
        created: ago(now, 262),
        revision: revision(12_000),
        image: "trainer:0.9",
        end: End::Unfinished,
        tasks: vec![
            task("features", 4, 720, End::Good, &[]),
            task("validate", 728, 95, End::Good, &["features"]),
            task("train", 14_700, 0, End::Unfinished, &["validate"]),
        ],
    }
}

impl Release<'_> {
    fn name(&self) -> String {
        let tail = revision(self.number * 31 + 7);
        format!("{}-{}-{}", self.pipeline, self.number, &tail[..5])
    }

    /// Seconds from start to end.
    fn took(&self) -> i64 {
        let ends = self.tasks.iter().map(|task| task.at + task.took);
        ends.max().unwrap_or_default() + 3
    }

    fn add_to(&self, objects: &mut Vec<Value>) {
        objects.push(self.object());
        for task in &self.tasks {
            objects.push(self.task_run(task));
        }
    }

    fn object(&self) -> Value {
        let name = self.name();
        let mut status = json!({
            "startTime": text(self.created, 1),
            "conditions": [self.condition(self.end, self.took())],
            "pipelineSpec": {"tasks": self.tasks.iter().map(|task| json!({
                "name": task.name, "taskRef": {"name": task.name}, "runAfter": task.after,
            })).collect::<Vec<_>>()},
            "childReferences": self.tasks.iter().map(|task| json!({
                "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
                "name": format!("{name}-{}", task.name), "pipelineTaskName": task.name,
            })).collect::<Vec<_>>(),
        });
        if self.end != End::Unfinished {
            status["completionTime"] = text(self.created, self.took()).into();
        }
        json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {
                "name": name, "namespace": self.namespace, "uid": self.uid(""),
                "creationTimestamp": text(self.created, 0),
                "labels": {
                    "tekton.dev/pipeline": self.pipeline,
                    "pipelinesascode.tekton.dev/sha": self.revision,
                    "team": if self.namespace == "shop" { "web" } else { "platform" },
                },
            },
            "spec": {
                "pipelineRef": {"name": self.pipeline},
                "params": [
                    {"name": "revision", "value": self.revision},
                    {"name": "image", "value": self.image},
                    {"name": "environment", "value": "staging"},
                ],
            },
            "status": status,
        })
    }

    fn uid(&self, task: &str) -> String {
        let seed = task
            .bytes()
            .fold(self.number, |sum, byte| sum * 31 + i64::from(byte));
        let seed = self.pipeline.bytes().fold(seed, |sum, byte| {
            sum.wrapping_mul(33).wrapping_add(i64::from(byte))
        });
        let digits = format!("{}{}", revision(seed), revision(seed + 1));
        format!(
            "{}-{}-4{}-8{}-{}",
            &digits[..8],
            &digits[8..12],
            &digits[13..16],
            &digits[17..20],
            &digits[20..32]
        )
    }

    fn task_run(&self, task: &Task) -> Value {
        let name = self.name();
        let init = 4 + drawn(self.number + task.at, 7);
        let (start, end) = (task.at + 1 + drawn(self.number, 3), task.at + task.took);
        let step = start + init;
        let prepare = (step + 2).min(end.max(step));
        let mut status = json!({
            "startTime": text(self.created, start),
            "conditions": [self.condition(task.end, end)],
        });
        let image = format!(
            "docker.io/library/{}@sha256:{}",
            self.image,
            revision(self.image.len() as i64)
        );
        let (code, reason) = match task.end {
            End::OutOfMemory => (137, "OOMKilled"),
            End::Exit(code, _) => (code, "Error"),
            End::Timeout => (1, "TaskRunTimeout"),
            _ => (0, "Completed"),
        };
        if task.end == End::Unfinished {
            status["steps"] =
                json!([{"name": "run", "running": {"startedAt": text(self.created, step)}}]);
        } else {
            status["completionTime"] = text(self.created, end).into();
            status["steps"] = json!([
                {"name": "prepare", "imageID": image, "terminated": {"exitCode": 0, "reason": "Completed",
                    "startedAt": text(self.created, step), "finishedAt": text(self.created, prepare)}},
                {"name": "run", "imageID": image, "terminated": {"exitCode": code, "reason": reason,
                    "startedAt": text(self.created, prepare), "finishedAt": text(self.created, end)}},
            ]);
        }
        json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {
                "name": format!("{name}-{}", task.name), "namespace": self.namespace,
                "uid": self.uid(&task.name), "creationTimestamp": text(self.created, task.at),
                "labels": {
                    "tekton.dev/pipeline": self.pipeline, "tekton.dev/pipelineRun": name,
                    "tekton.dev/pipelineTask": task.name,
                },
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                    "name": name, "uid": self.uid(""), "controller": true}],
            },
            "spec": {"taskRef": {"name": task.name}, "params": [{"name": "image", "value": self.image}]},
            "status": status,
        })
    }

    fn condition(&self, end: End, at: i64) -> Value {
        let (status, reason, message) = match end {
            End::Good => ("True", "Succeeded", "All Steps have completed executing"),
            End::OutOfMemory => (
                "False",
                "Failed",
                "\"step-run\" exited with code 137: OOMKilled (memory limit 512Mi)",
            ),
            End::Exit(_, message) => ("False", "Failed", message),
            End::Timeout => (
                "False",
                "PipelineRunTimeout",
                "failed to finish within \"1h0m0s\"",
            ),
            End::Cancelled => ("False", "Cancelled", "cancelled by a user"),
            End::Unfinished => (
                "Unknown",
                "Running",
                "Not all Steps have finished executing",
            ),
        };
        json!({"type": "Succeeded", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": text(self.created, at)})
    }
}

/// A workflow of Argo: a fan-out of sixty items, one of which is tried twice.
fn etl(now: Timestamp, number: i64) -> Value {
    let created = ago(now, (11 - number) * 1_440 + 190);
    let name = format!("etl-orders-{}", number + 1);
    let has_failed = number == 5;
    let mut nodes = serde_json::Map::new();
    let mut node = |id: &str,
                    kind: &str,
                    display: &str,
                    phase: &str,
                    at: (i64, i64),
                    children: Vec<String>| {
        let node = json!({"id": id, "name": format!("{name}.{display}"), "displayName": display,
            "type": kind, "phase": phase, "startedAt": text(created, at.0),
            "finishedAt": text(created, at.1), "children": children,
            "message": if phase == "Failed" && kind == "Pod" { "Error (exit code 1): rows with no customer" } else { "" }});
        nodes.insert(id.to_owned(), node);
    };
    let end = if has_failed { "Failed" } else { "Succeeded" };
    let items: Vec<_> = (0..60).map(|item| format!("{name}-{item}")).collect();
    let extract = format!("{name}-extract");
    let group = format!("{name}-load");
    node(
        &name,
        "DAG",
        &name,
        end,
        (2, 700),
        vec![extract.clone(), group.clone()],
    );
    node(
        &extract,
        "Pod",
        "extract",
        "Succeeded",
        (3, 200),
        vec![group.clone()],
    );
    node(&group, "TaskGroup", "load", end, (201, 700), items.clone());
    for (item, id) in items.iter().enumerate() {
        let item = i64::try_from(item).unwrap_or_default();
        let begin = 205 + item / 10 * 80;
        let phase = if has_failed && item == 37 {
            "Failed"
        } else {
            "Succeeded"
        };
        let display = format!("load({item}:2026-11-{:02})", item % 28 + 1);
        node(
            id,
            "Pod",
            &display,
            phase,
            (begin, begin + 40 + drawn(item + number, 36)),
            Vec::new(),
        );
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": name, "namespace": "data", "uid": format!("e0{number:06}-0000-4000-8000-000000000000"),
            "creationTimestamp": text(created, 0),
            "labels": {"workflows.argoproj.io/workflow-template": "etl-orders"}},
        "spec": {"workflowTemplateRef": {"name": "etl-orders"},
            "arguments": {"parameters": [{"name": "day", "value": created.to_string()[..10]}]}},
        "status": {"phase": end, "startedAt": text(created, 2), "finishedAt": text(created, 701),
            "progress": "61/61", "nodes": nodes},
    })
}
