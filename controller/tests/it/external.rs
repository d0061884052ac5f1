//! Steps that wait for other workflows and Jobs.

use serde_json::{Map, Value, json};

use crate::support::{GROUP, WORKFLOWS, World, complete, ending, endless, failed, step, step_with};

fn waits_for(reference: &Value) -> Value {
    json!({"steps": {"other": {"externalRef": reference}, "after": step(&["other"])}})
}

#[tokio::test]
async fn wf_11_and_wf_29_a_step_completes_with_a_workflow_also_of_another_namespace() {
    let world = World::new().await;
    world.sim.namespace("prod");
    let other = json!({"kind": "Workflow", "apiVersion": "hindsight.dev/v1alpha1", "namespace": "prod", "name": "release"});
    world.create("build", &waits_for(&other));
    let waits = ("ExternalRefNotFound".to_owned(), "Warning".to_owned());
    world
        .until(|_| world.events("build").contains(&waits))
        .await;
    assert_eq!(world.creates(), 0);

    let slow = step_with(&[], &json!({"kubesim.dev/runs-for": "100"}));
    world.create_in("prod", "release", &json!({"steps": {"ship": slow}}));
    let status = world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), complete());
    let release = world.sim.get(GROUP, WORKFLOWS, "prod", "release").unwrap();
    assert_eq!(
        status["statuses"]["other"],
        json!({"complete": true, "reference": {
            "kind": "Workflow", "apiVersion": "hindsight.dev/v1alpha1", "namespace": "prod",
            "name": "release", "uid": release["metadata"]["uid"],
        }})
    );
    // A workflow that was complete before counts at once.
    world.create("late", &waits_for(&other));
    world.ended("late").await;
    let told = world.events("late");
    assert!(!told.contains(&waits), "{told:?}");
}

#[tokio::test]
async fn wf_11_workflows_are_composed_of_workflows_and_fail_with_them() {
    let world = World::new().await;
    let bad = step_with(&[], &json!({"kubesim.dev/outcome": "fail"}));
    world.create(
        "outer",
        &waits_for(&json!({"kind": "Workflow", "name": "middle"})),
    );
    world.create(
        "middle",
        &waits_for(&json!({"kind": "Workflow", "name": "inner"})),
    );
    world.create("inner", &json!({"steps": {"bad": bad}}));
    world.ended("outer").await;
    assert_eq!(ending(&world.sim, "inner"), failed("StepFailed"));
    assert_eq!(
        ending(&world.sim, "middle"),
        failed("ExternalWorkflowFailed")
    );
    assert_eq!(
        ending(&world.sim, "outer"),
        failed("ExternalWorkflowFailed")
    );
}

#[tokio::test]
async fn wf_11_a_step_completes_with_a_job_that_is_not_of_a_workflow() {
    let world = World::new().await;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "import", "namespace": "ci", "annotations": {"kubesim.dev/runs-for": "300"}},
        "spec": step(&[])["jobTemplate"]["spec"],
    });
    let job = world.sim.create(job).unwrap();
    world.create(
        "build",
        &waits_for(&json!({"kind": "Job", "name": "import"})),
    );
    world.started("build", "other").await;
    assert_eq!(ending(&world.sim, "build"), None);
    let status = world.ended("build").await;
    assert_eq!(
        status["statuses"]["other"]["reference"]["uid"],
        job["metadata"]["uid"]
    );
    assert_eq!(ending(&world.sim, "build"), complete());
}

#[tokio::test]
async fn workflows_that_are_watched_are_not_read_again_for_those_that_wait_for_them() {
    let world = World::new().await;
    let names: Vec<String> = (0..50).map(|number| format!("other-{number}")).collect();
    for name in &names {
        world.create(name, &json!({"steps": {"long": endless(&[])}}));
    }
    for name in &names {
        world.started(name, "long").await;
    }
    world.sim.clear_calls();
    let waits = |name: &String| {
        let step = json!({"externalRef": {"kind": "Workflow", "name": name}});
        (name.clone(), step)
    };
    let steps: Map<String, Value> = names.iter().map(waits).collect();
    world.create("build", &json!({"steps": steps}));
    world.started("build", "other-0").await;
    for name in &names {
        world.finish(name, "long", &["SuccessCriteriaMet", "Complete"]);
    }
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), complete());
    let reads = world.sim.calls().verb("get").resource(WORKFLOWS);
    assert!(reads.count() < 50, "{} reads", reads.count());
}

#[tokio::test]
async fn wf_20_the_start_of_what_is_waited_for_is_not_the_start() {
    let world = World::new().await;
    world.create("other", &json!({"steps": {"long": endless(&[])}}));
    world.started("other", "long").await;
    world.create(
        "build",
        &waits_for(&json!({"kind": "Workflow", "name": "other"})),
    );
    world.started("build", "other").await;
    let start = world.status("build")["startTime"].clone();
    let patch = json!({"status": {"startTime": "2020-01-01T00:00:00Z"}});
    world
        .sim
        .merge(GROUP, WORKFLOWS, "ci", "other", patch, "test")
        .unwrap();
    world.create("mark", &json!({}));
    world.ended("mark").await;
    assert_eq!(world.status("build")["startTime"], start);
}
