//! Delegated PipelineRuns: what their children are, and how they end.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::pipeline::{
    Child, ChildKind, ChildName, ChildSeen, Next, Pass, PipelineRun, child_name,
};

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn object(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["managedBy"] = json!("hindsight.dev/pipelinerun");
    json!({
        "metadata": {"name": "release", "namespace": "ci", "uid": "pr-uid",
            "labels": {"team": "build"},
            "annotations": {
                "results.tekton.dev/result": "ci/results/pr-uid",
                "results.tekton.dev/record": "ci/results/pr-uid/records/pr-uid",
                "hindsight.dev/stored-sha256": "1", "note": "x",
            }},
        "spec": spec,
    })
}

pub(super) fn tasks(tasks: &Value) -> Value {
    json!({"pipelineSpec": {"tasks": tasks}})
}

pub(super) fn steps(name: &str, after: &[&str]) -> Value {
    json!({"name": name, "runAfter": after, "taskSpec": {"steps": [{"image": "busybox"}]}})
}

/// A cluster with one PipelineRun, and a controller that sees everything at once.
pub(super) struct World {
    pub(super) run: Value,
    pub(super) children: Vec<Value>,
    pub(super) now: Timestamp,
    pub(super) events: Vec<&'static str>,
    writes: u32,
}

fn kind(child: &ChildName) -> &'static str {
    child.kind.kind()
}

impl World {
    pub(super) fn new(spec: &Value) -> Self {
        Self {
            run: object(spec),
            children: Vec::new(),
            now: now(),
            events: Vec::new(),
            writes: 0,
        }
    }

    /// Passes until there is nothing to do; returns when there is again.
    pub(super) fn settle(&mut self) -> Option<Timestamp> {
        let mut pass = Pass::new(self.read());
        for name in pass.names() {
            if let ChildSeen::There(child) = self.see(&name) {
                pass.knows(name, child);
            }
        }
        for _ in 0..200 {
            match pass.next(self.now) {
                Next::Rest(due) => return due,
                Next::Reread => pass.has(self.read()),
                Next::Look(name) => pass.saw(&name, self.see(&name)),
                Next::Write { status, event } => {
                    self.run["status"] = status.value();
                    self.events.extend(event.map(|event| event.reason));
                    self.writes += 1;
                    pass.wrote(self.read());
                }
                Next::Create { child, manifest } => {
                    assert_eq!(manifest["kind"], kind(&child));
                    assert_eq!(manifest["metadata"]["name"], child.name.as_str());
                    let mut made = manifest;
                    made["metadata"]["uid"] = json!(format!("uid-of-{}", child.name));
                    self.children.push(made);
                    pass.saw(&child, self.see(&child));
                }
                Next::Cancel {
                    child,
                    uid,
                    message,
                } => {
                    let made = self.child(&child.name);
                    made["spec"]["status"] = json!(child.kind.cancelled());
                    made["spec"]["statusMessage"] = json!(message);
                    pass.cancelled(&uid);
                }
            }
        }
        panic!("it does not settle: {}", self.run);
    }

    fn read(&self) -> PipelineRun {
        PipelineRun::read(&self.run).unwrap()
    }

    fn see(&self, name: &ChildName) -> ChildSeen {
        let mut children = self.children.iter();
        let found = children.find(|child| child["metadata"]["name"] == name.name.as_str());
        found.map_or(ChildSeen::Gone, |child| {
            ChildSeen::There(Child::read(child).unwrap())
        })
    }

    fn child(&mut self, name: &str) -> &mut Value {
        let mut children = self.children.iter_mut();
        children
            .find(|child| child["metadata"]["name"] == name)
            .unwrap()
    }

    pub(super) fn of(&mut self, task: &str) -> &mut Value {
        let name = child_name(&self.read(), task);
        self.child(&name)
    }

    /// The run of a task ends with these results.
    pub(super) fn end(&mut self, task: &str, status: &str, reason: &str, results: &Value) {
        self.of(task)["status"] = json!({"results": results, "conditions": [
            {"type": "Succeeded", "status": status, "reason": reason},
        ]});
        self.settle();
    }

    pub(super) fn succeed(&mut self, task: &str) {
        self.end(task, "True", "Succeeded", &json!([]));
    }

    pub(super) fn started(&self) -> Vec<&str> {
        let label = "tekton.dev/pipelineTask";
        let children = self.children.iter();
        children
            .map(|child| child["metadata"]["labels"][label].as_str().unwrap())
            .collect()
    }

    pub(super) fn condition(&self) -> (&str, &str, &str) {
        let condition = &self.run["status"]["conditions"][0];
        let text = |field: &str| condition[field].as_str().unwrap();
        (text("status"), text("reason"), text("message"))
    }
}

#[test]
fn t61_07_a_custom_task_is_copied_as_it_is() {
    let embedded = json!({
        "apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop",
        "metadata": {"labels": {"a": "b"}}, "spec": {"anything": ["$(params.x)", 1, null]},
    });
    let mut spec = tasks(&json!([
        {"name": "loop", "taskSpec": embedded, "retries": 1, "timeout": "5m",
            "params": [{"name": "word", "value": "$(params.words[*])"}]},
        {"name": "named", "taskRef": {"apiVersion": "example.dev/v1", "kind": "Gate", "name": "g"}},
    ]));
    spec["params"] = json!([{"name": "words", "value": ["jump", "land"]}]);
    spec["taskRunTemplate"] =
        json!({"serviceAccountName": "bot", "podTemplate": {"hostNetwork": true}});
    let mut world = World::new(&spec);
    world.settle();
    let made = world.of("loop");
    assert_eq!(made["apiVersion"], "tekton.dev/v1beta1");
    assert_eq!(
        made["spec"],
        json!({
            "customSpec": embedded, "retries": 1, "timeout": "5m", "serviceAccountName": "bot",
            "params": [{"name": "word", "value": ["jump", "land"]}],
        })
    );
    let named = json!({"apiVersion": "example.dev/v1", "kind": "Gate", "name": "g"});
    assert_eq!(
        world.of("named")["spec"],
        json!({"customRef": named, "serviceAccountName": "bot"})
    );
}

#[test]
fn metadata_are_handed_down_as_tekton_does() {
    let mut task = steps("a", &[]);
    task["taskSpec"]["metadata"] = json!({"labels": {"team": "own", "tier": "1"}});
    task["taskSpec"]["spec"] = Value::Null;
    let mut spec = tasks(&json!([task]));
    spec["taskRunTemplate"] =
        json!({"serviceAccountName": "bot", "podTemplate": {"hostNetwork": true}});
    spec["timeouts"] = json!({"pipeline": "3h", "tasks": "2h"});
    let mut world = World::new(&spec);
    world.settle();
    let made = world.of("a").clone();
    let metadata = &made["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({
            "team": "build", "tier": "1", "tekton.dev/pipeline": "release",
            "tekton.dev/pipelineRun": "release", "tekton.dev/pipelineRunUID": "pr-uid",
            "tekton.dev/pipelineTask": "a", "tekton.dev/memberOf": "tasks",
            "hindsight.dev/pipeline-run-uid": "pr-uid",
        })
    );
    assert_eq!(
        metadata["annotations"],
        json!({"note": "x", "results.tekton.dev/result": "ci/results/pr-uid"})
    );
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": "release",
            "uid": "pr-uid", "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(
        made["spec"],
        json!({
            "taskSpec": {"steps": [{"image": "busybox"}]}, "serviceAccountName": "bot",
            "podTemplate": {"hostNetwork": true}, "timeout": "2h",
        })
    );
}

#[test]
fn tasks_run_in_order_and_results_reach_those_behind() {
    let mut first = steps("first", &[]);
    first["taskSpec"]["results"] = json!([{"name": "list", "type": "array"}, {"name": "id"}]);
    let mut last = steps("last", &["other"]);
    last["displayName"] = json!("The last of $(context.pipeline.name)");
    last["params"] = json!([
        {"name": "id", "value": "id-$(tasks.first.results.id)"},
        {"name": "second", "value": "$(tasks.first.results.list[1])"},
        {"name": "list", "value": ["$(tasks.first.results.list[*])", "c"]},
    ]);
    let mut spec = tasks(&json!([last, first, {"name": "other", "taskRef": {"name": "x"}}]));
    spec["pipelineSpec"]["results"] = json!([
        {"name": "id", "value": "$(tasks.first.results.id)"},
        {"name": "all", "value": ["$(tasks.first.results.list[*])"]},
    ]);
    let mut world = World::new(&spec);
    assert_eq!(
        world.settle(),
        Some("2026-03-01T11:00:00Z".parse().unwrap())
    );
    assert_eq!(world.started(), ["first", "other"]);
    let running = "Tasks Completed: 0 (Failed: 0, Cancelled 0), Incomplete: 3, Skipped: 0";
    assert_eq!(world.condition(), ("Unknown", "Running", running));
    let results = json!([{"name": "id", "value": "7"}, {"name": "list", "type": "array", "value": ["a", "b"]}]);
    world.end("first", "True", "Succeeded", &results);
    assert_eq!(world.started(), ["first", "other"]);
    world.succeed("other");
    assert_eq!(world.started(), ["first", "other", "last"]);
    assert_eq!(
        world.of("last")["spec"]["params"],
        json!([
            {"name": "id", "value": "id-7"}, {"name": "second", "value": "b"},
            {"name": "list", "value": ["a", "b", "c"]},
        ])
    );
    world.succeed("last");
    let message = "Tasks Completed: 3 (Failed: 0, Cancelled 0), Skipped: 0";
    assert_eq!(world.condition(), ("True", "Succeeded", message));
    let status = &world.run["status"];
    assert_eq!(
        status["results"],
        json!([{"name": "id", "value": "7"}, {"name": "all", "value": ["a", "b"]}])
    );
    let reference = &status["childReferences"][2];
    assert_eq!(reference["pipelineTaskName"], "last");
    assert_eq!(reference["displayName"], "The last of release");
    assert_eq!(reference["kind"], ChildKind::TaskRun.kind());
    assert_eq!(world.events, ["Started", "Succeeded"]);
    // The start with two claims, an end, an end with a claim, and the last end.
    assert_eq!(world.writes, 4);
}

#[test]
fn after_a_failure_nothing_starts_and_what_runs_ends() {
    let list = json!([
        steps("a", &[]),
        steps("b", &[]),
        steps("c", &["a"]),
        steps("d", &["c"])
    ]);
    let mut world = World::new(&tasks(&list));
    world.settle();
    world.end("a", "False", "Failed", &json!([]));
    let message = "Tasks Completed: 1 (Failed: 1, Cancelled 0), Incomplete: 1, Skipped: 2";
    assert_eq!(
        world.condition(),
        ("Unknown", "PipelineRunStopping", message)
    );
    assert!(world.of("b")["spec"]["status"].is_null());
    world.succeed("b");
    let message = "Tasks Completed: 2 (Failed: 1, Cancelled 0), Skipped: 2";
    assert_eq!(world.condition(), ("False", "Failed", message));
    assert_eq!(
        world.run["status"]["skippedTasks"],
        json!([{"name": "c", "reason": "PipelineRun was stopping"},
            {"name": "d", "reason": "PipelineRun was stopping"}])
    );
}

#[test]
fn a_result_that_a_task_does_not_have_fails_the_pipeline_run() {
    let mut behind = steps("b", &[]);
    behind["params"] = json!([{"name": "p", "value": "$(tasks.a.results.none)"}]);
    let list = json!([{"name": "a", "taskRef": {"name": "x"}}, behind]);
    let mut world = World::new(&tasks(&list));
    world.settle();
    world.succeed("a");
    let message = "Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0, Failed Validation: 1 \
                   (task b: parameter p: there is no `$(tasks.a.results.none)`)";
    assert_eq!(
        world.condition(),
        ("False", "PipelineValidationFailed", message)
    );

    let mut spec = tasks(&json!([{"name": "a", "taskRef": {"name": "x"}}]));
    spec["pipelineSpec"]["results"] = json!([{"name": "r", "value": "$(tasks.a.results.none)"}]);
    let mut world = World::new(&spec);
    world.settle();
    world.succeed("a");
    assert_eq!(world.condition().1, "CouldntGetPipelineResult");
}

#[test]
fn cancelling_ends_at_once_or_waits_for_what_runs() {
    let list = json!([steps("a", &[]), steps("b", &["a"])]);
    for (asked, reason, is_told) in [
        ("Cancelled", "Cancelled", true),
        ("CancelledRunFinally", "CancelledRunningFinally", true),
        ("StoppedRunFinally", "StoppedRunningFinally", false),
    ] {
        let mut world = World::new(&tasks(&list));
        world.settle();
        world.run["spec"]["status"] = json!(asked);
        world.settle();
        assert_eq!(world.condition().1, reason);
        let child = world.of("a").clone();
        assert_eq!(child["spec"]["status"] == "TaskRunCancelled", is_told);
        if is_told {
            assert_eq!(
                child["spec"]["statusMessage"],
                "TaskRun cancelled as the PipelineRun it belongs to has been cancelled."
            );
        }
        world.end("a", "True", "Succeeded", &json!([]));
        let message = "PipelineRun \"release\" was cancelled";
        assert_eq!(world.condition(), ("False", "Cancelled", message));
        assert_eq!(world.started(), ["a"]);
    }
}

#[test]
fn t61_12_a_timeout_ends_the_pipeline_run_and_its_children() {
    for (timeouts, message, skipped) in [
        (
            json!({"pipeline": "90s"}),
            "PipelineRun \"release\" failed to finish within \"1m30s\"",
            "PipelineRun timeout has been reached",
        ),
        (
            json!({"pipeline": "0", "tasks": "90s"}),
            "PipelineRun \"release\" failed due to tasks failed to finish within \"1m30s\"",
            "PipelineRun Tasks timeout has been reached",
        ),
    ] {
        let loops = json!({"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop"});
        let mut spec =
            tasks(&json!([{"name": "silent", "taskSpec": loops}, steps("b", &["silent"])]));
        spec["timeouts"] = timeouts;
        let mut world = World::new(&spec);
        let due = world.settle().unwrap();
        assert_eq!(due, "2026-03-01T10:01:30Z".parse().unwrap());
        world.now = due;
        world.settle();
        assert_eq!(world.condition(), ("False", "PipelineRunTimeout", message));
        assert_eq!(
            world.run["status"]["skippedTasks"],
            json!([{"name": "b", "reason": skipped}])
        );
        assert_eq!(
            world.of("silent")["spec"]["statusMessage"],
            "CustomRun cancelled as the PipelineRun it belongs to has timed out."
        );
    }
}

#[test]
fn one_that_is_pending_starts_later_and_one_of_others_never() {
    let mut spec = tasks(&json!([steps("a", &[])]));
    spec["status"] = json!("PipelineRunPending");
    let mut world = World::new(&spec);
    assert_eq!(world.settle(), None);
    assert_eq!(world.condition().1, "PipelineRunPending");
    assert!(world.run["status"]["startTime"].is_null());
    world.run["spec"]["status"] = json!("");
    world.settle();
    assert_eq!(world.started(), ["a"]);

    for other in [json!("tekton.dev/pipeline"), Value::Null] {
        let mut world = World::new(&spec);
        world.run["spec"]["managedBy"] = other;
        assert_eq!(world.settle(), None);
        assert!(world.run["status"].is_null() && world.children.is_empty());
    }
}

#[test]
fn a_child_of_another_owner_or_one_that_is_refused_fails_the_pipeline_run() {
    let mut world = World::new(&tasks(&json!([steps("a", &[])])));
    let name = child_name(&world.read(), "a");
    let foreign = json!({"metadata": {"name": name, "uid": "x", "ownerReferences": [
        {"name": "other", "uid": "other-uid", "controller": true}]}});
    world.children.push(foreign.clone());
    world.settle();
    assert_eq!(world.condition().1, "CreateRunFailed");
    assert_eq!(world.children, [foreign]);

    let world = World::new(&tasks(&json!([steps("a", &[])])));
    let mut pass = Pass::new(world.read());
    let Next::Write { status, .. } = pass.next(now()) else {
        panic!("it is claimed first");
    };
    let mut run = world.run.clone();
    run["status"] = status.value();
    pass.wrote(PipelineRun::read(&run).unwrap());
    let Next::Create { child, .. } = pass.next(now()) else {
        panic!("then it is created");
    };
    pass.saw(&child, ChildSeen::Refused("no quota".to_owned()));
    let Next::Write { status, .. } = pass.next(now()) else {
        panic!("then it ends");
    };
    assert_eq!(status.reason(), Some("CreateRunFailed"));
}

#[test]
fn what_has_ended_is_not_run_again_when_it_is_deleted_and_the_spec_is_that_of_the_start() {
    let mut world = World::new(&tasks(&json!([steps("a", &[]), steps("b", &["a"])])));
    world.settle();
    world.succeed("a");
    world.children.remove(0);
    world.run["spec"]["pipelineSpec"]["tasks"] = json!([steps("z", &[])]);
    world.settle();
    assert_eq!(world.started(), ["b"]);
    world.succeed("b");
    assert_eq!(world.condition().1, "Succeeded");
}
