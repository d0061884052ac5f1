//! What the tables take and how fast they take it, below the server: docs/adr/0002 quotes it.
//!
//! ```text
//! tests/with-postgres cargo bench --bench storage
//! ```
//!
//! PostgreSQL is left out where `HINDSIGHT_TEST_POSTGRES` names no server.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, is configured by the environment and stops at the unexpected"
)]

use std::{num::NonZeroU32, sync::Arc, time::Instant};

use hindsight::{
    filter::condition::Condition,
    model::{Etag, Order, Payload, Record, ResultName, RunResult},
    storage::{
        Batch, Change, ListQuery,
        resolve::{Opened, Options, Schema, open},
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, Row,
    postgres::{PgConnectOptions, PgConnection},
    sqlite::SqliteConnectOptions,
};
use tokio::sync::Mutex;

const RUNS: usize = 300;
const TASKS: usize = 11;
const WRITERS: usize = 16;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            // SplitMix64.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            text.push_str(&format!("{:016x}", z ^ (z >> 31)));
        }
        text.truncate(digits);
        text
    }

    fn uuid(&mut self) -> String {
        let bits = u128::from_str_radix(&self.hex(32), 16).unwrap();
        uuid::Uuid::from_u128(bits).to_string()
    }
}

/// The steps of a task: three, with scripts.
fn spec(pipeline: usize, task: usize) -> Value {
    let step = |step: usize| {
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
    };
    let steps: Vec<Value> = (0..3).map(step).collect();
    json!({"params": [{"name": "revision", "type": "string"}], "steps": steps})
}

/// A TaskRun of 8 KB: three steps with scripts, resolved a second time in the status, managed
/// fields, and what differs from run to run: ids, digests and times.
fn task_run(dice: &mut Dice, run: usize, task: usize) -> Value {
    let pipeline = run % 8;
    let spec = spec(pipeline, task);
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
                "terminated": {"containerID": format!("containerd://{}", dice.hex(64)),
                    "exitCode": 0, "reason": "Completed",
                    "startedAt": time(task * 60), "finishedAt": time(task * 60 + 40)}})
        })
        .collect();
    let name = format!("pipeline-{pipeline}-{}", dice.hex(5));
    let fields = |names: &[&str]| -> Value {
        let fields = names
            .iter()
            .map(|name| (format!("f:{name}"), json!({".": {}})));
        Value::Object(fields.collect())
    };
    json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {
            "name": format!("{name}-task-{task}"), "namespace": format!("team-{:02}", run % 5),
            "uid": dice.uuid(),
            "resourceVersion": (run * TASKS + task).to_string(), "generation": 1,
            "creationTimestamp": time(task * 60),
            "annotations": {"note": format!("run {run}"), "repo": format!("org/repo-{pipeline}"),
                "pipelinesascode.tekton.dev/sha": dice.hex(40)},
            "labels": {"tekton.dev/memberOf": "tasks", "tekton.dev/pipelineRun": name,
                "tekton.dev/pipeline": format!("pipeline-{pipeline}"),
                "tekton.dev/pipelineTask": format!("task-{task}")},
            "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                "name": name, "uid": dice.uuid(), "controller": true}],
            "managedFields": [
                {"manager": "OpenAPI-Generator", "operation": "Update", "time": time(1),
                 "fieldsV1": {"f:metadata": fields(&["annotations", "labels", "ownerReferences"]),
                              "f:spec": fields(&["params", "serviceAccountName", "taskSpec"])}},
                {"manager": "tekton-pipelines-controller", "operation": "Update",
                 "subresource": "status", "time": time(2),
                 "fieldsV1": {"f:status": fields(&["completionTime", "conditions", "podName",
                     "results", "startTime", "steps", "taskSpec"])}}]},
        "spec": {"params": [{"name": "revision", "value": dice.hex(40)}],
            "serviceAccountName": "pipeline", "timeout": "1h0m0s", "taskSpec": spec},
        "status": {"podName": format!("{name}-task-{task}-pod"),
            "startTime": time(task * 60), "completionTime": time(task * 60 + 40),
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded",
                "message": "All Steps have completed executing",
                "lastTransitionTime": time(task * 60 + 40)}],
            "results": [{"name": "digest", "type": "string",
                "value": format!("sha256:{}", dice.hex(64))}],
            "steps": ended, "taskSpec": spec}})
}

/// For each run its result and its records, and the payloads of all.
fn corpus() -> (Vec<Change>, Vec<Record>, Vec<String>) {
    let mut dice = Dice(1);
    let (mut results, mut records, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let name = format!("team-{:02}/results/{}", run % 5, dice.uuid());
        let name: ResultName = name.parse().unwrap();
        let at = |us: usize| {
            let us = 1_767_225_600_000_000 + i64::try_from(us).unwrap();
            Timestamp::from_microsecond(us).unwrap()
        };
        let uid = dice.uuid();
        results.push(Change::InsertResult(RunResult {
            name: name.clone(),
            etag: Etag::new(&uid, at(run)),
            uid,
            create_time: at(run),
            update_time: at(run),
            annotations: std::collections::BTreeMap::new(),
            summary: None,
        }));
        for task in 0..TASKS {
            let object = task_run(&mut dice, run, task);
            let uid = dice.uuid();
            let time = at(run * TASKS + task);
            payloads.push(object.to_string());
            records.push(Record {
                name: name
                    .record(object["metadata"]["uid"].as_str().unwrap())
                    .unwrap(),
                etag: Etag::new(&uid, time),
                uid,
                create_time: time,
                update_time: time,
                data: Some(Payload {
                    data_type: "tekton.dev/v1.TaskRun".to_owned(),
                    value: object.to_string().into_bytes().into(),
                }),
            });
        }
    }
    (results, records, payloads)
}

/// Commits of one record per second, by many writers, at once or one at a time.
async fn rate(opened: &Opened, records: &[Record], together: bool) -> f64 {
    let gate = Arc::new(Mutex::new(()));
    let waiting = Arc::new(Mutex::new(records.to_vec()));
    let began = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (waiting, gate) = (Arc::clone(&waiting), Arc::clone(&gate));
            let store = Arc::clone(&opened.store);
            tokio::spawn(async move {
                loop {
                    let Some(record) = waiting.lock().await.pop() else {
                        return;
                    };
                    let alone = if together {
                        None
                    } else {
                        Some(gate.lock().await)
                    };
                    store
                        .commit(&Change::InsertRecord(record).into())
                        .await
                        .unwrap();
                    drop(alone);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    f64::from(u32::try_from(records.len()).unwrap()) / began.elapsed().as_secs_f64()
}

/// Fills a database and shows that everything is in it.
async fn fill(label: &str, url: &str) {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(url, &options).await.unwrap();
    let (results, records, payloads) = corpus();
    opened
        .store
        .commit(&Batch { changes: results })
        .await
        .unwrap();
    let (first, second) = records.split_at(records.len() / 3);
    let alone = rate(&opened, first, false).await;
    let together = rate(&opened, second, true).await;
    println!(
        "{label}: commits/s by {WRITERS} writers: one by one {alone:.0}, at once {together:.0}"
    );
    let began = Instant::now();
    let all = ListQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: Condition::All,
        order: Order::NEWEST_FIRST,
        after: None,
        limit: NonZeroU32::new(10_000).unwrap(),
        bodies: true,
        max_bytes: None,
    };
    let rows = opened.store.list_records(&all).await.unwrap();
    let took = began.elapsed();
    let listed = rows
        .iter()
        .rev()
        .map(|row| row.item.data.as_ref().unwrap().value.as_ref());
    assert!(
        listed.eq(payloads.iter().map(String::as_bytes)),
        "the payloads differ"
    );
    println!(
        "{label}: {} records listed with bodies in {took:?}",
        rows.len()
    );
    opened.maintenance.close().await;
}

async fn sqlite(payloads: &[String]) {
    let dir = tempfile::TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    let size = |name: &str| std::fs::metadata(path(name)).unwrap().len() / payloads.len() as u64;
    fill("SQLite", &format!("sqlite:{}", path("store.db").display())).await;
    println!(
        "SQLite: {} bytes a record, everything included",
        size("store.db")
    );
    let file = SqliteConnectOptions::new().filename(path("store.db"));
    let mut store = file.connect().await.unwrap();
    let parts = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC";
    for row in sqlx::query(parts).fetch_all(&mut store).await.unwrap() {
        let (name, bytes): (String, i64) = (row.get(0), row.get(1));
        println!(
            "    {name}: {}",
            bytes / i64::try_from(payloads.len()).unwrap()
        );
    }

    let file = SqliteConnectOptions::new()
        .filename(path("plain.db"))
        .create_if_missing(true);
    let mut plain = file.page_size(8192).connect().await.unwrap();
    plain
        .execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, data TEXT)")
        .await
        .unwrap();
    plain.execute("BEGIN").await.unwrap();
    for payload in payloads {
        let insert = sqlx::query("INSERT INTO plain (data) VALUES ($1)").bind(payload);
        insert.execute(&mut plain).await.unwrap();
    }
    plain.execute("COMMIT").await.unwrap();
    println!("SQLite, plain text: {} bytes a record", size("plain.db"));
}

async fn postgres(server: PgConnectOptions, payloads: &[String]) {
    let name = format!("hs_{}", uuid::Uuid::new_v4().simple());
    let mut admin = server.connect().await.unwrap();
    admin
        .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .await
        .unwrap();
    let options = server.database(&name);
    fill("PostgreSQL", options.to_url_lossy().as_str()).await;
    let mut connection = options.connect().await.unwrap();
    plain_tables(&mut connection, payloads).await;
    let parts = "SELECT relname::text, pg_table_size(oid), pg_total_relation_size(oid)
                 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let count = i64::try_from(payloads.len()).unwrap();
    for row in sqlx::query(parts).fetch_all(&mut connection).await.unwrap() {
        let (name, rows, all): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        println!(
            "    {name}: {} bytes a record, with indexes {}",
            rows / count,
            all / count
        );
    }
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    admin.execute(AssertSqlSafe(drop)).await.unwrap();
}

async fn plain_tables(connection: &mut PgConnection, payloads: &[String]) {
    for kind in ["jsonb", "text"] {
        let make = format!("CREATE TABLE plain_{kind} (id BIGINT PRIMARY KEY, data {kind})");
        connection.execute(AssertSqlSafe(make)).await.unwrap();
        let began = Instant::now();
        for (at, payload) in payloads.iter().enumerate() {
            let insert = format!("INSERT INTO plain_{kind} VALUES ($1, $2::{kind})");
            let insert = sqlx::query(AssertSqlSafe(insert)).bind(i64::try_from(at).unwrap());
            insert
                .bind(payload)
                .execute(&mut *connection)
                .await
                .unwrap();
        }
        let rate = payloads.len() as f64 / began.elapsed().as_secs_f64();
        println!("PostgreSQL, plain {kind}: {rate:.0} commits/s by one writer");
    }
    connection.execute("VACUUM").await.unwrap();
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (_, _, payloads) = corpus();
        let raw: usize = payloads.iter().map(String::len).sum();
        println!(
            "{} payloads of {} bytes",
            payloads.len(),
            raw / payloads.len()
        );
        sqlite(&payloads).await;
        match std::env::var("HINDSIGHT_TEST_POSTGRES") {
            Ok(url) => postgres(url.parse().unwrap(), &payloads).await,
            Err(_unset) => println!("PostgreSQL: HINDSIGHT_TEST_POSTGRES names no server"),
        }
    });
}
