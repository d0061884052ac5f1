//! How workflows end that do not go well.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    GROUP, NAMESPACE, WORKFLOWS, World, ending, endless, failed, job_of, step, step_with,
};

fn failing() -> Value {
    step_with(&[], &json!({"kubesim.dev/outcome": "fail"}))
}

fn message(status: &Value) -> &str {
    let conditions = status["conditions"].as_array().unwrap();
    let failed = conditions
        .iter()
        .find(|condition| condition["type"] == "Failed")
        .unwrap();
    failed["message"].as_str().unwrap()
}

#[tokio::test]
async fn wf_03_what_admission_let_through_fails_and_starts_nothing() {
    let world = World::new().await;
    world.create(
        "cycle",
        &json!({"steps": {"a": step(&["b"]), "b": step(&["a"]), "c": step(&[])}}),
    );
    world.create("broken", &json!({"steps": 7}));
    let status = world.ended("cycle").await;
    assert_eq!(ending(&world.sim, "cycle"), failed("InvalidSpec"));
    assert_eq!(
        message(&status),
        "spec.steps: the dependencies are a cycle: a -> b -> a"
    );
    world.ended("broken").await;
    assert_eq!(ending(&world.sim, "broken"), failed("InvalidSpec"));
    assert_eq!(world.creates(), 0);
}

#[tokio::test]
async fn wf_28_a_deadline_ends_a_workflow_without_any_news() {
    let world = World::new().await;
    let begin = Instant::now();
    world.create(
        "slow",
        &json!({"activeDeadlineSeconds": 2, "steps": {"a": endless(&[]), "b": step(&["a"])}}),
    );
    world.started("slow", "a").await;
    let status = world.ended("slow").await;
    let took = begin.elapsed();
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(20),
        "{took:?}"
    );
    assert_eq!(ending(&world.sim, "slow"), failed("DeadlineExceeded"));
    let time = |field: &str| -> Timestamp { status[field].as_str().unwrap().parse().unwrap() };
    let lasted = time("completionTime")
        .duration_since(time("startTime"))
        .as_secs();
    assert!((2..=4).contains(&lasted), "{lasted}");
    // Its Job goes, and no other comes.
    world.until(|sim| sim.count("batch", "jobs") == 0).await;
    assert_eq!(world.creates(), 1);
    let deletes = world.sim.calls().verb("delete").resource("jobs");
    assert_eq!(deletes.count(), 1);
}

#[tokio::test]
async fn wf_30_a_failed_job_fails_the_workflow_after_its_siblings_and_names_step_and_job() {
    let world = World::new().await;
    world.create(
        "build",
        &json!({"steps": {
            "bad": failing(),
            "sibling": step_with(&[], &json!({"kubesim.dev/runs-for": "300"})),
            "never": step(&["bad"]), "nor": step(&["sibling"]),
        }}),
    );
    let status = world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), failed("StepFailed"));
    let job = job_of(&world.workflow("build"), "bad");
    assert_eq!(
        message(&status),
        format!("step \"bad\": Job {job} failed: BackoffLimitExceeded")
    );
    assert_eq!(status["statuses"]["bad"]["complete"], false);
    assert_eq!(status["statuses"]["sibling"]["complete"], true);
    assert_eq!(world.creates(), 2);
    let ended = ("WorkflowEnded".to_owned(), "Warning".to_owned());
    world
        .until(|_| world.events("build").contains(&ended))
        .await;
}

#[tokio::test]
async fn a_template_that_the_api_server_refuses_fails_its_step() {
    let world = World::new().await;
    let refused = kubesim::Fault::status(422)
        .verb("create")
        .resource("jobs")
        .lasting();
    world.sim.faults().plan(refused);
    world.create("build", &json!({"steps": {"one": step(&[])}}));
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), failed("StepFailed"));
}

#[tokio::test]
async fn wf_24_a_foreign_job_of_the_name_is_neither_adopted_nor_deleted() {
    let mut world = World::without_controller();
    let workflow = world.create("build", &json!({"steps": {"one": step(&[])}}));
    let foreign = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": job_of(&workflow, "one"), "namespace": NAMESPACE},
        "spec": step(&[])["jobTemplate"]["spec"],
    });
    let foreign = world.sim.create(foreign).unwrap();
    world.start().await;
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), failed("JobNameConflict"));
    let job = world.job("build", "one").unwrap();
    assert_eq!(job["metadata"]["uid"], foreign["metadata"]["uid"]);
    assert!(job["metadata"]["ownerReferences"].is_null());
}

#[tokio::test]
async fn wf_43_a_delete_ends_running_jobs_without_a_garbage_collector() {
    let world = World::new().await;
    world.sim.stop_controllers();
    world.create("other", &json!({"steps": {"long": endless(&[])}}));
    world.create(
        "build",
        &json!({"steps": {
            "done": step(&[]), "long": endless(&["done"]),
            "other": {"externalRef": {"kind": "Workflow", "name": "other"}},
        }}),
    );
    world.started("build", "long").await;
    world.started("other", "long").await;
    let workflow = world.workflow("build");
    let job = |step: &str| {
        world
            .sim
            .get("batch", "jobs", NAMESPACE, &job_of(&workflow, step))
    };
    world
        .sim
        .delete(GROUP, WORKFLOWS, NAMESPACE, "build")
        .unwrap();
    world
        .until(|sim| sim.get(GROUP, WORKFLOWS, NAMESPACE, "build").is_none())
        .await;
    assert!(job("long").is_none());
    assert!(job("done").is_some());
    assert!(world.job("other", "long").is_some());
    let deletes = world.sim.calls().verb("delete").resource("jobs");
    assert_eq!(deletes.count(), 1);
    let deleted = ("WorkflowDeleted".to_owned(), "Normal".to_owned());
    world
        .until(|_| world.events("build").contains(&deleted))
        .await;
}

#[tokio::test]
async fn a_job_that_somebody_deletes_while_it_runs_is_created_again() {
    let world = World::new().await;
    world.create("build", &json!({"steps": {"one": endless(&[])}}));
    world.started("build", "one").await;
    let workflow = world.workflow("build");
    let (job, uid) = (
        job_of(&workflow, "one"),
        workflow["status"]["statuses"]["one"]["reference"]["uid"].clone(),
    );
    world.sim.delete("batch", "jobs", NAMESPACE, &job).unwrap();
    world
        .until(|sim| {
            let workflow = sim.get(GROUP, WORKFLOWS, NAMESPACE, "build").unwrap();
            let now = &workflow["status"]["statuses"]["one"]["reference"]["uid"];
            now.is_string() && *now != uid
        })
        .await;
}
