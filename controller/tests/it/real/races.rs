//! What happens at the same time as a step starts.

use std::time::Duration;

use hindsight_cluster::LeaseConfig;
use hindsight_workflow::{UID_LABEL, check_change};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use kubesim::contract::eventually;
use serde_json::{Value, json};

use super::stage::{Stage, step};
use crate::support::complete;

/// An editor as `kubectl edit` behind the webhook: reads, changes and replaces what it read.
async fn edit(stage: &Stage, name: &str) -> bool {
    let api = stage.workflows();
    let old = api.get(name).await.unwrap();
    let mut new = old.clone();
    new.data["spec"]["steps"]["late"]["jobTemplate"]["spec"]["backoffLimit"] = json!(7);
    check_change(&json!(old), &json!(new)).is_empty()
        && api
            .replace(name, &PostParams::default(), &new)
            .await
            .is_ok()
}

pub(super) async fn wf_42_of_an_edit_and_a_start_at_the_same_time_one_wins(stage: Stage) {
    let stage = stage.with_controller().await;
    for round in 0..12 {
        let name = format!("race-{round}");
        let steps = json!({"early": step(&[]), "late": step(&["early"])});
        stage.create(&name, json!({"steps": steps})).await;
        stage.started(&name, "early").await;
        stage.finish(&name, "early").await;
        tokio::time::sleep(Duration::from_millis(round * 2)).await;
        let has_won = edit(&stage, &name).await;
        stage.finish_all(&name, &["late"]).await;
        assert_eq!(stage.ended(&name).await.1, complete());
        let workflow = stage.workflow(&name).await;
        let wanted = &workflow["spec"]["steps"]["late"]["jobTemplate"]["spec"]["backoffLimit"];
        assert_eq!(*wanted == 7, has_won, "{name}");
        let job = stage.job(&name, "late").await.unwrap();
        // An API server writes the default down.
        assert_eq!(job["spec"]["backoffLimit"] == 7, has_won, "{name}");
    }
    assert_eq!(stage.all_jobs().await.len(), 24);
}

pub(super) async fn wf_24_two_controllers_without_a_lease_create_each_job_once(mut stage: Stage) {
    stage.start().await;
    stage.start().await;
    let steps = json!({
        "a": step(&[]), "b": step(&["a"]), "c": step(&["a"]), "d": step(&["b", "c"]),
    });
    let names: Vec<String> = (0..4).map(|number| format!("build-{number}")).collect();
    for name in &names {
        stage.create(name, json!({"steps": steps})).await;
    }
    for name in &names {
        stage.finish_all(name, &["a", "b", "c", "d"]).await;
        assert_eq!(stage.ended(name).await.1, complete());
    }
    assert_eq!(stage.all_jobs().await.len(), 16);
}

pub(super) async fn wf_24_a_job_that_others_delete_is_created_again(stage: Stage) {
    let stage = stage.with_controller().await;
    stage
        .create("build", json!({"steps": {"one": step(&[])}}))
        .await;
    let before = stage.started("build", "one").await;
    let job = &before["status"]["statuses"]["one"]["reference"];
    let name = job["name"].as_str().unwrap();
    let params = DeleteParams::background();
    stage.jobs().delete(name, &params).await.unwrap();
    let is_another = |object: &Value| {
        let now = &object["status"]["statuses"]["one"]["reference"]["uid"];
        now.is_string() && *now != job["uid"]
    };
    stage
        .until("it is created again", "build", is_another)
        .await;
    stage.finish("build", "one").await;
    assert_eq!(stage.ended("build").await.1, complete());
}

pub(super) async fn a_delete_at_the_same_time_as_a_start_leaves_no_job_that_goes_on(stage: Stage) {
    let stage = stage.with_controller().await;
    for round in 0..12 {
        let name = format!("race-{round}");
        let steps = json!({"a": step(&[]), "b": step(&["a"])});
        stage.create(&name, json!({"steps": steps})).await;
        if round % 2 == 0 {
            stage.started(&name, "a").await;
            stage.finish(&name, "a").await;
        }
        tokio::time::sleep(Duration::from_millis(round * 2)).await;
        stage.delete(&name).await;
    }
    let (workflows, jobs) = (&stage.workflows(), &stage.jobs());
    eventually("nothing goes on", || async move {
        let all = ListParams::default();
        let left = workflows.list(&all).await?.items;
        let jobs = jobs.list(&all.labels(UID_LABEL)).await?.items;
        let goes_on = |job: &DynamicObject| {
            job.metadata.deletion_timestamp.is_none() && job.data["status"]["conditions"].is_null()
        };
        Ok(left.is_empty() && !jobs.iter().any(goes_on))
    })
    .await
    .unwrap();
}

/// Who holds the lease.
async fn holder(leases: &Api<Lease>) -> Result<Option<String>, kube::Error> {
    let lease = leases.get_opt("hindsight-workflow").await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity))
}

pub(super) async fn a_replica_that_stands_by_goes_on_when_the_first_ends(mut stage: Stage) {
    let namespace = stage.here.namespace.clone();
    let lease = |identity: &str| LeaseConfig {
        namespace: Some(namespace.clone()),
        name: "hindsight-workflow".to_owned(),
        identity: identity.to_owned(),
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_millis(50),
    };
    let leases: &Api<Lease> = &Api::namespaced(stage.here.client.clone(), &namespace);
    stage.config.lease = Some(lease("first"));
    stage.start().await;
    eventually("the first leads", || async move {
        Ok(holder(leases).await?.as_deref() == Some("first"))
    })
    .await
    .unwrap();
    stage.config.lease = Some(lease("second"));
    stage.start().await;
    stage
        .create("build", json!({"steps": {"one": step(&[])}}))
        .await;
    stage.started("build", "one").await;
    stage.stop().await;
    stage.finish("build", "one").await;
    assert_eq!(stage.ended("build").await.1, complete());
    assert_eq!(holder(leases).await.unwrap().as_deref(), Some("second"));
}
