//! Which changes are allowed.

use serde_json::{Value, json};

use super::{job, object};
use crate::check_change;

/// `done` is complete, `running` runs, `waiting` waits.
fn started() -> Value {
    let mut object = object(&json!({
        "selector": {"matchLabels": {"app": "shop"}},
        "activeDeadlineSeconds": 60,
        "steps": {"done": job(&[]), "running": job(&["done"]), "waiting": job(&["running"])},
    }));
    object["status"] = json!({
        "startTime": "2026-03-01T10:00:00Z",
        "statuses": {
            "done": {"complete": true, "reference": {"kind": "Job", "name": "a"}},
            "running": {"complete": false, "reference": {"kind": "Job", "name": "b"}},
        },
    });
    object
}

#[track_caller]
fn change(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let mut new = started();
    change(&mut new);
    assert_eq!(check_change(&started(), &new), expected);
}

fn steps(object: &mut Value) -> &mut serde_json::Map<String, Value> {
    object["spec"]["steps"].as_object_mut().unwrap()
}

#[test]
fn wf_40_steps_change_as_long_as_they_are_not_started() {
    change(
        |new| new["spec"]["steps"]["waiting"]["jobTemplate"]["spec"]["suspend"] = json!(true),
        &[],
    );
    change(|new| drop(steps(new).remove("waiting")), &[]);
    change(
        |new| drop(steps(new).insert("more".to_owned(), job(&["done", "waiting"]))),
        &[],
    );
    change(
        |new| new["spec"]["steps"]["running"]["jobTemplate"]["spec"]["suspend"] = json!(true),
        &["cannot modify running step \"running\""],
    );
    change(
        |new| new["spec"]["steps"]["done"]["dependencies"] = json!(["waiting"]),
        &[
            "cannot modify completed step \"done\"",
            "spec.steps: the dependencies are a cycle: done -> waiting -> running -> done",
        ],
    );
    change(
        |new| {
            steps(new).remove("done");
            steps(new).remove("running");
        },
        &[
            "cannot delete completed step \"done\"",
            "cannot delete running step \"running\"",
            "step \"waiting\": depends on \"running\", which is not a step",
        ],
    );
}

#[test]
fn wf_41_a_selector_does_not_change_a_deadline_may_and_nothing_does_after_the_end() {
    change(
        |new| new["spec"]["selector"]["matchLabels"]["app"] = json!("other"),
        &["spec.selector: does not change"],
    );
    change(
        |new| new["spec"]["selector"] = Value::Null,
        &["spec.selector: does not change"],
    );
    change(|new| new["spec"]["activeDeadlineSeconds"] = json!(90), &[]);

    let mut old = started();
    old["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(check_change(&old, &new), Vec::<String>::new());
    new["spec"]["activeDeadlineSeconds"] = json!(90);
    assert_eq!(
        check_change(&old, &new),
        ["spec: the workflow is finished; its spec does not change any more"]
    );
}
