//! Which specs are valid, and what is said of others.

use serde_json::{Value, json};

use super::{UID, job, object, workflow};
use crate::{Workflow, check_spec, cycle, in_order, job_manifest, job_name};

#[track_caller]
fn complains(spec: &Value, expected: &[&str]) {
    assert_eq!(check_spec(&workflow(spec)), expected);
}

#[test]
fn wf_02_a_step_has_exactly_one_of_job_template_and_external_ref() {
    complains(
        &json!({"steps": {"one": {}, "two": {"dependencies": ["one"]}}}),
        &[
            "step \"one\": neither jobTemplate nor externalRef is set; want one of them",
            "step \"two\": neither jobTemplate nor externalRef is set; want one of them",
        ],
    );
    let mut both = job(&[]);
    both["externalRef"] = json!({"kind": "Workflow", "name": "other"});
    complains(
        &json!({"steps": {"one": both}}),
        &["step \"one\": jobTemplate and externalRef are both set; want one of them"],
    );
}

#[test]
fn wf_03_a_cycle_is_named_whatever_its_length() {
    complains(
        &json!({"steps": {"a": job(&["a"])}}),
        &["step \"a\": depends on itself"],
    );
    complains(
        &json!({"steps": {"a": job(&["b"]), "b": job(&["a"])}}),
        &["spec.steps: the dependencies are a cycle: a -> b -> a"],
    );
    let long = json!({"steps": {
        "a": job(&[]), "b": job(&["a", "d"]), "c": job(&["b"]), "d": job(&["c"]), "e": job(&["d"]),
    }});
    complains(
        &long,
        &["spec.steps: the dependencies are a cycle: b -> d -> c -> b"],
    );
}

#[test]
fn wf_04_a_dependency_names_a_step_once() {
    complains(
        &json!({"steps": {"a": job(&["x"]), "b": job(&["a", "a"])}}),
        &[
            "step \"a\": depends on \"x\", which is not a step",
            "step \"b\": depends on \"a\" twice",
        ],
    );
}

#[test]
fn wf_05_names_of_steps_are_values_of_labels() {
    let long = "a".repeat(63);
    for good in ["a", "1", "build-it", long.as_str()] {
        complains(&json!({"steps": {good: job(&[])}}), &[]);
    }
    let too_long = "a".repeat(64);
    for bad in ["", "A", "a_b", "a.b", "-a", "a-", "ä", too_long.as_str()] {
        let problems = check_spec(&workflow(&json!({"steps": {bad: job(&[])}})));
        let expected = format!("step \"{bad}\": not a name of a step; want");
        assert!(problems[0].starts_with(&expected), "{problems:?}");
    }
}

#[test]
fn wf_06_a_deadline_is_positive() {
    complains(&json!({"activeDeadlineSeconds": 1}), &[]);
    complains(&json!({}), &[]);
    for bad in [0, -1] {
        complains(
            &json!({"activeDeadlineSeconds": bad}),
            &[&format!(
                "spec.activeDeadlineSeconds: {bad} is not a deadline; want 1 or more"
            )],
        );
    }
}

#[test]
fn wf_07_dependencies_of_an_external_step_are_accepted_also_in_a_circle() {
    complains(
        &json!({"steps": {
            "external": {"externalRef": {"kind": "Workflow", "name": "other"}, "dependencies": ["after"]},
            "after": job(&["external"]),
        }}),
        &[],
    );
}

#[test]
fn wf_08_a_template_reaches_the_job_unchanged_and_has_no_selector() {
    let mut step = job(&[]);
    let spec = json!({
        "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1, "suspend": false,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]},
        "template": {"metadata": {"labels": {"z": "1", "a": "2"}}, "spec": {"restartPolicy": "Never",
            "containers": [{"name": "m", "image": "i", "env": [{"name": "$serde_json::private::RawValue"}]}]}},
        "unknownOfTomorrow": {"$serde_json::private::RawValue": "x"},
    });
    step["jobTemplate"]["spec"] = spec.clone();
    let valid = workflow(&json!({"steps": {"one": step}}));
    assert_eq!(check_spec(&valid), Vec::<String>::new());
    let job = job_manifest(&valid, "one").unwrap();
    assert_eq!(job["spec"].to_string(), spec.to_string());

    let mut bad = super::job(&[]);
    bad["jobTemplate"]["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    bad["jobTemplate"]["spec"]["manualSelector"] = json!(true);
    complains(
        &json!({"steps": {"one": bad}}),
        &[
            "step \"one\": jobTemplate.spec.selector is set; it is generated",
            "step \"one\": jobTemplate.spec.manualSelector is true; want false",
        ],
    );
}

#[test]
fn wf_09_every_job_matches_the_selector() {
    let spec = json!({
        "selector": {
            "matchLabels": {"app": "shop"},
            "matchExpressions": [
                {"key": "hindsight.dev/step", "operator": "In", "values": ["one"]},
                {"key": "gone", "operator": "DoesNotExist"},
            ],
        },
        "steps": {"one": job(&[])},
    });
    complains(&spec, &[]);
    let job_of_one = job_manifest(&workflow(&spec), "one").unwrap();
    assert_eq!(job_of_one["metadata"]["labels"]["app"], "shop");

    let mut two = spec.clone();
    two["steps"]["two"] = job(&[]);
    complains(
        &two,
        &["step \"two\": the labels of its Job do not match spec.selector"],
    );
    complains(
        &json!({"selector": {
            "matchLabels": {"a b": "c d"},
            "matchExpressions": [
                {"key": "a", "operator": "Near", "values": []}, {"key": "a", "operator": "In"},
            ],
        }}),
        &[
            "spec.selector: \"a b\" is not a key of a label",
            "spec.selector: \"c d\" is not a value of a label",
            "spec.selector: \"Near\" is not an operator; want In, NotIn, Exists or DoesNotExist",
            "spec.selector: In of \"a\" has a wrong number of values",
        ],
    );
}

#[test]
fn wf_10_labels_of_the_workflow_are_overridden_by_those_of_the_template() {
    let mut step = job(&[]);
    step["jobTemplate"]["metadata"] = json!({
        "name": "ignored",
        "labels": {"a": "template", "hindsight.dev/step": "mine"},
        "annotations": {"note": "template"},
    });
    let spec = json!({
        "metadata": {"labels": {"a": "workflow", "b": "workflow"}, "annotations": {"note": "workflow", "by": "me"}},
        "steps": {"one": step},
    });
    let valid = workflow(&spec);
    let job = job_manifest(&valid, "one").unwrap();
    assert_eq!(
        job["metadata"],
        json!({
            "name": job_name(&valid, "one"), "namespace": "ci",
            "labels": {
                "a": "template", "b": "workflow", "hindsight.dev/step": "one",
                "hindsight.dev/workflow": "build", "hindsight.dev/workflow-uid": UID,
            },
            "annotations": {
                "by": "me", "note": "template", "results.tekton.dev/result": format!("ci/results/{UID}"),
            },
            "ownerReferences": [{
                "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "build", "uid": UID,
                "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
}

#[test]
fn wf_11_an_external_step_is_another_workflow_or_a_job_and_not_the_workflow_itself() {
    let external = |reference: Value| json!({"steps": {"one": {"externalRef": reference}}});
    for good in [
        json!({"kind": "Workflow", "name": "other"}),
        json!({"kind": "Workflow", "apiVersion": "hindsight.dev/v1alpha1", "name": "build", "namespace": "prod"}),
        json!({"kind": "Job", "apiVersion": "batch/v1", "name": "build"}),
    ] {
        complains(&external(good), &[]);
    }
    for itself in [json!({}), json!({"namespace": "ci"})] {
        let mut reference = json!({"kind": "Workflow", "name": "build"});
        reference["namespace"] = itself["namespace"].clone();
        if reference["namespace"].is_null() {
            reference.as_object_mut().unwrap().remove("namespace");
        }
        complains(
            &external(reference),
            &["step \"one\": externalRef is to the workflow itself"],
        );
    }
    complains(
        &external(json!({"kind": "Pod", "apiVersion": "v1"})),
        &[
            "step \"one\": externalRef is to a \"Pod\" of \"v1\"; want a Workflow of hindsight.dev/v1alpha1 or \
             a Job of batch/v1",
            "step \"one\": externalRef.name is missing",
        ],
    );
}

#[test]
fn too_many_steps_and_a_spec_of_other_types_are_refused_in_one_line() {
    let steps: serde_json::Map<_, _> = (0..501).map(|n| (format!("s{n}"), job(&[]))).collect();
    complains(
        &json!({"steps": steps}),
        &["spec.steps: 501 steps are too many; want at most 500"],
    );
    complains(
        &json!({"steps": {"a": {"dependencies": "b"}}}),
        &["spec: invalid type: string \"b\", expected a sequence"],
    );
}

#[test]
fn steps_are_in_order_of_their_dependencies_and_then_of_their_names() {
    let spec = json!({"steps": {
        "z": job(&[]), "a": job(&["z"]), "m": job(&[]), "b": job(&["a", "m"]), "x": job(&["y"]), "y": job(&["x"]),
    }});
    let workflow = workflow(&spec);
    let steps = &workflow.spec.as_ref().unwrap().steps;
    assert_eq!(in_order(steps), ["m", "z", "a", "b", "x", "y"]);
    assert_eq!(cycle(steps), Some(vec!["x", "y"]));
}

#[test]
fn names_of_jobs_are_short_and_differ_by_step_and_by_uid_of_the_workflow() {
    let named = |name: &str, uid: &str| {
        let mut object = object(&json!({}));
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = uid.into();
        Workflow::read(&object).unwrap()
    };
    let name = |workflow: &str, uid: &str, step: &str| job_name(&named(workflow, uid), step);
    assert_eq!(name("a.b", UID, "c"), name("a.b", UID, "c"));
    assert!(name("a.b", UID, "c").starts_with("a-b-c-"));
    assert_ne!(name("a-b", UID, "c"), name("a", UID, "b-c"));
    assert_ne!(name("a", UID, "b"), name("a", "another", "b"));
    let long = name(&"w".repeat(253), UID, &"s".repeat(63));
    assert_eq!(long.len(), 52);
}
