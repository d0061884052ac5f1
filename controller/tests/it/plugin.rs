//! `kubectl workflow` beside a controller.

use hindsight_controller::cli::plugin::{command, run};
use serde_json::json;

use crate::support::{World, complete, ending, endless, step, step_with};

/// What the plugin prints, or why it does not.
async fn kubectl(world: &World, args: &[&str]) -> Result<String, String> {
    let args = ["kubectl-workflow"].iter().chain(args).chain(&["-n", "ci"]);
    let matches = command().try_get_matches_from(args).unwrap();
    let mut out = Vec::new();
    let done = run(world.sim.client(), &matches, &mut out).await;
    done.map(|()| String::from_utf8(out).unwrap())
        .map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn wf_60_a_workflow_is_described_cancelled_and_done_again() {
    let world = World::new().await;
    let bad = step_with(&["good"], &json!({"kubesim.dev/outcome": "fail"}));
    world.create(
        "build",
        &json!({"steps": {"good": step(&[]), "bad": bad, "last": step(&["bad"])}}),
    );
    world.ended("build").await;
    let text = kubectl(&world, &["describe", "build"]).await.unwrap();
    let rows: Vec<&str> = text.lines().rev().take(3).collect();
    assert!(
        rows[2].starts_with("  good  Complete  Job ci/build-good-"),
        "{text}"
    );
    assert!(
        rows[1].starts_with("  bad   Failed    Job ci/build-bad-")
            && rows[1].ends_with("after good"),
        "{text}"
    );
    assert_eq!(rows[0], "  last  Waiting   after bad (waiting)");
    let graph = kubectl(&world, &["graph", "build"]).await.unwrap();
    assert!(graph.contains("\"good\" -> \"bad\""), "{graph}");
    let list = kubectl(&world, &["get", "build"]).await.unwrap();
    assert!(list.contains("ci\tbuild\tFailed\t1/3\t2"), "{list}");

    let made = kubectl(&world, &["retry", "build"]).await.unwrap();
    let again = made.trim().strip_prefix("workflow.hindsight.dev/").unwrap();
    let again = again.strip_suffix(" created").unwrap();
    world.ended(again).await;
    let workflow = world.workflow(again);
    assert_eq!(
        workflow["metadata"]["annotations"]["hindsight.dev/retry-of"],
        "build"
    );
    assert!(workflow["spec"]["steps"]["good"].is_null());

    world.create("fine", &json!({}));
    world.ended("fine").await;
    assert_eq!(ending(&world.sim, "fine"), complete());
    assert_eq!(
        kubectl(&world, &["retry", "fine"]).await.unwrap_err(),
        "`fine` has not failed"
    );

    world.create("long", &json!({"steps": {"one": endless(&[])}}));
    world.started("long", "one").await;
    kubectl(&world, &["cancel", "long"]).await.unwrap();
    world
        .until(|sim| {
            sim.get("hindsight.dev", "workflows", "ci", "long")
                .is_none()
        })
        .await;
    // Nothing listens on this port.
    let asked = [
        "describe",
        "long",
        "--hindsight-server",
        "http://127.0.0.1:1",
    ];
    let missing = kubectl(&world, &asked).await.unwrap_err();
    assert!(
        missing.starts_with(
            "workflow `long` cannot be read: it is not in the cluster, and the history cannot be read"
        ),
        "{missing}"
    );
}
