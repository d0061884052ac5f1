//! Workflows that do not go well.

use hindsight_workflow::FINALIZER;
use kube::api::{DeleteParams, ListParams, PostParams};
use kubesim::contract::eventually;
use serde_json::{Value, json};

use super::stage::{Stage, step};
use crate::support::{complete, failed, job_of};

fn message(workflow: &Value) -> &str {
    let conditions = workflow["status"]["conditions"].as_array().unwrap();
    let failed = conditions
        .iter()
        .find(|condition| condition["type"] == "Failed");
    failed.unwrap()["message"].as_str().unwrap()
}

pub(super) async fn wf_30_a_failed_job_fails_the_workflow_after_its_siblings(stage: Stage) {
    let stage = stage.with_controller().await;
    let steps = json!({
        "bad": step(&[]), "sibling": step(&[]), "never": step(&["bad"]), "nor": step(&["sibling"]),
    });
    stage.create("build", json!({"steps": steps})).await;
    stage.started("build", "bad").await;
    stage.started("build", "sibling").await;
    stage.fail("build", "bad").await;
    let is_failing = |object: &Value| object["status"]["conditions"][0]["type"] == "FailureTarget";
    stage
        .until("its failure is known", "build", is_failing)
        .await;
    stage.finish("build", "sibling").await;
    let (object, ending) = stage.ended("build").await;
    assert_eq!(ending, failed("StepFailed"));
    let said = format!("step \"bad\": Job {} failed: Test", job_of(&object, "bad"));
    assert_eq!(message(&object), said);
    assert_eq!(object["status"]["statuses"]["bad"]["complete"], false);
    assert_eq!(object["status"]["statuses"]["sibling"]["complete"], true);
    assert_eq!(stage.all_jobs().await.len(), 2);
    stage.told("build", "WorkflowEnded", "Warning").await;
}

pub(super) async fn wf_30_a_template_that_the_api_server_refuses_fails_its_step(stage: Stage) {
    let stage = stage.with_controller().await;
    let mut refused = step(&[]);
    refused["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    stage
        .create("build", json!({"steps": {"one": refused}}))
        .await;
    let (object, ending) = stage.ended("build").await;
    assert_eq!(ending, failed("StepFailed"));
    assert!(message(&object).contains("restartPolicy"), "{object}");
    assert_eq!(stage.all_jobs().await.len(), 0);
}

pub(super) async fn wf_28_a_deadline_ends_a_workflow_and_its_jobs(stage: Stage) {
    let stage = stage.with_controller().await;
    let steps = json!({"a": step(&[]), "b": step(&["a"])});
    stage
        .create("slow", json!({"activeDeadlineSeconds": 5, "steps": steps}))
        .await;
    stage.started("slow", "a").await;
    let (object, ending) = stage.ended("slow").await;
    assert_eq!(ending, failed("DeadlineExceeded"));
    assert!(object["status"]["completionTime"].is_string());
    assert!(object["status"]["statuses"]["b"].is_null());
    let jobs = &stage.jobs();
    eventually("its Job goes", || async move {
        Ok(jobs.list(&ListParams::default()).await?.items.is_empty())
    })
    .await
    .unwrap();
    stage.settle().await;
    assert_eq!(stage.all_jobs().await.len(), 0);
}

pub(super) async fn wf_43_a_delete_ends_running_jobs_and_no_others(stage: Stage) {
    let stage = stage.with_controller().await;
    stage
        .create("other", json!({"steps": {"long": step(&[])}}))
        .await;
    let steps = json!({
        "done": step(&[]), "long": step(&["done"]),
        "other": {"externalRef": {"kind": "Workflow", "name": "other"}},
    });
    stage.create("build", json!({"steps": steps})).await;
    stage.finish_all("build", &["done"]).await;
    stage.started("other", "long").await;
    let workflow = stage.started("build", "long").await;
    // Also without a policy: the kind is one of the cluster's own making, whose default is the background.
    stage
        .workflows()
        .delete("build", &DeleteParams::default())
        .await
        .unwrap();
    stage.gone("build").await;
    let long = stage
        .jobs()
        .get_opt(&job_of(&workflow, "long"))
        .await
        .unwrap();
    assert!(long.is_none_or(|job| job.metadata.deletion_timestamp.is_some()));
    assert!(stage.job("other", "long").await.is_some());
    stage.told("build", "WorkflowDeleted", "Normal").await;
}

pub(super) async fn wf_43_jobs_of_a_workflow_that_orphans_them_go_on(stage: Stage) {
    let stage = stage.with_controller().await;
    stage
        .create("build", json!({"steps": {"long": step(&[])}}))
        .await;
    let workflow = stage.started("build", "long").await;
    stage
        .workflows()
        .delete("build", &DeleteParams::orphan())
        .await
        .unwrap();
    // A garbage collector, where there is one, takes the rest.
    let api = &stage.workflows();
    eventually("it is released", || async move {
        let found = api.get_opt("build").await?;
        let finalizers = found.and_then(|found| found.metadata.finalizers);
        Ok(finalizers.is_none_or(|all| all.iter().all(|name| name != FINALIZER)))
    })
    .await
    .unwrap();
    stage.settle().await;
    let job = stage.jobs().get(&job_of(&workflow, "long")).await.unwrap();
    assert!(job.metadata.deletion_timestamp.is_none());
}

pub(super) async fn wf_24_a_foreign_job_of_the_name_is_neither_adopted_nor_deleted(
    mut stage: Stage,
) {
    let workflow = stage
        .create("build", json!({"steps": {"one": step(&[])}}))
        .await;
    let foreign = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job_of(&workflow, "one")},
        "spec": step(&[])["jobTemplate"]["spec"],
    });
    let foreign = serde_json::from_value(foreign).unwrap();
    let foreign = stage
        .jobs()
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    stage.start().await;
    assert_eq!(stage.ended("build").await.1, failed("JobNameConflict"));
    let job = stage.job("build", "one").await.unwrap();
    assert_eq!(job["metadata"]["uid"], json!(foreign.metadata.uid));
    assert!(job["metadata"]["ownerReferences"].is_null());
}

pub(super) async fn wf_11_a_workflow_fails_with_the_one_it_waits_for(stage: Stage) {
    let stage = stage.with_controller().await;
    let waits_for = |name: &str| {
        let other = json!({"externalRef": {"kind": "Workflow", "name": name}});
        json!({"steps": {"other": other, "after": step(&["other"])}})
    };
    stage.create("outer", waits_for("inner")).await;
    stage
        .create("inner", json!({"steps": {"bad": step(&[])}}))
        .await;
    stage.started("inner", "bad").await;
    stage.fail("inner", "bad").await;
    assert_eq!(
        stage.ended("outer").await.1,
        failed("ExternalWorkflowFailed")
    );
    // One that was complete before counts at once.
    stage.create("fine", json!({})).await;
    stage.ended("fine").await;
    stage.create("late", waits_for("fine")).await;
    stage.finish_all("late", &["after"]).await;
    assert_eq!(stage.ended("late").await.1, complete());
}
