//! Which changes the API server refuses.

use serde_json::{Value, json};

use super::stage::{Stage, step};
use crate::support::complete;

/// What the definition says about changes.
pub(super) const SAID: [&str; 4] = [DELETED, MODIFIED, SELECTOR, FINISHED];

const DELETED: &str = "cannot delete a running or completed step";
const MODIFIED: &str = "cannot modify a running or completed step";
const SELECTOR: &str = "spec.selector does not change";
const FINISHED: &str = "the workflow is finished; its spec does not change any more";

async fn refused(stage: &Stage, patch: Value, definition: &str, webhook: &str) {
    let status = stage.change("build", patch).await.unwrap_err();
    let (code, expected) = match stage.is_simulated() {
        true => (400, webhook),
        false => (422, definition),
    };
    assert!(
        status.message.contains(expected),
        "{expected}: {}",
        status.message
    );
    assert_eq!(status.code, code, "{expected}");
}

fn steps(steps: Value) -> Value {
    json!({"spec": {"steps": steps}})
}

pub(super) async fn wf_40_steps_that_were_started_do_not_change(stage: Stage) {
    let stage = stage.with_controller().await;
    let spec = json!({"steps": {
        "done": step(&[]), "running": step(&["done"]), "waiting": step(&["running"]), "last": step(&["waiting"]),
    }});
    stage.create("build", spec).await;
    stage.finish_all("build", &["done"]).await;
    stage.started("build", "running").await;

    let gone = json!({"running": null, "waiting": null, "last": null});
    refused(
        &stage,
        steps(gone),
        DELETED,
        "cannot delete running step \"running\"",
    )
    .await;
    for (name, what) in [("running", "running"), ("done", "completed")] {
        let change = json!({name: {"jobTemplate": {"metadata": {"labels": {"a": "b"}}}}});
        let webhook = format!("cannot modify {what} step \"{name}\"");
        refused(&stage, steps(change), MODIFIED, &webhook).await;
        let change = json!({name: {"dependencies": ["extra"]}, "extra": step(&[])});
        refused(&stage, steps(change), MODIFIED, &webhook).await;
    }
    let missing = "depends on one that does not exist";
    refused(
        &stage,
        steps(json!({"waiting": null})),
        missing,
        "depends on \"waiting\", which is not",
    )
    .await;

    // What waits may change, go and come.
    let waiting = json!({"jobTemplate": {"spec": {"backoffLimit": 7}}});
    let change = json!({"waiting": waiting, "last": null, "extra": step(&["waiting"])});
    stage.change("build", steps(change)).await.unwrap();
    stage
        .finish_all("build", &["running", "waiting", "extra"])
        .await;
    assert_eq!(stage.ended("build").await.1, complete());
    let job = stage.job("build", "waiting").await.unwrap();
    assert_eq!(job["spec"]["backoffLimit"], 7);
    assert_eq!(stage.all_jobs().await.len(), 4);
}

pub(super) async fn wf_41_selectors_do_not_change_and_nothing_does_after_the_end(stage: Stage) {
    let stage = stage.with_controller().await;
    let spec = json!({
        "activeDeadlineSeconds": 3600,
        "selector": {"matchLabels": {"app": "shop"}},
        "steps": {"one": step(&[])},
    });
    stage.create("build", spec).await;
    stage.started("build", "one").await;
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}});
    refused(&stage, other, SELECTOR, "spec.selector: does not change").await;
    let none = json!({"spec": {"selector": null}});
    refused(&stage, none, SELECTOR, "spec.selector: does not change").await;
    let longer = json!({"spec": {"activeDeadlineSeconds": 7200}});
    stage.change("build", longer).await.unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    stage.change("build", label).await.unwrap();

    stage.finish("build", "one").await;
    assert_eq!(stage.ended("build").await.1, complete());
    let deadline = json!({"spec": {"activeDeadlineSeconds": 60}});
    refused(&stage, deadline, FINISHED, FINISHED).await;
    stage
        .change("build", json!({"metadata": {"labels": {"a": null}}}))
        .await
        .unwrap();

    // A new deadline counts from the start.
    stage
        .create(
            "late",
            json!({"activeDeadlineSeconds": 3600, "steps": {"one": step(&[])}}),
        )
        .await;
    stage.started("late", "one").await;
    stage
        .change("late", json!({"spec": {"activeDeadlineSeconds": 1}}))
        .await
        .unwrap();
    let failed = crate::support::failed("DeadlineExceeded");
    assert_eq!(stage.ended("late").await.1, failed);
}
