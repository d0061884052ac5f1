//! A workflow as text, and done again.

use serde_json::{Value, json};

use super::{UID, job, object};
use crate::{
    Workflow,
    describe::{describe, graph, retry},
};

fn failed() -> Value {
    let mut object = object(&json!({"steps": {
        "a": job(&[]), "b": job(&["a"]), "c": job(&["a", "b"]), "d": job(&["c"]),
        "other": {"externalRef": {"kind": "Workflow", "name": "x"}, "dependencies": ["d"]},
    }}));
    object["metadata"]["labels"] = json!({"team": "shop"});
    object["status"] = json!({
        "phase": "Running", "progress": "1/5", "startTime": "2026-03-01T10:00:00Z",
        "statuses": {
            "a": {"complete": true, "reference": {"kind": "Job", "namespace": "ci", "name": "build-a"}},
            "b": {"complete": false, "reference": {"kind": "Job", "namespace": "ci", "name": "build-b"}},
            "other": {"complete": false, "reference": {"kind": "Workflow", "namespace": "ci", "name": "x"}},
        },
    });
    object
}

#[test]
fn wf_60_all_steps_are_shown_in_order_and_what_they_wait_for() {
    let mut object = failed();
    let text = describe(&Workflow::read(&object).unwrap());
    assert_eq!(
        text,
        format!(
            "Name:      build\nNamespace: ci\nUID:       {UID}\nStatus:    Running 1/5\n\
             Started:   2026-03-01T10:00:00Z\nSteps:\n\
             \u{20} a      Complete  Job ci/build-a\n\
             \u{20} b      Running   Job ci/build-b  after a\n\
             \u{20} c      Waiting   after a, b (waiting)\n\
             \u{20} d      Waiting   after c (waiting)\n\
             \u{20} other  External  Workflow ci/x\n"
        )
    );
    object["status"]["conditions"] = json!([{
        "type": "Failed", "status": "True", "reason": "StepFailed", "message": "step \"b\": Job build-b failed: x",
    }]);
    let text = describe(&Workflow::read(&object).unwrap());
    assert!(
        text.contains("Failure:   StepFailed: step \"b\": Job build-b failed: x\n"),
        "{text}"
    );
    assert!(text.contains("  b      Failed  "), "{text}");
}

#[test]
fn a_graph_has_every_step_and_dependency() {
    let text = graph(&Workflow::read(&failed()).unwrap());
    assert!(
        text.starts_with("digraph \"build\" {\n  \"a\" [label=\"a\\nComplete\"];\n"),
        "{text}"
    );
    assert!(
        text.contains("  \"b\" -> \"c\";\n") && !text.contains("\"d\" -> \"other\""),
        "{text}"
    );
}

#[test]
fn what_is_done_again_lacks_the_steps_that_are_complete_and_dependencies_on_them() {
    let mut object = failed();
    assert_eq!(retry(&object).unwrap_err(), "`build` has not failed");
    object["status"]["conditions"] = json!([{"type": "Failed", "status": "True"}]);
    let again = retry(&object).unwrap();
    assert_eq!(
        again["metadata"],
        json!({
            "generateName": "build-", "namespace": "ci", "labels": {"team": "shop"},
            "annotations": {"hindsight.dev/retry-of": "build", "hindsight.dev/retry-of-uid": UID},
        })
    );
    let steps = again["spec"]["steps"].as_object().unwrap();
    assert_eq!(steps.keys().collect::<Vec<_>>(), ["b", "c", "d", "other"]);
    assert_eq!(
        (&steps["b"]["dependencies"], &steps["c"]["dependencies"]),
        (&json!([]), &json!(["b"]))
    );
    assert!(again.get("status").is_none());
}
