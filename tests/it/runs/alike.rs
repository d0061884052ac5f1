//! Which runs of a pipeline failed for the same cause.

use serde_json::{Value, json};

use super::objects::{given, given_failure, record, release};
use crate::support::{Database, TestServer, http::Http, objects::bytes, process, server::on_each};

/// A success, three failures of one cause, and one of another.
async fn with_failures(server: &TestServer) {
    given(server, &release("r0", 7, "a", "Succeeded")).await;
    for (run, hour, code, message) in [
        (
            "r1",
            8,
            1,
            "pod shop/r1-test-x7k2p: dial tcp 10.0.0.17:5432: connection refused after 120ms",
        ),
        (
            "r2",
            9,
            1,
            "pod shop/r2-test-b2m9c: dial tcp 10.0.3.201:5432: connection refused after 2.5s",
        ),
        (
            "r3",
            10,
            1,
            "pod shop/r3-test-zz4qd: dial tcp 10.1.0.2:5432: connection refused after 7s",
        ),
        ("r4", 11, 2, "cannot find package lodash in the registry"),
    ] {
        given_failure(server, (run, hour), code, message).await;
    }
}

/// What REST answers for a run.
async fn why(server: &TestServer, run: &str) -> Value {
    let mut http = Http::one(&server.url).await;
    let path = format!("/apis/hindsight.dev/v1/parents/{}/failure", record(run));
    http.send("GET", &path, &[], "").await.ok()
}

/// How many of how many runs are alike, and which others.
fn alike(told: &Value) -> (&str, &str, Vec<&str>) {
    let alike = &told["alike"];
    let records = alike["records"].as_array().into_iter().flatten();
    (
        alike["count"].as_str().unwrap(),
        alike["of"].as_str().unwrap(),
        records.map(|name| name.as_str().unwrap()).collect(),
    )
}

#[tokio::test]
async fn failures_of_one_cause_are_alike_whatever_their_ids() {
    on_each(|server| async move {
        with_failures(&server).await;
        let told = why(&server, "r2").await;
        assert_eq!(told["failedSince"], "4");
        let others = [record("r3"), record("r1")];
        assert_eq!(
            alike(&told),
            ("3", "4", others.iter().map(String::as_str).collect())
        );
        let (key, template) = (&told["signature"]["key"], &told["signature"]["template"]);
        let template = template.as_str().unwrap();
        assert!(template.contains("connection refused"), "{template}");
        for value in ["b2m9c", "10.0.3.201", "2.5s"] {
            assert!(!template.contains(value), "{template}");
        }
        assert_eq!(why(&server, "r1").await["signature"]["key"], *key);
        let other = why(&server, "r4").await;
        assert_eq!(alike(&other), ("1", "4", Vec::new()));
        assert_ne!(other["signature"]["key"], *key);
        assert_eq!(told.get("notes"), None);
        let said = process::run(&["why", "shop/r2", "--server", &server.url]).await;
        said.prints(0, "; 4 of 4 since failed, 3 of them alike\n");
    })
    .await;
}

/// A workflow of a template that failed at this hour, because a pod of it said this.
fn workflow(run: &str, hour: u32, message: &str) -> Value {
    let time = |minute: u32| format!("2026-03-02T{hour:02}:{minute:02}:00Z");
    let node = |name: &str, kind: &str, message: &str| {
        json!({"id": name, "name": name, "type": kind, "phase": "Failed", "message": message,
            "startedAt": time(1), "finishedAt": time(5), "boundaryID": run})
    };
    let mut top = node(run, "Steps", "child failed");
    top.as_object_mut().unwrap().remove("boundaryID");
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": run, "namespace": "shop", "uid": run, "creationTimestamp": time(0),
            "labels": {"workflows.argoproj.io/workflow-template": "etl"}},
        "status": {"phase": "Failed", "message": "child failed", "startedAt": time(1),
            "finishedAt": time(5), "nodes": {run: top,
                format!("{run}-1"): node(&format!("{run}.load"), "Pod", message)}},
    })
}

async fn given_workflows(server: &TestServer, count: u32) {
    for hour in 0..count {
        let run = format!("w{hour}");
        let object = workflow(&run, hour, "cannot start");
        let name = record(&run);
        server
            .given_record(&name, "argoproj.io/v1alpha1.Workflow", &bytes(&object))
            .await;
    }
}

#[tokio::test]
async fn every_failure_with_a_record_is_compared_without_payloads() {
    let database = Database::sqlite();
    // Of the run itself four records are read, and none of others.
    let server = TestServer::start_with(&database, &[("scan_budget", "4")]).await;
    for number in 0..22 {
        let run = format!("r{number}");
        let code = if number == 5 { 2 } else { 1 };
        given_failure(&server, (&run, number), code, "cannot start").await;
    }
    let told = why(&server, "r0").await;
    assert_eq!(told.get("notes"), None);
    let (count, of, records) = alike(&told);
    assert_eq!((count, of, records.len()), ("21", "22", 5));
    assert_eq!(records[0], record("r21"));
    let said = process::run(&["why", "shop/r0", "--server", &server.url]).await;
    said.prints(0, "22 of 22 since failed, 21 of them alike");
    server.stop().await;
}

#[tokio::test]
async fn at_most_the_twenty_newest_payloads_are_compared() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_workflows(&server, 22).await;
    let told = why(&server, "w0").await;
    let (count, of, records) = alike(&told);
    assert_eq!((count, of, records.len()), ("20", "20", 5));
    assert_eq!(records[0], record("w21"));
    let said = process::run(&["why", "shop/w0", "--server", &server.url]).await;
    said.prints(0, "22 of 22 since failed, 20 of the newest 20 alike");
    server.stop().await;
}

#[tokio::test]
async fn comparing_payloads_ends_with_the_scan_budget_and_says_so() {
    let database = Database::sqlite();
    // Of each other workflow one record is read, as there is nothing below it.
    let server = TestServer::start_with(&database, &[("scan_budget", "7")]).await;
    given_workflows(&server, 10).await;
    let told = why(&server, "w9").await;
    let (count, of, _) = alike(&told);
    assert_eq!((count, of), ("7", "7"));
    assert_eq!(
        told["notes"][0],
        "one call reads 7 records (scan_budget); older failures are not compared"
    );
    let said = process::run(&["why", "shop/w9", "--server", &server.url]).await;
    said.fails(0, "warning: one call reads 7 records (scan_budget)");
    server.stop().await;
}
