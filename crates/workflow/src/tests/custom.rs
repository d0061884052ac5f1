//! Custom tasks: the rules of TEP-0061, what a workflow is made of, and the definition of the old kind.

use serde_json::{Value, json};

use super::job;
use crate::custom::{
    CustomRun, Form, Next, Owned, OwnedSeen, Pass, RunSpec, TemplateSeen, attempt_name, check_run,
    check_task, crd::run_definition, embedded_spec, is_custom_task,
};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/workflow/run-crd.yaml"
);

fn spec() -> Value {
    json!({"customSpec": {
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"labels": {"team": "build"}, "annotations": {"note": "mine"}},
        "spec": {"steps": {"one": job(&[])}},
    }})
}

#[track_caller]
fn run(spec: &Value) -> CustomRun {
    let object = json!({
        "apiVersion": "tekton.dev/v1beta1", "kind": "CustomRun",
        "metadata": {
            "name": "nightly", "namespace": "ci", "uid": "run-uid",
            "ownerReferences": [{"kind": "PipelineRun", "name": "pr", "uid": "pr-uid"}],
        },
        "spec": spec,
    });
    CustomRun::read(Form::CustomRun, &object).unwrap()
}

fn now() -> jiff::Timestamp {
    "2026-03-01T10:00:00.5Z".parse().unwrap()
}

/// What a pass over a fresh run says until it wants to create or to rest.
fn claimed(spec: &Value) -> (Pass, Next) {
    let mut pass = Pass::new(run(spec));
    let Next::Write { status, .. } = pass.next(now()) else {
        panic!("a run is claimed first");
    };
    let mut object = run(spec);
    object.status = status;
    pass.has(object);
    let next = pass.next(now());
    (pass, next)
}

/// Of a run that fails at once, why.
#[track_caller]
fn refused(spec: &Value) -> (String, String) {
    let Next::Write { status, .. } = Pass::new(run(spec)).next(now()) else {
        panic!("a run that is not valid fails at once");
    };
    let condition = status.value()["conditions"][0].clone();
    assert_eq!(condition["status"], "False");
    let text = |field: &str| condition[field].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn t61_01_an_embedded_run_spec_has_version_kind_metadata_and_any_spec() {
    let read = RunSpec::read(Form::CustomRun, &spec()).unwrap();
    let embedded = read.embedded.unwrap();
    assert_eq!(embedded.api_version, "hindsight.dev/v1alpha1");
    assert_eq!(embedded.kind, "Workflow");
    assert_eq!(embedded.metadata.labels["team"], "build");
    assert_eq!(embedded.spec.0, spec()["customSpec"]["spec"]);
    for anything in [json!(null), json!([1, {"a": null}]), json!("text")] {
        let spec = json!({"spec": {"apiVersion": "a/v1", "kind": "K", "spec": anything}});
        let read = RunSpec::read(Form::Run, &spec).unwrap();
        assert_eq!(read.embedded.unwrap().spec.0, anything);
        assert_eq!(check_run(Form::Run, &spec), Vec::<String>::new());
    }
}

#[test]
fn t61_02_both_forms_of_a_run_are_read() {
    let common = json!({
        "params": [{"name": "a", "value": ["x"]}], "status": "RunCancelled", "retries": 2,
        "timeout": "1h0m0s", "serviceAccountName": "bot",
        "workspaces": [{"name": "w", "emptyDir": {}}], "podTemplate": {"nodeSelector": {}},
    });
    for form in Form::ALL {
        let mut spec = common.clone();
        spec[form.reference()] = json!({"apiVersion": "a/v1", "kind": "K", "name": "n"});
        let read = RunSpec::read(form, &spec).unwrap();
        assert_eq!(read.reference.unwrap().name, "n");
        assert_eq!(read.params[0].value.0, json!(["x"]));
        assert_eq!((read.status.as_str(), read.retries), ("RunCancelled", 2));
        assert_eq!(read.timeout.unwrap().as_secs(), 3600);
        assert_eq!((read.workspaces, read.has_pod_template), (1, true));
    }
    let wrong = RunSpec::read(Form::CustomRun, &json!({"timeout": "soon"}));
    assert_eq!(
        wrong.unwrap_err(),
        "spec.timeout: `soon` is not a duration; write it as in 1h30m"
    );
    let wrong = RunSpec::read(Form::Run, &json!({"retries": -1})).unwrap_err();
    assert!(wrong.starts_with("spec.retries: "), "{wrong}");
}

#[test]
fn t61_04_exactly_one_of_reference_and_spec_is_set() {
    for (form, reference, embedded) in [
        (Form::CustomRun, "customRef", "customSpec"),
        (Form::Run, "ref", "spec"),
    ] {
        let task = json!({"apiVersion": "a/v1", "kind": "K"});
        let both = json!({reference: task, embedded: task});
        let fields = format!("spec.{reference}, spec.{embedded}");
        assert_eq!(
            check_run(form, &both),
            [format!("{fields}: both are set; want one of them")]
        );
        assert_eq!(
            check_run(form, &json!({"params": []})),
            [format!("{fields}: neither is set; want one of them")]
        );
        for nothing in [json!({}), json!(null)] {
            assert_eq!(check_run(form, &nothing), ["spec: is missing"]);
        }
    }
}

#[test]
fn t61_05_reference_and_spec_have_version_and_kind_and_nothing_else_is_demanded() {
    for form in Form::ALL {
        for field in [form.reference(), form.embedded()] {
            let check = |task: Value| check_run(form, &json!({field: task}));
            assert_eq!(
                check(json!({"kind": "K"})),
                [format!("spec.{field}.apiVersion: is missing")]
            );
            assert_eq!(
                check(json!({"apiVersion": "a/v1", "kind": ""})),
                [format!("spec.{field}.kind: is missing")]
            );
            assert!(check(json!({"apiVersion": "a/v1", "kind": "K"})).is_empty());
        }
    }
}

#[test]
fn t61_06_a_task_of_a_pipeline_is_custom_by_its_version_or_kind() {
    let check = |task: Value| {
        let path = "spec.tasks[0]";
        (is_custom_task(&task), check_task(path, &task).join("\n"))
    };
    let good = (true, String::new());
    let spec = |task: Value| json!({"name": "t", "taskSpec": task});
    assert_eq!(
        check(spec(json!({"apiVersion": "a/v1", "kind": "K"}))),
        good
    );
    assert_eq!(
        check(json!({"taskRef": {"apiVersion": "a/v1", "kind": "K"}})),
        good
    );
    let own = (false, String::new());
    assert_eq!(check(spec(json!({"steps": []}))), own);
    assert_eq!(
        check(json!({"taskRef": {"name": "n", "kind": "Task"}})),
        own
    );

    let said = |task: Value| check(task).1;
    assert_eq!(
        said(spec(json!({"apiVersion": "a/v1"}))),
        "spec.tasks[0].taskSpec.kind: is missing"
    );
    assert_eq!(
        said(spec(json!({"kind": "K"}))),
        "spec.tasks[0].taskSpec.apiVersion: is missing"
    );
    assert_eq!(
        said(spec(json!({"apiVersion": "v1", "kind": "K"}))),
        "spec.tasks[0].taskSpec.apiVersion: `v1` is not an API version; want group/version"
    );
    assert_eq!(
        said(spec(
            json!({"apiVersion": "a/v1", "kind": "K", "steps": [{}]})
        )),
        "spec.tasks[0].taskSpec.steps: is set beside apiVersion or kind; a custom task has no steps"
    );
    assert_eq!(
        said(json!({"taskRef": {"name": "n"}, "taskSpec": {"steps": []}})),
        "spec.tasks[0].taskRef, spec.tasks[0].taskSpec: both are set; want one of them"
    );
}

#[test]
fn t61_07_the_embedded_spec_of_a_task_is_handed_on_as_it_is() {
    let task = json!({"name": "t", "taskSpec": {
        "apiVersion": "a/v1", "kind": "K", "metadata": {"labels": {"x": "y"}},
        "spec": {"any": [1, null, {"$(params.x)": "$(params.x)"}]}, "params": [],
    }});
    assert_eq!(
        embedded_spec(&task).unwrap(),
        json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": {"labels": {"x": "y"}},
            "spec": {"any": [1, null, {"$(params.x)": "$(params.x)"}]},
        })
    );
    assert_eq!(embedded_spec(&json!({"taskSpec": {"steps": []}})), None);
}

#[test]
fn a_workflow_is_created_after_its_claim_and_has_the_result_of_the_pipeline_run() {
    let (pass, next) = claimed(&spec());
    let name = attempt_name(pass.run(), 0);
    let status = pass.run().status.value();
    assert_eq!(status["extraFields"], json!({"workflow": {"name": name}}));
    assert_eq!(status["startTime"], "2026-03-01T10:00:00Z");
    assert_eq!(status["conditions"][0]["status"], "Unknown");
    let Next::Create(manifest) = next else {
        panic!("it is created next: {next:?}");
    };
    assert_eq!(
        manifest["metadata"],
        json!({
            "name": name, "namespace": "ci",
            "labels": {
                "team": "build", "hindsight.dev/custom-run": "nightly",
                "hindsight.dev/custom-run-uid": "run-uid",
            },
            "annotations": {"note": "mine", "results.tekton.dev/result": "ci/results/pr-uid"},
            "ownerReferences": [{
                "apiVersion": "tekton.dev/v1beta1", "kind": "CustomRun", "name": "nightly",
                "uid": "run-uid", "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
    assert_eq!(manifest["spec"], spec()["customSpec"]["spec"]);
    assert!(name.starts_with("nightly-") && name != attempt_name(pass.run(), 1));
}

#[test]
fn nothing_is_created_of_a_cache() {
    let (pass, _) = claimed(&spec());
    let again = Pass::new(pass.run().clone());
    assert_eq!(again.next(now()), Next::Reread);
}

#[test]
fn t61_11_a_spec_that_is_wrong_fails_with_its_path() {
    let mut wrong = spec();
    wrong["customSpec"]["spec"]["steps"]["two"] = json!({"dependencies": ["none"]});
    let (reason, message) = refused(&wrong);
    assert_eq!(reason, "InvalidSpec");
    assert_eq!(
        message,
        "spec.customSpec.spec: step \"two\": neither jobTemplate nor externalRef is set; want one of them; \
         spec.customSpec.spec: step \"two\": depends on \"none\", which is not a step"
    );
    wrong["customSpec"]["spec"] = json!({"steps": 7});
    let (_, message) = refused(&wrong);
    assert!(
        message.starts_with("spec.customSpec.spec: invalid type"),
        "{message}"
    );
    let mut wrong = spec();
    wrong["workspaces"] = json!([{"name": "w"}]);
    assert_eq!(refused(&wrong).0, "CustomRunWorkspaceNotSupported");
    wrong["workspaces"] = json!([]);
    wrong["customRef"] = json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow"});
    assert_eq!(
        refused(&wrong),
        (
            "InvalidSpec".to_owned(),
            "spec.customRef, spec.customSpec: both are set; want one of them".to_owned()
        )
    );
    wrong.as_object_mut().unwrap().remove("customSpec");
    assert_eq!(
        refused(&wrong),
        (
            "InvalidSpec".to_owned(),
            "spec.customRef.name: is missing".to_owned()
        )
    );
}

#[test]
fn t61_13_runs_of_others_and_runs_that_are_no_runs_are_left_alone() {
    let theirs = json!({"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop"});
    let other_version = json!({"apiVersion": "hindsight.dev/v1", "kind": "Workflow"});
    let ours = spec()["customSpec"].clone();
    for spec in [
        json!(null),
        json!({}),
        json!({"customSpec": null, "customRef": null}),
        json!({"customSpec": 7}),
        json!({"customSpec": {"kind": "Workflow"}}),
        json!({"customRef": theirs}),
        json!({"customSpec": theirs}),
        json!({"customSpec": other_version}),
        // As in Tekton, the reference decides.
        json!({"customRef": theirs, "customSpec": ours}),
    ] {
        assert_eq!(
            Pass::new(run(&spec)).next(now()),
            Next::Rest(None),
            "{spec}"
        );
    }
}

#[test]
fn a_template_is_copied_with_parameters() {
    let mut step = job(&[]);
    step["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"] = json!([
        "echo",
        "$(params.words[*])",
        "$(params['greeting']) from $(params.greeting)",
        "$(HOME)"
    ]);
    let template = json!({"steps": {"one": step}});
    let spec = json!({
        "customRef": {"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "template"},
        "params": [{"name": "words", "value": ["a", "b"]}, {"name": "greeting", "value": "hi"}],
    });
    let mut pass = Pass::new(run(&spec));
    assert_eq!(pass.next(now()), Next::Template("template".to_owned()));
    pass.saw_template(TemplateSeen::There(template.clone()));
    let Next::Write { status, .. } = pass.next(now()) else {
        panic!("it is claimed");
    };
    let mut object = run(&spec);
    object.status = status;
    pass.has(object);
    let Next::Create(manifest) = pass.next(now()) else {
        panic!("it is created");
    };
    assert_eq!(
        manifest.pointer("/spec/steps/one/jobTemplate/spec/template/spec/containers/0/command"),
        Some(&json!(["echo", "a", "b", "hi from hi", "$(HOME)"]))
    );

    let mut unknown = Pass::new(run(&json!({"customRef": spec["customRef"]})));
    unknown.saw_template(TemplateSeen::There(
        json!({"metadata": {"labels": {"a": "$(params.x)"}}}),
    ));
    let Next::Write { status, .. } = unknown.next(now()) else {
        panic!("it fails");
    };
    assert_eq!(
        status.value()["conditions"][0]["message"],
        "spec.customRef.spec.metadata.labels.a: `$(params.x)` is not a parameter of the run"
    );
    unknown.saw_template(TemplateSeen::Gone);
    let Next::Write { status, .. } = unknown.next(now()) else {
        panic!("it fails");
    };
    assert_eq!(status.reason(), Some("WorkflowNotFound"));
}

#[test]
fn a_workflow_of_somebody_else_is_not_adopted_and_a_late_one_is_deleted() {
    let (mut pass, _) = claimed(&spec());
    let name = attempt_name(pass.run(), 0);
    let foreign = Owned {
        name: name.clone(),
        uid: "w".to_owned(),
        owner: Some("other".to_owned()),
        ..Owned::default()
    };
    let late = Owned {
        owner: Some("run-uid".to_owned()),
        ..foreign.clone()
    };
    pass.saw(&name, OwnedSeen::There(foreign));
    let Next::Write { status, .. } = pass.next(now()) else {
        panic!("it fails");
    };
    assert_eq!(status.reason(), Some("WorkflowNameConflict"));
    let mut object = pass.run().clone();
    object.status = status;
    pass.has(object);
    assert_eq!(pass.next(now()), Next::Rest(None));
    let mut of_cache = Pass::new(pass.run().clone());
    of_cache.knows(late.clone());
    assert_eq!(of_cache.next(now()), Next::Look(name.clone()));
    pass.saw(&name, OwnedSeen::There(late));
    let uid = "w".to_owned();
    assert_eq!(pass.next(now()), Next::Delete { name, uid });
    pass.deleted("w");
    assert_eq!(pass.next(now()), Next::Rest(None));
}

#[test]
fn a_workflow_that_took_too_long_is_deleted_before_the_next_attempt_begins() {
    let mut limited = spec();
    limited["timeout"] = json!("1m");
    limited["retries"] = json!(1);
    let (mut pass, _) = claimed(&limited);
    let name = attempt_name(pass.run(), 0);
    let owned = Owned {
        name: name.clone(),
        uid: "w".to_owned(),
        owner: Some("run-uid".to_owned()),
        ..Owned::default()
    };
    pass.saw(&name, OwnedSeen::There(owned));
    let late = now() + jiff::SignedDuration::from_mins(2);
    let Next::Write { status, .. } = pass.next(late) else {
        panic!("it took too long");
    };
    assert_eq!(status.reason(), Some("ToBeRetried"));
    let mut object = pass.run().clone();
    object.status = status;
    pass.has(object);
    let uid = "w".to_owned();
    assert_eq!(pass.next(late), Next::Delete { name, uid });
    pass.deleted("w");
    let Next::Write { status, .. } = pass.next(late) else {
        panic!("the next attempt is claimed");
    };
    assert_eq!(status.claim().unwrap().name, attempt_name(pass.run(), 1));
}

#[test]
fn a_workflow_that_was_read_before_the_run_is_read_again_before_it_is_deleted() {
    let (mut first, _) = claimed(&spec());
    let name = attempt_name(first.run(), 0);
    let running = Owned {
        name: name.clone(),
        uid: "w".to_owned(),
        owner: Some("run-uid".to_owned()),
        ..Owned::default()
    };
    let finished = Owned {
        is_finished: true,
        ..running.clone()
    };
    first.saw(&name, OwnedSeen::There(finished.clone()));
    let Next::Write { status, .. } = first.next(now()) else {
        panic!("it is complete");
    };
    let mut done = run(&spec());
    done.status = status;

    // Another controller knows the run as it was before its claim.
    let mut late = Pass::new(run(&spec()));
    late.knows(running.clone());
    assert_eq!(late.next(now()), Next::Look(name.clone()));
    late.saw(&name, OwnedSeen::There(running));
    assert_eq!(late.next(now()), Next::Reread);
    late.has(done);
    assert_eq!(late.next(now()), Next::Look(name.clone()));
    late.saw(&name, OwnedSeen::There(finished));
    assert_eq!(late.next(now()), Next::Rest(None));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn the_file_of_the_old_kind_is_its_definition() {
    if std::env::var_os("HINDSIGHT_TEST_BLESS").is_some() {
        let head = "# Tekton's old Run, for clusters without it. Made of crates/workflow/src/custom/crd.rs:\n\
                    # HINDSIGHT_TEST_BLESS=1 cargo test -p hindsight-workflow\n";
        let text = serde_saphyr::to_string(&run_definition()).unwrap();
        std::fs::write(FILE, format!("{head}{text}")).unwrap();
    }
    let text = std::fs::read_to_string(FILE).unwrap();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(file, run_definition());
    assert_eq!(file["metadata"]["name"], "runs.tekton.dev");
}
