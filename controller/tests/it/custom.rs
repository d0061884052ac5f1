//! Custom runs that ask for workflows: how they start and end, and which are left alone.

use std::time::Duration;

use hindsight_workflow::custom::{CustomRun, Form, attempt_name};
use kubesim::{Crd, Fault, Sim};
use serde_json::{Value, json};

use crate::support::{GROUP, NAMESPACE, WORKFLOWS, World, endless, step, step_with};

/// A cluster with Tekton's kinds, in which Jobs are run, and no controller.
pub(crate) fn tekton() -> World {
    let mut world = World::without_controller();
    world.sim.install_all(Crd::tekton());
    world.sim.install(Crd::tekton_run());
    world.config.kind_poll = Duration::from_millis(50);
    world
}

pub(crate) async fn started() -> World {
    let mut world = tekton();
    world.start().await;
    world
}

/// An embedded workflow with these steps.
pub(crate) fn embedded(steps: &Value) -> Value {
    json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "spec": {"steps": steps}})
}

fn one() -> Value {
    embedded(&json!({"one": step(&[])}))
}

impl World {
    #[track_caller]
    pub(crate) fn ask(&self, form: Form, name: &str, spec: &Value) -> Value {
        let object = json!({
            "apiVersion": format!("tekton.dev/{}", form.version()), "kind": form.kind(),
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        self.sim.create(object).unwrap()
    }

    pub(crate) fn run(&self, form: Form, name: &str) -> Value {
        self.sim
            .get("tekton.dev", form.plural(), NAMESPACE, name)
            .unwrap()
    }

    /// Waits until a run has ended; returns its status.
    pub(crate) async fn done(&self, form: Form, name: &str) -> Value {
        self.until(|sim| succeeded(sim, form, name).is_some_and(|status| status != "Unknown"))
            .await;
        self.run(form, name)["status"].clone()
    }

    /// The name of the workflow of an attempt.
    pub(crate) fn attempt(&self, form: Form, name: &str, attempt: usize) -> String {
        let run = CustomRun::read(form, &self.run(form, name)).unwrap();
        attempt_name(&run, attempt)
    }

    /// Waits until the step of the workflow of an attempt runs; returns the name of the workflow.
    pub(crate) async fn running(&self, name: &str, attempt: usize, step: &str) -> String {
        let workflow = self.attempt(Form::CustomRun, name, attempt);
        self.until(|sim| sim.get(GROUP, WORKFLOWS, NAMESPACE, &workflow).is_some())
            .await;
        self.started(&workflow, step).await;
        workflow
    }

    fn cancel_run(&self, name: &str, message: &str) {
        let patch = json!({"spec": {"status": "RunCancelled", "statusMessage": message}});
        self.sim
            .merge("tekton.dev", "customruns", NAMESPACE, name, patch, "test")
            .unwrap();
    }
}

pub(crate) fn succeeded(sim: &Sim, form: Form, name: &str) -> Option<String> {
    let run = sim.get("tekton.dev", form.plural(), NAMESPACE, name)?;
    let status = run["status"]["conditions"][0]["status"].as_str()?;
    Some(status.to_owned())
}

/// Status, reason and message of the condition.
pub(crate) fn condition(status: &Value) -> (&str, &str, &str) {
    let condition = &status["conditions"][0];
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    (text("status"), text("reason"), text("message"))
}

#[tokio::test]
async fn t61_02_and_t61_16_both_forms_are_run_by_spec_and_by_reference() {
    let world = started().await;
    world.create("template", &json!({"steps": {"one": step(&[])}}));
    let named =
        json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "template"});
    for form in Form::ALL {
        world.ask(form, "by-spec", &json!({form.embedded(): one()}));
        world.ask(form, "by-reference", &json!({form.reference(): named}));
        for name in ["by-spec", "by-reference"] {
            let status = world.done(form, name).await;
            assert_eq!(
                (condition(&status).0, condition(&status).1),
                ("True", "Succeeded")
            );
            let workflow = world.attempt(form, name, 0);
            assert_eq!(
                status["results"],
                json!([{"name": "workflow", "value": workflow}])
            );
            assert!(status["startTime"].is_string() && status["completionTime"].is_string());
            let owner = &world.workflow(&workflow)["metadata"]["ownerReferences"][0];
            assert_eq!(owner["uid"], world.run(form, name)["metadata"]["uid"]);
            assert_eq!(owner["kind"], form.kind());
        }
    }
    // The template runs by itself too.
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 5);
    assert_eq!(world.creates(), 5);
}

#[tokio::test]
async fn t61_01_metadata_reach_the_workflow_and_its_annotations_become_results() {
    let world = started().await;
    let mut spec = embedded(&json!({"one": endless(&[])}));
    spec["metadata"] = json!({
        "labels": {"team": "build"}, "annotations": {"results.hindsight.dev/digest": "sha256:1"},
    });
    world.ask(Form::CustomRun, "nightly", &json!({"customSpec": spec}));
    let workflow = world.running("nightly", 0, "one").await;
    assert_eq!(
        world.workflow(&workflow)["metadata"]["labels"]["team"],
        "build"
    );
    world.finish(&workflow, "one", &["SuccessCriteriaMet", "Complete"]);
    let status = world.done(Form::CustomRun, "nightly").await;
    assert_eq!(
        status["results"],
        json!([{"name": "workflow", "value": workflow}, {"name": "digest", "value": "sha256:1"}])
    );
    world.until(|_| world.events("nightly").len() == 2).await;
    assert_eq!(
        world.events("nightly"),
        [
            ("Started".to_owned(), "Normal".to_owned()),
            ("Succeeded".to_owned(), "Normal".to_owned())
        ]
    );
}

#[tokio::test]
async fn t61_04_t61_05_and_t61_11_a_run_that_is_wrong_fails_with_the_path_and_starts_nothing() {
    let world = started().await;
    let named = json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "none"});
    let cycle = embedded(&json!({"a": step(&["b"]), "b": step(&["a"])}));
    let cases = [
        (
            json!({"customRef": named, "customSpec": one()}),
            "InvalidSpec",
            "spec.customRef, spec.customSpec: both are set; want one of them",
        ),
        (
            json!({"customRef": {"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow"}}),
            "InvalidSpec",
            "spec.customRef.name: is missing",
        ),
        (
            json!({"customRef": named}),
            "WorkflowNotFound",
            "spec.customRef.name: there is no workflow none in this namespace",
        ),
        (
            json!({"customSpec": cycle, "retries": 3}),
            "InvalidSpec",
            "spec.customSpec.spec.steps: the dependencies are a cycle: a -> b -> a",
        ),
        (
            json!({"customSpec": one(), "timeout": "soon"}),
            "InvalidSpec",
            "spec.timeout: `soon` is not a duration; write it as in 1h30m",
        ),
        (
            json!({"customSpec": one(), "workspaces": [{"name": "w"}]}),
            "CustomRunWorkspaceNotSupported",
            "spec.workspaces: a workflow has none; its Jobs have volumes",
        ),
    ];
    for (number, (spec, reason, message)) in cases.iter().enumerate() {
        let name = format!("wrong-{number}");
        world.ask(Form::CustomRun, &name, spec);
        let status = world.done(Form::CustomRun, &name).await;
        assert_eq!(condition(&status), ("False", *reason, *message));
        assert!(status["startTime"].is_string() && status["completionTime"].is_string());
    }
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 0);
    // As the webhook says it.
    let run = json!({"ref": named, "spec": {"apiVersion": "hindsight.dev/v1alpha1"}});
    world.ask(Form::Run, "old", &run);
    let status = world.done(Form::Run, "old").await;
    assert_eq!(
        condition(&status).2,
        "spec.ref, spec.spec: both are set; want one of them; spec.spec.kind: is missing"
    );
}

#[tokio::test]
async fn t61_08_equal_names_do_not_collide_and_nothing_is_looked_up() {
    let world = started().await;
    world.sim.namespace("other");
    world.ask(Form::CustomRun, "same", &json!({"customSpec": one()}));
    world.ask(Form::Run, "same", &json!({"spec": one()}));
    world.ask(Form::CustomRun, "same-too", &json!({"customSpec": one()}));
    world.done(Form::CustomRun, "same").await;
    world.done(Form::Run, "same").await;
    world.done(Form::CustomRun, "same-too").await;
    assert_eq!(world.creates(), 3);
    let creates = world.sim.calls().verb("create").resource(WORKFLOWS);
    assert_eq!(creates.count(), 3);
}

#[tokio::test]
async fn t61_13_and_t61_16_runs_of_other_controllers_are_never_touched() {
    let world = started().await;
    let theirs = json!({"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop"});
    let specs = [
        json!({"customSpec": theirs}),
        json!({"customRef": theirs}),
        json!({"customRef": theirs, "customSpec": one()}),
        json!({"customSpec": {"apiVersion": "hindsight.dev/v2", "kind": "Workflow"}}),
        json!({}),
    ];
    for (number, spec) in specs.iter().enumerate() {
        world.ask(Form::CustomRun, &format!("theirs-{number}"), spec);
    }
    // Their controller answers one that has a spec, and one that has a reference.
    for name in ["theirs-0", "theirs-1"] {
        let status = json!({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
        world
            .sim
            .merge(
                "tekton.dev",
                "customruns",
                NAMESPACE,
                name,
                status,
                "their-controller",
            )
            .unwrap();
    }
    world.ask(Form::CustomRun, "ours", &json!({"customSpec": one()}));
    world.done(Form::CustomRun, "ours").await;
    let written = world.sim.calls().verb("update").resource("customruns");
    assert!(written.all().iter().all(|call| call.name == "ours"));
    for number in 2..specs.len() {
        let run = world.run(Form::CustomRun, &format!("theirs-{number}"));
        assert!(run["status"].is_null(), "{run}");
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_deletes_its_workflow() {
    let world = started().await;
    world.ask(
        Form::CustomRun,
        "nightly",
        &json!({"customSpec": embedded(&json!({"one": endless(&[])})), "retries": 5}),
    );
    let workflow = world.running("nightly", 0, "one").await;
    world.cancel_run("nightly", "the PipelineRun was cancelled");
    let status = world.done(Form::CustomRun, "nightly").await;
    assert_eq!(
        condition(&status),
        (
            "False",
            "CustomRunCancelled",
            "the PipelineRun was cancelled"
        )
    );
    world
        .until(|sim| {
            sim.get(GROUP, WORKFLOWS, NAMESPACE, &workflow).is_none()
                && sim.count("batch", "jobs") == 0
        })
        .await;
    // One that never started is cancelled too.
    let mut spec = json!({"customSpec": one()});
    spec["status"] = json!("RunCancelled");
    world.ask(Form::CustomRun, "late", &spec);
    let status = world.done(Form::CustomRun, "late").await;
    assert_eq!(condition(&status).1, "CustomRunCancelled");
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 0);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_repeated_and_the_last_one_times_out() {
    let world = started().await;
    world.ask(
        Form::CustomRun,
        "nightly",
        &json!({
            "customSpec": embedded(&json!({"one": endless(&[])})), "retries": 1, "timeout": "1s",
        }),
    );
    let status = world.done(Form::CustomRun, "nightly").await;
    let (state, reason, message) = condition(&status);
    assert_eq!((state, reason), ("False", "CustomRunTimedOut"));
    assert_eq!(message, "the attempt was to end within 1s");
    let attempts = status["retriesStatus"].as_array().unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(condition(&attempts[0]).1, "CustomRunTimedOut");
    assert!(attempts[0]["startTime"].is_string() && attempts[0]["completionTime"].is_string());
    let first = world.attempt(Form::CustomRun, "nightly", 0);
    assert_eq!(
        attempts[0]["extraFields"]["workflow"]["name"],
        first.as_str()
    );
    world
        .until(|sim| sim.count(GROUP, WORKFLOWS) == 0 && sim.count("batch", "jobs") == 0)
        .await;
}

#[tokio::test]
async fn a_run_has_failed_once_its_retries_are_used_up() {
    let world = started().await;
    let failing = json!({"one": step_with(&[], &json!({"kubesim.dev/outcome": "fail"}))});
    world.ask(
        Form::CustomRun,
        "nightly",
        &json!({"customSpec": embedded(&failing), "retries": 2}),
    );
    let status = world.done(Form::CustomRun, "nightly").await;
    let (state, reason, message) = condition(&status);
    assert_eq!((state, reason), ("False", "StepFailed"));
    assert!(message.starts_with("step \"one\": Job "), "{message}");
    assert_eq!(status["retriesStatus"].as_array().unwrap().len(), 2);
    let names: Vec<String> = (0..3)
        .map(|n| world.attempt(Form::CustomRun, "nightly", n))
        .collect();
    assert_eq!(status["results"][0]["value"], names[2].as_str());
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 3);
    assert_eq!(world.creates(), 3);
    // Those of one reason are counted on one event.
    world.until(|_| world.events("nightly").len() == 3).await;
    let mut events = world.events("nightly");
    events.sort();
    let reasons: Vec<&str> = events.iter().map(|event| event.0.as_str()).collect();
    assert_eq!(reasons, ["Failed", "Retried", "Started"]);
}

#[tokio::test]
async fn a_workflow_that_others_delete_ends_the_run_and_a_run_that_is_deleted_ends_the_workflow() {
    let world = started().await;
    let long = json!({"customSpec": embedded(&json!({"one": endless(&[])})), "retries": 5});
    world.ask(Form::CustomRun, "nightly", &long);
    let workflow = world.running("nightly", 0, "one").await;
    world
        .sim
        .delete(GROUP, WORKFLOWS, NAMESPACE, &workflow)
        .unwrap();
    let status = world.done(Form::CustomRun, "nightly").await;
    assert_eq!(condition(&status).1, "WorkflowDeleted");
    assert_eq!(status["retriesStatus"], Value::Null);
    world.until(|sim| sim.count(GROUP, WORKFLOWS) == 0).await;

    world.ask(Form::CustomRun, "gone", &long);
    world.running("gone", 0, "one").await;
    world
        .sim
        .delete("tekton.dev", "customruns", NAMESPACE, "gone")
        .unwrap();
    world
        .until(|sim| sim.count(GROUP, WORKFLOWS) == 0 && sim.count("batch", "jobs") == 0)
        .await;
}

#[tokio::test]
async fn a_run_whose_kind_comes_late_is_run_and_one_that_goes_is_no_busy_loop() {
    let mut world = World::without_controller();
    world.config.kind_poll = Duration::from_millis(50);
    world.start().await;
    world.create("plain", &json!({"steps": {"one": step(&[])}}));
    world.ended("plain").await;
    world.sim.install(Crd::tekton_custom_run());
    world.ask(Form::CustomRun, "nightly", &json!({"customSpec": one()}));
    world.done(Form::CustomRun, "nightly").await;

    world.sim.uninstall(&Crd::tekton_custom_run());
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.sim.clear_calls();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = world.sim.calls().resource("customruns").count();
    assert!(asked < 60, "{asked} calls in half a second");

    world.sim.install(Crd::tekton_custom_run());
    world.ask(Form::CustomRun, "again", &json!({"customSpec": one()}));
    world.done(Form::CustomRun, "again").await;
}

#[tokio::test]
async fn custom_tasks_can_be_switched_off() {
    let mut world = tekton();
    world.config.custom_tasks = false;
    world.config.pipeline_runs = false;
    world.start().await;
    world.ask(Form::CustomRun, "nightly", &json!({"customSpec": one()}));
    world.create("plain", &json!({"steps": {"one": step(&[])}}));
    world.ended("plain").await;
    assert!(world.run(Form::CustomRun, "nightly")["status"].is_null());
    assert_eq!(world.sim.calls().resource("customruns").count(), 0);
}

#[tokio::test]
async fn two_controllers_without_a_lease_and_lost_answers_make_one_workflow_for_each_run() {
    let mut world = tekton();
    for resource in [WORKFLOWS, "customruns"] {
        let fault = Fault::lost_answer();
        world
            .sim
            .faults()
            .plan(fault.verb("create").resource(resource).times(5));
        let fault = Fault::lost_answer();
        world
            .sim
            .faults()
            .plan(fault.verb("update").resource(resource).times(5));
    }
    world.start().await;
    world.start().await;
    for number in 0..15 {
        world.ask(
            Form::CustomRun,
            &format!("run-{number}"),
            &json!({"customSpec": one()}),
        );
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    world.kill().await;
    world.start().await;
    for number in 0..15 {
        let status = world.done(Form::CustomRun, &format!("run-{number}")).await;
        assert_eq!(condition(&status).0, "True");
    }
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 15);
    assert_eq!(world.creates(), 15);
}

#[tokio::test]
async fn the_end_of_a_workflow_is_not_lost_while_the_controller_is_away() {
    let mut world = tekton();
    world.start().await;
    world.ask(
        Form::CustomRun,
        "nightly",
        &json!({"customSpec": embedded(&json!({"one": endless(&[])}))}),
    );
    let workflow = world.running("nightly", 0, "one").await;
    world.sim.faults().plan(
        Fault::status(503)
            .verb("update")
            .resource("customruns")
            .lasting(),
    );
    world.finish(&workflow, "one", &["SuccessCriteriaMet", "Complete"]);
    world.ended(&workflow).await;
    // Somebody collects it at once; it stays until its end was noted.
    world
        .sim
        .delete(GROUP, WORKFLOWS, NAMESPACE, &workflow)
        .unwrap();
    world.kill().await;
    world.sim.faults().clear();
    world.start().await;
    let status = world.done(Form::CustomRun, "nightly").await;
    assert_eq!(condition(&status).0, "True");
    world.until(|sim| sim.count(GROUP, WORKFLOWS) == 0).await;
}
