//! What differs between runs as clusters write them.

use serde_json::json;

use super::*;

fn side(object: &Value) -> Side {
    let mut side = Side::default();
    side.add("", Values::of(object, false));
    side
}

fn of_run(before: &Value, after: &Value) -> Diff {
    diff(&side(before), &side(after), &[], 100)
}

fn texts(found: &Diff) -> Vec<String> {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
    found
        .differences
        .iter()
        .map(|d| {
            let (task, path) = (&d.task, &d.path);
            let what = format!("{:?} {task} {path}", d.category);
            format!("{what}: {} -> {}", text(&d.before), text(&d.after))
        })
        .collect()
}

fn release(revision: &str, image: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": format!("release-{uid}"), "namespace": "shop", "uid": uid,
            "resourceVersion": uid, "creationTimestamp": "2026-03-01T00:00:00Z",
            "managedFields": [{"manager": uid}],
            "labels": {"app": "cart", "triggers.tekton.dev/triggers-eventid": uid},
            "annotations": {"results.tekton.dev/record": uid, "note": "same"}},
        "spec": {
            "params": [{"name": "shards", "value": "2"}, {"name": "revision", "value": revision}],
            "pipelineSpec": {"tasks": [{"name": "test", "taskSpec": {"steps": [
                {"name": "run", "image": image, "args": ["-v", "-x"],
                 "env": [{"name": "LEVEL", "value": revision.len().to_string()}]}]}}]},
        },
        "status": {"startTime": "2026-03-01T00:00:01Z", "pipelineSpec": {"tasks": uid},
            "provenance": {"refSource": {"uri": "git+https://git.example/p", "digest": {"sha1": uid}},
                "featureFlags": {"x": uid}}},
    })
}

#[test]
fn what_every_run_has_anew_is_not_compared() {
    let found = of_run(
        &release("a1", "golang:1.23", "1"),
        &release("a1", "golang:1.23", "1"),
    );
    assert_eq!((found.differences.len(), found.equal), (0, 9));
}

#[test]
fn a_difference_tells_its_category_and_path() {
    let found = of_run(
        &release("a1b2c3", "golang:1.23", "1"),
        &release("d4e5", "golang:1.24", "2"),
    );
    let step = "spec.pipelineSpec.tasks[test].taskSpec.steps[run]";
    assert_eq!(
        texts(&found),
        [
            "Param  spec.params[revision].value: a1b2c3 -> d4e5".to_owned(),
            format!("Image  {step}.image: golang:1.23 -> golang:1.24"),
            "Reference  status.provenance.refSource.digest.sha1: 1 -> 2".to_owned(),
            format!("Environment  {step}.env[LEVEL].value: 6 -> 4"),
        ]
    );
}
