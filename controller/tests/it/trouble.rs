//! An API server that refuses a part of what it is asked, or does not answer.

use jiff::Timestamp;
use kubesim::Fault;
use serde_json::{Value, json};

use crate::support::{GROUP, NAMESPACE, WORKFLOWS, World, complete, ending, endless, failed, step};

#[tokio::test]
async fn an_event_that_is_not_answered_holds_up_neither_a_watch_nor_a_pass() {
    let world = World::new().await;
    let names: Vec<String> = (0..20).map(|number| format!("done-{number}")).collect();
    for name in &names {
        world.create(name, &json!({}));
    }
    for name in &names {
        world.ended(name).await;
    }
    let silent = Fault::silent().group("events.k8s.io").lasting();
    world.sim.faults().plan(silent);
    for name in &names {
        world.sim.delete(GROUP, WORKFLOWS, NAMESPACE, name).unwrap();
    }
    world.create("next", &json!({"steps": {"one": step(&[])}}));
    // One call may take 30 seconds, and here are many.
    world.ended("next").await;
    assert_eq!(ending(&world.sim, "next"), complete());
}

#[tokio::test]
async fn a_job_that_is_denied_holds_up_no_other_step_and_an_event_says_why() {
    let world = World::new().await;
    let deny = |review: &Value| {
        let is_of_a =
            review["request"]["object"]["metadata"]["labels"]["hindsight.dev/step"] == "a";
        let status = json!({"code": 403, "message": "exceeded quota: jobs"});
        json!({"response": {"allowed": !is_of_a, "status": status}})
    };
    world
        .sim
        .review("batch", "jobs", "quota.example.dev", deny)
        .unwrap();
    world.create(
        "build",
        &json!({"steps": {"a": step(&[]), "b": step(&[]), "c": step(&["b"])}}),
    );
    let is_complete = |workflow: &Value| workflow["status"]["statuses"]["c"]["complete"] == true;
    world
        .until(|sim| is_complete(&sim.get(GROUP, WORKFLOWS, NAMESPACE, "build").unwrap()))
        .await;
    assert!(world.job("build", "a").is_none());
    assert_eq!(ending(&world.sim, "build"), None);
    let denied = ("JobNotCreated".to_owned(), "Warning".to_owned());
    world
        .until(|_| world.events("build").contains(&denied))
        .await;
    let mut events = world.sim.list("events.k8s.io", "events");
    events.retain(|event| event["reason"] == "JobNotCreated");
    let note = events[0]["note"].as_str().unwrap();
    assert!(
        note.starts_with("step \"a\": Job build-a-") && note.contains("exceeded quota: jobs"),
        "{note}"
    );
}

#[tokio::test]
async fn an_external_object_that_may_not_be_read_is_waited_for_and_the_deadline_runs() {
    let world = World::new().await;
    world.sim.namespace("prod");
    let forbidden = Fault::status(403)
        .verb("get")
        .resource("jobs")
        .namespace("prod")
        .lasting();
    world.sim.faults().plan(forbidden);
    let release = json!({"kind": "Job", "namespace": "prod", "name": "release"});
    world.create(
        "build",
        &json!({"activeDeadlineSeconds": 5, "steps": {
            "release": {"externalRef": release}, "sibling": endless(&[]),
        }}),
    );
    world.started("build", "sibling").await;
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), failed("DeadlineExceeded"));
    let unreadable = ("ExternalRefUnreadable".to_owned(), "Warning".to_owned());
    world
        .until(|_| world.events("build").contains(&unreadable))
        .await;
}

#[tokio::test]
async fn wf_28_a_deadline_holds_while_jobs_are_denied() {
    let world = World::new().await;
    let forbidden = Fault::status(403).verb("create").resource("jobs").lasting();
    world.sim.faults().plan(forbidden);
    world.create(
        "build",
        &json!({"activeDeadlineSeconds": 7, "steps": {"one": step(&[])}}),
    );
    let status = world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), failed("DeadlineExceeded"));
    let time = |field: &str| -> Timestamp { status[field].as_str().unwrap().parse().unwrap() };
    let lasted = time("completionTime").duration_since(time("startTime"));
    // Passes are repeated after 6 and after 13 seconds.
    assert!(lasted.as_secs() < 12, "{lasted:?}");
}
