//! What followers cost that wait: processor time of server and database, and memory of the server,
//! with 500 streams of `WatchRuns` on 50 connections.
//!
//! `make bench-feed` runs it on SQLite and PostgreSQL and prints a line of JSON for each; `SECONDS`
//! chooses how long they wait. It fails where all followers together cost more than a hundredth of a
//! core of the server, or one more than 32 KiB, and where one of them misses a change.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

#[path = "../api/cpu.rs"]
mod cpu;
#[path = "../api/server.rs"]
#[expect(dead_code, reason = "another bench imports")]
mod server;

use std::time::{Duration, Instant};

use hindsight_proto::{
    v1::{RunEvent, WatchRunsRequest},
    v1alpha2 as pb,
};
use serde_json::json;
use tonic::Streaming;

use cpu::Used;
use server::{Database, Server, databases};

const CONNECTIONS: usize = 50;
const OF_CONNECTION: usize = 10;
/// Bounds: percent of a core for all, and KiB of each.
const MOST_PERCENT: f64 = 1.0;
const MOST_KIB: f64 = 32.0;
/// A change has to be everywhere by then.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let seconds = std::env::var("SECONDS").map_or(60, |text| text.parse().unwrap());
    let mut is_within = true;
    for database in databases().await {
        is_within &= measured(&database, seconds).await;
        database.remove().await;
    }
    assert!(is_within, "followers cost more than they may");
}

/// Measures, and says whether all is within its bounds.
async fn measured(database: &Database, seconds: usize) -> bool {
    let server = Server::start(database).await;
    // What the first of a kind takes is not what each takes.
    drop(followers(&server, 2).await);
    write(&server, "warm").await;
    let (alone, _) = waits(&server, database, seconds).await;
    let before = server.rss_kib();
    let mut streams = followers(&server, CONNECTIONS).await;
    let (together, of_database) = waits(&server, database, seconds).await;
    let count = f64::from(u32::try_from(streams.len()).unwrap());
    let added = server.rss_kib().saturating_sub(before);
    let kib = f64::from(u32::try_from(added).unwrap()) / count;
    let percent = together - alone;
    let began = Instant::now();
    write(&server, "change").await;
    for stream in &mut streams {
        let left = PATIENCE.saturating_sub(began.elapsed());
        tokio::time::timeout(left, changed(stream))
            .await
            .expect("a change comes in time");
    }
    let line = json!({
        "database": server.label(),
        "followers": streams.len(),
        "connections": CONNECTIONS,
        "percent_of_a_core": percent,
        "percent_without_followers": alone,
        "percent_of_the_database": of_database,
        "kib_of_each": kib,
        "all_have_a_change_after_ms": began.elapsed().as_millis(),
    });
    println!("{line}");
    drop(streams);
    server.stop().await;
    percent <= MOST_PERCENT && kib <= MOST_KIB
}

/// Percent of a core that the server and the database take while nothing happens.
async fn waits(server: &Server, database: &Database, seconds: usize) -> (f64, Option<f64>) {
    let before = Used::now(server, database);
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let (server, database) = Used::now(server, database).per_call(before, seconds);
    (server / 10.0, database.map(|ms| ms / 10.0))
}

/// Streams of which the first bookmark was read.
async fn followers(server: &Server, connections: usize) -> Vec<Streaming<RunEvent>> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let client = server.client();
        for _ in 0..OF_CONNECTION {
            let ask = WatchRunsRequest {
                parent: "-/results/-".to_owned(),
                query: "kind:TaskRun".to_owned(),
                ..WatchRunsRequest::default()
            };
            let mut stream = client.runs().watch_runs(ask).await.unwrap().into_inner();
            stream
                .message()
                .await
                .unwrap()
                .expect("a bookmark comes first");
            streams.push(stream);
        }
    }
    streams
}

/// Waits for a change.
async fn changed(stream: &mut Streaming<RunEvent>) {
    while let Some(event) = stream.message().await.unwrap() {
        if event.run.is_some() {
            return;
        }
    }
    panic!("a stream ended");
}

async fn write(server: &Server, name: &str) {
    let result = pb::Result {
        name: format!("ci/results/{name}"),
        ..pb::Result::default()
    };
    let request = pb::CreateResultRequest {
        result: Some(result),
        ..pb::CreateResultRequest::default()
    };
    server.rpc().create_result(request).await.unwrap();
    let object = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "ci", "uid": name}});
    let record = pb::Record {
        name: format!("ci/results/{name}/records/{name}"),
        data: Some(pb::Any {
            r#type: "tekton.dev/v1.TaskRun".to_owned(),
            value: serde_json::to_vec(&object).unwrap().into(),
        }),
        ..pb::Record::default()
    };
    let request = pb::CreateRecordRequest {
        record: Some(record),
        ..pb::CreateRecordRequest::default()
    };
    server.rpc().create_record(request).await.unwrap();
}
