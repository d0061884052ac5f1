//! `hindsight describe`, `why` and `diff`.

use serde_json::{Value, json};

use super::objects::{given, history, record, release};
use crate::support::{
    Database, TestServer,
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
    process::{Said, run},
};

async fn asked(server: &TestServer, arguments: &[&str]) -> Said {
    run(&[arguments, &["--server", &server.url]].concat()).await
}

async fn with_history() -> (Database, TestServer) {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    history(&server).await;
    (database, server)
}

#[tokio::test]
async fn describe_draws_a_run_by_any_of_its_names() {
    let (_database, server) = with_history().await;
    let full = record("release-42");
    for name in [
        &["release-42", "-n", "shop"][..],
        &["shop/release-42"],
        &[&full],
    ] {
        let said = asked(&server, &[&["describe"], name].concat()).await;
        said.prints(
            0,
            "x release-42  PipelineRun  failed in 7m01s  (waited 4.0s)",
        );
        said.prints(0, "v succeeded  build");
        said.prints(0, "x failed       run");
        said.prints(0, "OOMKilled, exit 137");
        assert!(!said.out.contains('\u{1b}'), "{said:?}");
    }
    let said = asked(&server, &["describe", "shop/release-42", "-o", "json"]).await;
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["nodes"][2]["steps"][0]["exitCode"], 137);
    let said = asked(&server, &["describe", "shop/release-42", "-o", "yaml"]).await;
    said.prints(0, "outcome: FAILURE");
    server.stop().await;
}

#[tokio::test]
async fn why_says_what_ended_a_run_since_when_and_what_changed() {
    let (_database, server) = with_history().await;
    let said = asked(&server, &["why", "release-44", "-n", "shop"]).await;
    let lines: Vec<_> = said.out.lines().collect();
    assert_eq!(
        lines,
        [
            "What      step run of task test failed: OOMKilled (exit 137)",
            "Since     release-42, 2026-03-02T09:00:04Z; release-41 succeeded 1h00m before; 3 of 4 since \
             failed alike",
            "Changed   param revision a1 -> b2; build digest of run golang@sha256:release-41 -> \
             golang@sha256:release-42; test digest of run golang@sha256:release-41 -> \
             golang@sha256:release-42; test step run took 1m50s -> 2m41s; test took 1m50s -> 2m41s",
        ]
    );
    let said = asked(&server, &["why", "shop/release-44", "-o", "json"]).await;
    said.prints(0, r#""failedSince":"3""#);
    let said = asked(&server, &["why", "shop/release-41"]).await;
    said.fails(2, "did not fail");
    server.stop().await;
}

#[tokio::test]
async fn diff_shows_what_differs_from_the_last_success() {
    let (_database, server) = with_history().await;
    let only = ["diff", "shop/release-42", "--only", "params,timings"];
    let said = asked(&server, &only).await;
    said.prints(0, "what\tbefore\tafter\tchange\nparam revision\ta1\tb2\t\n");
    said.prints(0, "test took\t110\t161\t+46%\n");
    said.fails(0, "release-41 -> release-42: 3 values differ, 0 are equal");
    let only = ["diff", "shop/release-42", "--only", "params"];
    let said = asked(&server, &only).await;
    said.fails(0, "release-41 -> release-42: 1 value differs, 0 are equal");
    let pair = ["diff", "shop/release-42", "shop/release-42", "-o", "json"];
    let said = asked(&server, &pair).await;
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["differences"], &told["bName"]),
        (&Value::Null, &json!("release-42"))
    );
    let said = asked(&server, &["diff", "shop/release-40"]).await;
    said.fails(3, "no successful run of pipeline release started before");
    server.stop().await;
}

#[tokio::test]
async fn a_name_is_of_the_run_that_no_other_owns() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server, &release("same", 8, "a1", "Succeeded")).await;
    let child = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "same", "namespace": "shop", "uid": "child",
            "ownerReferences": [{"kind": "PipelineRun", "name": "same", "uid": "same"}]}});
    let name = "shop/results/same/records/child";
    server.given_record(name, TASK_RUN, &bytes(&child)).await;
    asked(&server, &["describe", "shop/same"])
        .await
        .prints(0, "same  PipelineRun  succeeded");
    let mut second = release("same", 9, "a1", "Failed");
    second["metadata"]["uid"] = json!("second");
    let name = "shop/results/second/records/second";
    server
        .given_record(name, PIPELINE_RUN, &bytes(&second))
        .await;
    let said = asked(&server, &["describe", "shop/same"]).await;
    said.prints(0, "same  PipelineRun  failed");
    said.fails(0, "several runs are called `same`; this is the newest");
    for command in ["describe", "why", "diff"] {
        let said = asked(&server, &[command, "gone", "-n", "shop"]).await;
        said.fails(3, "no run `gone` in namespace shop (-A looks in all)");
    }
    let quote = asked(&server, &["describe", r#"shop/x" || true || "x"#]).await;
    assert_eq!(quote.code, 3, "{quote:?}");
    server.stop().await;
}
