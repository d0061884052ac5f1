//! What differs between runs as clusters write them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tree::{Part, Tree};

fn side_of(run: &Value, others: &[Value]) -> Side {
    let part = |object: &Value| Part::of(&object["metadata"]["uid"].to_string(), object);
    let tree = Tree::of(part(run), others.iter().map(part).collect(), Vec::new());
    let id = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let below = others
        .iter()
        .map(|object| (id(object), Values::of(object, true)));
    let own = (id(run), Values::of(run, false));
    Side::of(&tree, below.chain([own]).collect())
}

fn side(object: &Value) -> Side {
    side_of(object, &[])
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

fn task_run(task: &str, number: usize, image: &str, seconds: u32, revision: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": format!("{task}-{number}"), "uid": format!("{task}{number}"),
            "labels": {"tekton.dev/pipelineTask": task, "of": revision},
            "ownerReferences": [{"kind": "PipelineRun", "name": "r", "uid": "1"}]},
        "spec": {"params": [{"name": "sha", "value": revision}],
            "workspaces": [{"name": "w", "persistentVolumeClaim": {"claimName": revision}}]},
        "status": {"startTime": "2026-03-01T00:00:00Z",
            "completionTime": format!("2026-03-01T00:00:{seconds:02}Z"),
            "conditions": [{"type": "Succeeded", "status": "True"}],
            "steps": [{"name": "run", "imageID": image}]},
    })
}

#[test]
fn what_a_task_takes_from_its_run_is_given_once() {
    let before = side_of(
        &release("a1", "go:1", "1"),
        &[task_run("test", 0, "go@sha256:1", 10, "a1")],
    );
    let after = side_of(
        &release("d4", "go:1", "1"),
        &[
            task_run("test", 0, "go@sha256:2", 16, "d4"),
            task_run("test", 1, "go", 5, "a1"),
        ],
    );
    let found = diff(&before, &after, &[], 100);
    assert_eq!(
        texts(&found),
        [
            "Param  spec.params[revision].value: a1 -> d4",
            "Param test[1] spec.params[sha].value: - -> a1",
            "Image test status.steps[run].imageID: go@sha256:1 -> go@sha256:2",
            "Image test[1] status.steps[run].imageID: - -> go",
            "Timing test took: 10 -> 16",
            "Timing test[1] took: - -> 5",
        ]
    );
    assert_eq!(found.differences[4].ratio, Some(1.6));
}

#[test]
fn objects_that_no_task_names_are_compared_by_their_kinds() {
    let job = |uid: &str, image: &str| {
        let run = json!({"kind": "RayJob", "metadata": {"name": "j", "uid": uid}, "spec": {}});
        let cluster = json!({"kind": "RayCluster",
            "metadata": {"name": format!("j-raycluster-{uid}"), "uid": format!("c{uid}"),
                "ownerReferences": [{"kind": "RayJob", "name": "j", "uid": uid}]},
            "spec": {"image": image}});
        side_of(&run, &[cluster])
    };
    let found = diff(&job("1", "ray:1"), &job("2", "ray:2"), &[], 10);
    assert_eq!(
        texts(&found),
        ["Image RayCluster spec.image: ray:1 -> ray:2"]
    );
}

#[test]
fn times_that_changed_little_are_no_difference() {
    for (before, after, differs) in [
        (10.0, 10.9, false),
        (100.0, 109.0, false),
        (100.0, 111.0, true),
        (9.0, 7.9, true),
    ] {
        assert_eq!(
            is_slower_or_faster(Some(&before), Some(&after)),
            differs,
            "{before} {after}"
        );
    }
}

#[test]
fn an_answer_is_bounded() {
    let spec = |text: &str| {
        let params: Vec<_> = (0..50)
            .map(|n| json!({"name": n.to_string(), "value": text.repeat(600)}))
            .collect();
        json!({"metadata": {"uid": "1"}, "spec": {"params": params}})
    };
    let found = diff(&side(&spec("éa")), &side(&spec("éb")), &[], 20);
    assert_eq!((found.differences.len(), found.left_out), (20, 30));
    let first = &found.differences[0];
    assert_eq!(first.before.as_ref().unwrap().chars().count(), MAX_TEXT);
    assert!(first.cut);
}

#[test]
fn values_of_an_object_are_bounded_however_long_their_paths_are() {
    let leaves: serde_json::Map<_, _> = (0..1_000).map(|n| (n.to_string(), json!(n))).collect();
    let mut spec = json!({});
    spec["k".repeat(4 << 20)] = Value::Object(leaves);
    let object = json!({"metadata": {"uid": "1"}, "spec": spec});
    let values = Values::of(&object, false);
    assert!(values.bytes() < 21 << 20, "{}", values.bytes());
    let found = diff(&side(&object), &side(&object), &[], 1);
    assert_eq!((found.equal, found.runs_left_out), (4, 2));
}

#[test]
fn elements_without_names_of_their_own_are_told_by_their_places() {
    let run = |first: &str| {
        json!({"metadata": {"uid": "1"}, "spec": {
            "list": [{"name": "x", "v": first}, {"name": "x", "v": 2}, [{"a": null}]],
            "args": ["-v", first], "none": {}}})
    };
    assert_eq!(
        texts(&of_run(&run("a"), &run("b"))),
        [
            r#"Spec  spec.args: ["-v","a"] -> ["-v","b"]"#,
            "Spec  spec.list[0].v: a -> b",
        ]
    );
}

/// JSON of strangers.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i32).prop_map(Value::from),
        "[a-c]?".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let keys = prop_oneof![
            Just("spec"),
            Just("status"),
            Just("metadata"),
            Just("params"),
            Just("name"),
            Just("labels"),
            Just("steps"),
            Just("image"),
            Just("uid"),
            Just("taskSpec"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..5).prop_map(|members| {
                let members = members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_two_objects_can_be_compared(spec in values(), status in values(), other in values()) {
        let with = |spec: &Value| json!({"metadata": {"uid": "1"}, "spec": spec, "status": status});
        let (a, b) = (side(&with(&spec)), side(&with(&other)));
        let same = diff(&a, &a, &[], 1_000);
        prop_assert!(same.differences.is_empty());
        let (there, back) = (diff(&a, &b, &[], 1_000), diff(&b, &a, &[], 1_000));
        prop_assert_eq!(there.equal, back.equal);
        prop_assert_eq!(there.differences.len(), back.differences.len());
        for (there, back) in there.differences.iter().zip(&back.differences) {
            prop_assert_eq!(&there.path, &back.path);
            prop_assert_eq!(&there.before, &back.after);
        }
    }
}
