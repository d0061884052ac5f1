//! Steps start when they may, and a workflow that goes well is complete.

use hindsight_controller::config::Config;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{NAMESPACE, World, complete, ending, endless, job_of, step};

fn diamond() -> Value {
    json!({"steps": {
        "one": step(&[]), "two": step(&["one"]), "three": step(&["one"]), "four": step(&["two", "three"]),
    }})
}

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn wf_20_and_wf_26_a_workflow_is_complete_once_all_its_steps_are() {
    let world = World::new().await;
    world.create("build", &diamond());
    let status = world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), complete());
    let (start, end) = (time(&status["startTime"]), time(&status["completionTime"]));
    assert!(start <= end);
    let condition = &status["conditions"][0];
    assert!(condition["lastProbeTime"].is_string() && condition["lastTransitionTime"].is_string());
    assert_eq!(
        (&status["phase"], &status["progress"]),
        (&json!("Complete"), &json!("4/4"))
    );
    assert_eq!(world.creates(), 4);

    // Whatever becomes of its Jobs afterwards.
    let job = job_of(&world.workflow("build"), "two");
    world.sim.delete("batch", "jobs", NAMESPACE, &job).unwrap();
    world.create("next", &json!({"steps": {"only": step(&[])}}));
    world.ended("next").await;
    assert_eq!(world.creates(), 5);
    assert_eq!(world.status("build"), status);
    // Nothing holds it, so that deleting it takes no controller.
    world
        .until(|sim| {
            let build = sim
                .get("hindsight.dev", "workflows", NAMESPACE, "build")
                .unwrap();
            build["metadata"]["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty)
        })
        .await;
}

#[tokio::test]
async fn wf_21_independent_steps_run_at_the_same_time_and_others_wait_for_all() {
    let world = World::without_controller().without_jobs();
    let mut world = world;
    world.start().await;
    world.create("build", &diamond());
    world.started("build", "one").await;
    assert!(world.job("build", "two").is_none());
    world.finish("build", "one", &["SuccessCriteriaMet", "Complete"]);
    world.started("build", "two").await;
    world.started("build", "three").await;
    world.finish("build", "two", &["SuccessCriteriaMet", "Complete"]);
    world
        .until(|sim| {
            let build = sim
                .get("hindsight.dev", "workflows", NAMESPACE, "build")
                .unwrap();
            build["status"]["statuses"]["two"]["complete"] == true
        })
        .await;
    assert!(world.job("build", "four").is_none());
    world.finish("build", "three", &["SuccessCriteriaMet", "Complete"]);
    world.started("build", "four").await;
}

#[tokio::test]
async fn wf_22_and_wf_23_status_and_job_name_each_other() {
    let world = World::new().await;
    let workflow = world.create(
        "build",
        &json!({"metadata": {"labels": {"team": "shop"}}, "steps": {"one": endless(&[])}}),
    );
    world.started("build", "one").await;
    let job = world.job("build", "one").unwrap();
    assert_eq!(
        world.status("build")["statuses"],
        json!({"one": {"complete": false, "reference": {
            "kind": "Job", "apiVersion": "batch/v1", "namespace": NAMESPACE,
            "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
        }}})
    );
    let uid = &workflow["metadata"]["uid"];
    assert_eq!(
        job["metadata"]["labels"],
        json!({
            "team": "shop", "hindsight.dev/step": "one",
            "hindsight.dev/workflow": "build", "hindsight.dev/workflow-uid": uid,
        })
    );
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (uid, &json!(true)));
}

#[tokio::test]
async fn wf_25_counters_of_a_job_do_not_end_a_step() {
    let mut world = World::without_controller().without_jobs();
    world.start().await;
    world.create("build", &json!({"steps": {"one": step(&[])}}));
    world.started("build", "one").await;
    let job = job_of(&world.workflow("build"), "one");
    let counters = json!({"status": {"succeeded": 1, "ready": 0}});
    world
        .sim
        .merge("batch", "jobs", NAMESPACE, &job, counters, "test")
        .unwrap();
    // A later workflow is passed over after the news of this Job.
    world.create("other", &json!({}));
    world.ended("other").await;
    assert_eq!(ending(&world.sim, "build"), None);
    world.finish("build", "one", &["SuccessCriteriaMet", "Complete"]);
    world.ended("build").await;
}

#[tokio::test]
async fn wf_27_and_wf_50_a_workflow_without_steps_is_complete_and_its_events_tell_its_life() {
    let world = World::new().await;
    world.create("empty", &json!({}));
    world.ended("empty").await;
    world
        .sim
        .delete("hindsight.dev", "workflows", NAMESPACE, "empty")
        .unwrap();
    world.until(|_| world.events("empty").len() == 4).await;
    let normal = |reason: &str| (reason.to_owned(), "Normal".to_owned());
    assert_eq!(
        world.events("empty"),
        [
            "WorkflowCreated",
            "WorkflowStarted",
            "WorkflowEnded",
            "WorkflowDeleted"
        ]
        .map(normal)
    );
}

#[tokio::test]
async fn a_rate_limit_of_writes_holds_for_all_of_them() {
    let mut world = World::without_controller();
    world.config = Config {
        writes_per_second: std::num::NonZeroU32::new(20),
        ..world.config.clone()
    };
    world.start().await;
    let begin = tokio::time::Instant::now();
    world.create(
        "build",
        &json!({"steps": {"a": step(&[]), "b": step(&["a"]), "c": step(&["b"])}}),
    );
    world.ended("build").await;
    let writes = world.sim.calls();
    let writes = writes.filter(|call| ["create", "update", "delete", "patch"].contains(&call.verb));
    // All but the burst waited for their turns.
    let least = (writes.count() as f64 - 4.0) / 20.0;
    assert!(
        begin.elapsed().as_secs_f64() >= least,
        "{} writes",
        writes.count()
    );
}
