//! What happens at the same time as a step starts.

use std::time::Duration;

use hindsight_cluster::LeaseConfig;
use hindsight_workflow::check_change;
use kube::{
    Api,
    api::PostParams,
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
};
use kubesim::Fault;
use serde_json::{Value, json};

use crate::support::{GROUP, NAMESPACE, WORKFLOWS, World, complete, ending, endless, step};

fn workflows(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1alpha1", "Workflow");
    let resource = ApiResource::from_gvk_with_plural(&kind, WORKFLOWS);
    Api::namespaced_with(world.sim.client(), NAMESPACE, &resource)
}

/// An editor as `kubectl edit` behind the webhook: it reads, changes and replaces what it read.
async fn edit(api: &Api<DynamicObject>, name: &str) -> bool {
    let old = api.get(name).await.unwrap();
    let mut new = old.clone();
    new.data["spec"]["steps"]["late"]["jobTemplate"]["spec"]["backoffLimit"] = json!(7);
    tokio::task::yield_now().await;
    let (before, after) = (
        serde_json::to_value(&old).unwrap(),
        serde_json::to_value(&new).unwrap(),
    );
    check_change(&before, &after).is_empty()
        && api
            .replace(name, &PostParams::default(), &new)
            .await
            .is_ok()
}

#[tokio::test]
async fn wf_42_of_an_edit_and_a_start_at_the_same_time_one_wins() {
    let world = World::new().await;
    let api = workflows(&world);
    let (mut won, mut lost) = (0, 0);
    for round in 0..40 {
        let name = format!("race-{round}");
        world.create(
            &name,
            &json!({"steps": {"early": step(&[]), "late": step(&["early"])}}),
        );
        tokio::time::sleep(Duration::from_millis(round % 8)).await;
        match edit(&api, &name).await {
            true => won += 1,
            false => lost += 1,
        }
        world.ended(&name).await;
        assert_eq!(ending(&world.sim, &name), complete());
        let spec = world.workflow(&name)["spec"]["steps"]["late"]["jobTemplate"]["spec"].clone();
        let job = world.job(&name, "late").unwrap();
        assert_eq!(job["spec"]["backoffLimit"], spec["backoffLimit"], "{name}");
    }
    assert_eq!(won + lost, 40);
    assert_eq!(world.creates(), 80);
}

#[tokio::test]
async fn wf_24_a_controller_that_dies_between_claim_and_job_is_replaced_by_one_that_goes_on() {
    let mut world = World::without_controller();
    world
        .sim
        .faults()
        .plan(Fault::silent().verb("create").resource("jobs"));
    world.start().await;
    world.create("build", &json!({"steps": {"one": step(&[])}}));
    let claimed = |sim: &kubesim::Sim| {
        let workflow = sim.get(GROUP, WORKFLOWS, NAMESPACE, "build").unwrap();
        workflow["status"]["statuses"]["one"]["reference"]["name"].is_string()
    };
    world.until(claimed).await;
    world.kill().await;
    assert!(world.status("build")["statuses"]["one"]["reference"]["uid"].is_null());
    world.sim.faults().clear();
    world.start().await;
    world.ended("build").await;
    assert_eq!(world.sim.count("batch", "jobs"), 1);
}

#[tokio::test]
async fn wf_24_a_lost_answer_to_a_create_gives_no_second_job() {
    let world = World::new().await;
    world.sim.faults().plan(
        Fault::lost_answer()
            .verb("create")
            .resource("jobs")
            .times(3),
    );
    world.create(
        "build",
        &json!({"steps": {"a": step(&[]), "b": step(&[]), "c": step(&["a", "b"])}}),
    );
    world.ended("build").await;
    assert_eq!(ending(&world.sim, "build"), complete());
    assert_eq!(world.sim.count("batch", "jobs"), 3);
}

#[tokio::test]
async fn wf_24_two_controllers_without_a_lease_create_each_job_once() {
    let mut world = World::without_controller();
    world.start().await;
    world.start().await;
    for number in 0..20 {
        world.create(
            &format!("build-{number}"),
            &json!({"steps": {"a": step(&[]), "b": step(&["a"]), "c": step(&["a"]), "d": step(&["b", "c"])}}),
        );
    }
    for number in 0..20 {
        world.ended(&format!("build-{number}")).await;
    }
    assert_eq!(world.creates(), 80);
    assert_eq!(world.sim.count("batch", "jobs"), 80);
}

#[tokio::test]
async fn a_delete_at_the_same_time_as_a_start_leaves_no_job_that_goes_on() {
    let world = World::new().await;
    for round in 0..30 {
        let name = format!("race-{round}");
        world.create(
            &name,
            &json!({"steps": {"a": step(&[]), "b": endless(&["a"])}}),
        );
        tokio::time::sleep(Duration::from_millis(round % 6)).await;
        world
            .sim
            .delete(GROUP, WORKFLOWS, NAMESPACE, &name)
            .unwrap();
    }
    let goes_on = |job: &Value| job["status"]["conditions"].is_null();
    world
        .until(|sim| {
            sim.count(GROUP, WORKFLOWS) == 0 && !sim.list("batch", "jobs").iter().any(goes_on)
        })
        .await;
}

#[tokio::test]
async fn a_replica_that_waits_for_the_lease_goes_on_when_the_first_ends() {
    let mut world = World::without_controller();
    let lease = |identity: &str| LeaseConfig {
        namespace: Some(NAMESPACE.to_owned()),
        name: "hindsight-workflow".to_owned(),
        identity: identity.to_owned(),
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_millis(20),
    };
    world.config.lease = Some(lease("first"));
    world.start().await;
    world
        .until(|sim| sim.count("coordination.k8s.io", "leases") == 1)
        .await;
    world.config.lease = Some(lease("second"));
    world.start().await;
    world.create("build", &json!({"steps": {"one": step(&[])}}));
    world.ended("build").await;
    world.stop().await;
    world.create("next", &json!({"steps": {"one": step(&[])}}));
    world.ended("next").await;
    let held = world.sim.get(
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        "hindsight-workflow",
    );
    assert_eq!(held.unwrap()["spec"]["holderIdentity"], "second");
    assert_eq!(world.creates(), 2);
}
