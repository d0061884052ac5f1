//! A run of 10,000 tasks, in a database of its own.

use std::{path::PathBuf, process::Command};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::{
    client::Http,
    data::Database,
    measure::{self, link},
};

pub const TASKS: usize = 10_000;
/// One task of so many fails.
const FAILS: usize = 1_000;
const AT_ONCE: i64 = 50;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Empty databases on the engines that `chosen` names, apart from those of other sizes.
pub async fn databases(chosen: &str) -> Vec<Database> {
    let mut all = Vec::new();
    if chosen.contains("sqlite") {
        let file = folder().join("ui-tasks.db");
        for end in ["", "-wal", "-shm"] {
            let old = format!("{}{end}", file.display());
            if std::fs::exists(&old).unwrap() {
                std::fs::remove_file(old).unwrap();
            }
        }
        let url = format!("sqlite:{}", file.display());
        all.push(Database {
            label: "sqlite",
            url,
            records: TASKS,
        });
    }
    if let Ok(server) = std::env::var("HINDSIGHT_TEST_POSTGRES")
        && chosen.contains("postgres")
    {
        let mut admin = PgConnection::connect(&server).await.unwrap();
        admin
            .execute("DROP DATABASE IF EXISTS ui_tasks")
            .await
            .unwrap();
        admin.execute("CREATE DATABASE ui_tasks").await.unwrap();
        let url = format!("{}/ui_tasks", server.rsplit_once('/').unwrap().0);
        all.push(Database {
            label: "postgres",
            url,
            records: TASKS,
        });
    }
    all
}

/// Stores the run and its tasks; gives the address of its page.
pub async fn imported(url: &str) -> String {
    let path = folder().join("ui-tasks.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects()});
    std::fs::write(&path, list.to_string()).unwrap();
    let import = Command::new(env!("CARGO_BIN_EXE_hindsight"))
        .args(["import", "--server", url])
        .arg(&path)
        .output();
    let import = import.unwrap();
    let said = String::from_utf8_lossy(&import.stderr);
    assert!(import.status.success(), "{said}");
    link(url, "/ui/runs?q=is:top", "/ui/run/").await
}

/// The milliseconds that the tree of the run with this page takes as JSON.
pub async fn tree(url: &str, page: &str, query: &str) -> f64 {
    let record = page.trim_start_matches("/ui/run/");
    let target = format!("/apis/hindsight.dev/v1/parents/{record}/tree{query}");
    let (_, text) = measure::page(&mut Http::one(url).await, &target).await;
    let tree: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(tree["nodes"].as_array().unwrap().len(), TASKS + 1);
    measure::server(url, &target).await
}

fn objects() -> Vec<Value> {
    let created: Timestamp = "2026-03-02T08:00:00Z".parse().unwrap();
    let at = |seconds: i64| (created + SignedDuration::from_secs(seconds)).to_string();
    let end = |fails: bool, reason: &str| {
        json!([{"type": "Succeeded", "status": if fails { "False" } else { "True" }, "reason": reason,
            "message": if fails { "\"step-run\" exited with code 1" } else { "All Steps have completed executing" }}])
    };
    let mut all = Vec::with_capacity(TASKS + 1);
    let mut children = Vec::with_capacity(TASKS);
    for number in 0..TASKS {
        let fails = number % FAILS == FAILS - 1;
        let begins = i64::try_from(number).unwrap() / AT_ONCE * 20;
        let name = format!("wide-1-shard-{number}");
        children.push(
            json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": name,
            "pipelineTaskName": format!("shard-{number}")}),
        );
        let reason = if fails { "Failed" } else { "Succeeded" };
        all.push(json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": name, "namespace": "wide", "uid": format!("00000000-0000-4000-9000-{number:012}"),
                "creationTimestamp": at(begins),
                "labels": {"tekton.dev/pipeline": "wide", "tekton.dev/pipelineRun": "wide-1",
                    "tekton.dev/pipelineTask": format!("shard-{number}")},
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": "wide-1",
                    "uid": "00000000-0000-4000-8000-000000000000", "controller": true}]},
            "spec": {"taskRef": {"name": "shard"}},
            "status": {"startTime": at(begins + 2), "completionTime": at(begins + 18), "conditions": end(fails, reason),
                "steps": [{"name": "run", "terminated": {"exitCode": i32::from(fails), "reason": "Completed",
                    "startedAt": at(begins + 5), "finishedAt": at(begins + 18)}}]},
        }));
    }
    let last = i64::try_from(TASKS).unwrap() / AT_ONCE * 20;
    all.push(json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "wide-1", "namespace": "wide", "uid": "00000000-0000-4000-8000-000000000000",
            "creationTimestamp": at(0), "labels": {"tekton.dev/pipeline": "wide"}},
        "spec": {"pipelineRef": {"name": "wide"}},
        "status": {"startTime": at(1), "completionTime": at(last), "conditions": end(true, "Failed"),
            "childReferences": children},
    }));
    all
}
