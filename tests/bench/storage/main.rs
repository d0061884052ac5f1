//! What the tables take and how fast they take it, below the server: docs/adr quotes it.
//!
//! ```text
//! tests/with-postgres cargo bench --bench storage
//! ```
//!
//! `HINDSIGHT_BENCH_RUNS` is the number of runs; the argument `small` or `large` plays one of the two
//! shapes alone. PostgreSQL is left out where `HINDSIGHT_TEST_POSTGRES` names no server.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, is configured by the environment and stops at the unexpected"
)]

mod corpus;
mod plain;
mod sizes;

use std::{num::NonZeroU32, sync::Arc, time::Instant};

use hindsight_filter::model::{Record, RunResult};
use hindsight_filter::{
    Order,
    condition::{Column, Condition},
};
use hindsight_storage::{
    Batch, Change, ListQuery, Priority, Projection,
    resolve::{Opened, Options, Schema, open},
};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, postgres::PgConnectOptions};
use tokio::sync::Mutex;

use self::corpus::Corpus;

const WRITERS: usize = 16;
const BATCH: usize = 200;
/// Batches under way at once.
const CLIENTS: usize = 2;

fn per_second(count: usize, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}

async fn opened(url: &str) -> Opened {
    let options = Options {
        schema: Schema::Migrate,
        max_connections: NonZeroU32::new(16).unwrap(),
        ..Options::default()
    };
    open(url, &options).await.unwrap()
}

/// Commits the batches by so many writers; each waits for its answer before the next.
async fn commit(opened: &Opened, mut batches: Vec<Batch>, writers: usize) {
    batches.reverse();
    let waiting = Arc::new(Mutex::new(batches));
    let writers: Vec<_> = (0..writers)
        .map(|_| {
            let (waiting, store) = (Arc::clone(&waiting), Arc::clone(&opened.store));
            tokio::spawn(async move {
                loop {
                    let Some(batch) = waiting.lock().await.pop() else {
                        return;
                    };
                    store.commit(&batch).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn results(results: &[RunResult]) -> Batch {
    Batch {
        changes: results.iter().cloned().map(Change::InsertResult).collect(),
    }
}

fn inserts(records: &[Record]) -> Batch {
    Batch {
        changes: records.iter().cloned().map(Change::InsertRecord).collect(),
    }
}

/// Fills a database in batches and shows that everything is in it.
async fn fill(label: &str, url: &str, corpus: &Corpus) {
    let opened = opened(url).await;
    opened
        .store
        .commit(&results(&corpus.results))
        .await
        .unwrap();
    let batches = corpus.records.chunks(BATCH).map(inserts).collect();
    let began = Instant::now();
    commit(&opened, batches, CLIENTS).await;
    let rate = per_second(corpus.records.len(), began);
    println!("{label}: {rate:.0} records/s in batches of {BATCH} by {CLIENTS} clients");
    let mut query = ListQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: Condition::All,
        order: Order::by(Column::CreateTime, false),
        after: None,
        limit: NonZeroU32::new(1000).unwrap(),
        bodies: true,
        max_bytes: Some(4 << 20),
        projection: Projection::ALL,
        priority: Priority::Normal,
    };
    let began = Instant::now();
    let mut count = 0;
    loop {
        let page = opened.store.list_records(&query).await.unwrap();
        let Some(last) = page.last() else { break };
        query.after = Some(last.position.clone());
        for row in &page {
            assert!(row.item == corpus.records[count], "a record differs");
            count += 1;
        }
    }
    assert_eq!(count, corpus.records.len());
    let rate = per_second(count, began);
    println!("{label}: {rate:.0} records/s listed with bodies and compared");
    opened.maintenance.close().await;
}

/// Commits of one record each, by many writers at once.
async fn singles(label: &str, url: &str, corpus: &Corpus) {
    let opened = opened(url).await;
    opened
        .store
        .commit(&results(&corpus.results))
        .await
        .unwrap();
    let (warm, rest) = corpus.records.split_at(400);
    commit(&opened, warm.chunks(1).map(inserts).collect(), WRITERS).await;
    let began = Instant::now();
    commit(&opened, rest.chunks(1).map(inserts).collect(), WRITERS).await;
    let rate = per_second(rest.len(), began);
    println!("{label}: {rate:.0} commits/s of one record by {WRITERS} writers");
    opened.maintenance.close().await;
}

async fn sqlite(corpus: &Corpus, rates: bool) -> Option<String> {
    let dir = tempfile::TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    let url = |name: &str| format!("sqlite:{}", path(name).display());
    fill("SQLite", &url("store.db"), corpus).await;
    let missed = sizes::sqlite(&path("store.db"), corpus).await;
    if rates {
        singles("SQLite", &url("singles.db"), corpus).await;
        plain::sqlite(&path("plain.db"), corpus).await;
    }
    missed
}

async fn postgres(server: PgConnectOptions, corpus: &Corpus, rates: bool) -> Option<String> {
    let mut admin = server.connect().await.unwrap();
    let mut names = Vec::new();
    let mut fresh = async || {
        let name = format!("hs_{}", uuid::Uuid::new_v4().simple());
        let make = format!("CREATE DATABASE {name}");
        admin.execute(AssertSqlSafe(make)).await.unwrap();
        names.push(name.clone());
        server.clone().database(&name)
    };
    let options = fresh().await;
    fill("PostgreSQL", options.to_url_lossy().as_str(), corpus).await;
    let missed = sizes::postgres(&options, corpus).await;
    if rates {
        let options = fresh().await;
        singles("PostgreSQL", options.to_url_lossy().as_str(), corpus).await;
        let options = fresh().await;
        plain::postgres(&options, corpus).await;
    }
    for name in names {
        let drop = format!("DROP DATABASE {name} WITH (FORCE)");
        admin.execute(AssertSqlSafe(drop)).await.unwrap();
    }
    missed
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let runs = std::env::var("HINDSIGHT_BENCH_RUNS").ok();
    let runs = runs.map(|runs| runs.parse().unwrap());
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let mut missed = Vec::new();
    runtime.block_on(async {
        for (name, shape, by_default, rates) in [
            ("small", corpus::SMALL, 10_000, false),
            ("large", corpus::LARGE, 1500, true),
        ] {
            if only.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            let corpus = Corpus::new(shape, runs.unwrap_or(by_default));
            let raw: usize = corpus.payloads().iter().map(|text| text.len()).sum();
            println!(
                "{} runs of {} records and {} bytes of JSON each",
                corpus.runs,
                corpus.shape.tasks + 1,
                raw / corpus.runs
            );
            match std::env::var("HINDSIGHT_TEST_POSTGRES") {
                Ok(url) => missed.extend(postgres(url.parse().unwrap(), &corpus, rates).await),
                Err(_unset) => println!("PostgreSQL: HINDSIGHT_TEST_POSTGRES names no server"),
            }
            missed.extend(sqlite(&corpus, rates).await);
        }
    });
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
