//! Measures what docs/adr/0002-storage-layout.md says; run by hand, on an idle machine:
//!
//! ```text
//! tests/with-postgres cargo test -p hindsight --lib storage::measure -- --ignored --nocapture
//! ```

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};
use sqlx::{ConnectOptions, Executor, Row, postgres::PgConnectOptions};
use tokio::sync::Mutex;

use super::{
    Change,
    conformance::{
        World,
        backends::{Database, PostgresDatabase, SqliteFile, postgres_server},
        fixtures::{Dice, record, result},
    },
};

const RUNS: usize = 300;
const TASKS: usize = 11;

fn hex(dice: &mut Dice, digits: usize) -> String {
    (0..digits)
        .map(|_| char::from(*dice.pick(b"0123456789abcdef")))
        .collect()
}

/// A TaskRun of 8 KB: three steps with scripts, resolved a second time in the status, managed
/// fields, and what differs from run to run: ids, digests and times.
fn task_run(dice: &mut Dice, run: usize, task: usize) -> Value {
    let pipeline = run % 8;
    let steps: Vec<Value> = (0..3)
        .map(|step| {
            let line = |line| {
                let token = pipeline * 1000 + task * 100 + step * 10 + line;
                format!("echo step {step} line {line} $(params.revision) token-{token:08x}\n")
            };
            let script: String = (0..8).map(line).collect();
            json!({"name": format!("step-{step}"),
                "image": format!("registry.example/tools/img-{step}@sha256:{step:064x}"),
                "computeResources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                "env": [{"name": "HOME", "value": "/tekton/home"},
                        {"name": "GIT_SHA", "value": "$(params.revision)"}],
                "script": format!("#!/usr/bin/env bash\nset -euo pipefail\n{script}")})
        })
        .collect();
    let spec = json!({"params": [{"name": "revision", "type": "string"}], "steps": steps});
    let time = |s: usize| {
        format!(
            "2026-01-{:02}T{:02}:{:02}:{:02}Z",
            run / 24 % 28 + 1,
            run % 24,
            s / 60,
            s % 60
        )
    };
    let ended: Vec<Value> = (0..3)
        .map(|step| {
            json!({"name": format!("step-{step}"), "container": format!("step-step-{step}"),
                "imageID": format!("registry.example/tools/img-{step}@sha256:{step:064x}"),
                "terminated": {"containerID": format!("containerd://{}", hex(dice, 64)),
                    "exitCode": 0, "reason": "Completed",
                    "startedAt": time(task * 60), "finishedAt": time(task * 60 + 40)}})
        })
        .collect();
    let name = format!("pipeline-{pipeline}-{}", hex(dice, 5));
    let fields = |names: &[&str]| -> Value {
        let fields = names
            .iter()
            .map(|name| (format!("f:{name}"), json!({".": {}})));
        Value::Object(fields.collect())
    };
    json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {
            "name": format!("{name}-task-{task}"), "namespace": format!("team-{:02}", run % 5),
            "uid": uuid::Uuid::from_u128(u128::from_str_radix(&hex(dice, 32), 16).unwrap()),
            "resourceVersion": (run * TASKS + task).to_string(), "generation": 1,
            "creationTimestamp": time(task * 60),
            "annotations": {"note": format!("run {run}"), "repo": format!("org/repo-{pipeline}"),
                "pipelinesascode.tekton.dev/sha": hex(dice, 40)},
            "labels": {"tekton.dev/memberOf": "tasks", "tekton.dev/pipelineRun": name,
                "tekton.dev/pipeline": format!("pipeline-{pipeline}"),
                "tekton.dev/pipelineTask": format!("task-{task}")},
            "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                "name": name, "uid": hex(dice, 32), "controller": true}],
            "managedFields": [
                {"manager": "OpenAPI-Generator", "operation": "Update", "time": time(1),
                 "fieldsV1": {"f:metadata": fields(&["annotations", "labels", "ownerReferences"]),
                              "f:spec": fields(&["params", "serviceAccountName", "taskSpec"])}},
                {"manager": "tekton-pipelines-controller", "operation": "Update",
                 "subresource": "status", "time": time(2),
                 "fieldsV1": {"f:status": fields(&["completionTime", "conditions", "podName",
                     "results", "startTime", "steps", "taskSpec"])}}]},
        "spec": {"params": [{"name": "revision", "value": hex(dice, 40)}],
            "serviceAccountName": "pipeline", "timeout": "1h0m0s", "taskSpec": spec},
        "status": {"podName": format!("{name}-task-{task}-pod"),
            "startTime": time(task * 60), "completionTime": time(task * 60 + 40),
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded",
                "message": "All Steps have completed executing",
                "lastTransitionTime": time(task * 60 + 40)}],
            "results": [{"name": "digest", "type": "string",
                "value": format!("sha256:{}", hex(dice, 64))}],
            "steps": ended, "taskSpec": spec}})
}

/// Results with their records, one batch each, and the bytes of all payloads.
fn corpus() -> (Vec<Vec<Change>>, Vec<Vec<u8>>) {
    let mut dice = Dice::new(1);
    let mut payloads = Vec::new();
    let batches = (0..RUNS)
        .map(|run| {
            let id = uuid::Uuid::from_u128(u128::from_str_radix(&hex(&mut dice, 32), 16).unwrap());
            let name = format!("team-{:02}/results/{id}", run % 5);
            let mut changes = vec![Change::InsertResult(result(&name, 0))];
            for task in 0..TASKS {
                let object = task_run(&mut dice, run, task);
                let uid = object["metadata"]["uid"].as_str().unwrap();
                let us = i64::try_from(run * TASKS + task).unwrap();
                let mut value = record(&format!("{name}/records/{uid}"), us, &object);
                value.uid = uuid::Uuid::from_u128(u128::try_from(us).unwrap()).to_string();
                value.etag = crate::model::Etag::new(&value.uid, value.update_time);
                payloads.push(value.data.as_ref().unwrap().value.to_vec());
                changes.push(Change::InsertRecord(value));
            }
            changes
        })
        .collect();
    (batches, payloads)
}

/// Rows per second of single commits by 16 writers, grouped or one at a time.
async fn rate(world: &World, batches: &[Vec<Change>], together: bool) -> f64 {
    let gate = Arc::new(Mutex::new(()));
    let records: Vec<Change> = batches
        .iter()
        .flat_map(|b| b[1..].iter().cloned())
        .collect();
    let count = records.len();
    let records = Arc::new(Mutex::new(records));
    let began = Instant::now();
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let (world, records, gate) = (world.clone(), Arc::clone(&records), Arc::clone(&gate));
            tokio::spawn(async move {
                loop {
                    let Some(change) = records.lock().await.pop() else {
                        return;
                    };
                    let alone = if together {
                        None
                    } else {
                        Some(gate.lock().await)
                    };
                    world.try_to(change).await.unwrap();
                    drop(alone);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    f64::from(u32::try_from(count).unwrap()) / began.elapsed().as_secs_f64()
}

async fn rates(name: &str, world: &World) {
    let (batches, payloads) = corpus();
    let (first, second) = batches.split_at(RUNS / 3);
    for batch in &batches {
        world.given([batch[0].clone()]).await;
    }
    let alone = rate(world, first, false).await;
    let together = rate(world, second, true).await;
    println!("{name}: single commits/s, 16 writers: one by one {alone:.0}, as it is {together:.0}");
    let began = Instant::now();
    let rows = world
        .store
        .list_records(&super::conformance::fixtures::everything())
        .await
        .unwrap();
    assert_eq!(rows.len(), RUNS * TASKS);
    let bytes: usize = rows
        .iter()
        .map(|row| row.item.data.as_ref().unwrap().value.len())
        .sum();
    assert_eq!(bytes, payloads.iter().map(Vec::len).sum::<usize>());
    println!(
        "{name}: all {} records with bodies listed in {:?}",
        rows.len(),
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; run by hand"]
async fn sqlite() {
    let (_, payloads) = corpus();
    let raw: usize = payloads.iter().map(Vec::len).sum();
    println!(
        "{} records of {} bytes",
        payloads.len(),
        raw / payloads.len()
    );

    let file = SqliteFile::fresh().await;
    let world = World::open(&file.url()).await;
    rates("SQLite", &world).await;
    world.maintenance.close().await;
    let path = file.url().trim_start_matches("sqlite:").to_owned();
    let size = |path: &str| std::fs::metadata(path).unwrap().len() / payloads.len() as u64;
    println!("SQLite: {} bytes a record, all included", size(&path));
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    let parts = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC";
    for row in sqlx::query(parts).fetch_all(&mut connection).await.unwrap() {
        let (name, bytes): (String, i64) = (row.get(0), row.get(1));
        println!(
            "    {name}: {}",
            bytes / i64::try_from(payloads.len()).unwrap()
        );
    }
    file.remove().await;

    let plain = SqliteFile::fresh().await;
    let path = plain.url().trim_start_matches("sqlite:").to_owned();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true);
    let mut connection = options.page_size(8192).connect().await.unwrap();
    connection
        .execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, data TEXT)")
        .await
        .unwrap();
    connection.execute("BEGIN").await.unwrap();
    for payload in &payloads {
        let insert = sqlx::query("INSERT INTO plain (data) VALUES ($1)");
        let text = String::from_utf8(payload.clone()).unwrap();
        insert.bind(text).execute(&mut connection).await.unwrap();
    }
    connection.execute("COMMIT").await.unwrap();
    println!(
        "SQLite, plain text without any index: {} bytes a record",
        size(&path)
    );
    plain.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; run by hand"]
async fn postgres() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    rates("PostgreSQL", &world).await;
    world.maintenance.close().await;
    let options: PgConnectOptions = database.url().parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    for kind in ["jsonb", "text"] {
        let make = format!("CREATE TABLE plain_{kind} (id BIGINT PRIMARY KEY, data {kind})");
        connection.execute(sqlx::AssertSqlSafe(make)).await.unwrap();
    }
    let (_, payloads) = corpus();
    for (at, payload) in payloads.iter().enumerate() {
        let text = String::from_utf8(payload.clone()).unwrap();
        for insert in [
            "INSERT INTO plain_jsonb VALUES ($1, $2::jsonb)",
            "INSERT INTO plain_text VALUES ($1, $2)",
        ] {
            let insert = sqlx::query(insert)
                .bind(i64::try_from(at).unwrap())
                .bind(&text);
            insert.execute(&mut connection).await.unwrap();
        }
    }
    connection.execute("VACUUM").await.unwrap();
    let parts = "SELECT relname::text, pg_table_size(oid), pg_total_relation_size(oid)
                 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    for row in sqlx::query(parts).fetch_all(&mut connection).await.unwrap() {
        let count = i64::try_from(payloads.len()).unwrap();
        let (name, rows, all): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        println!(
            "PostgreSQL {name}: {} bytes a record, with indexes {}",
            rows / count,
            all / count
        );
    }
    database.remove().await;
}
