//! Runs the suite on both databases.

use std::sync::Arc;

use super::{
    CASES,
    backends::{PostgresDatabase, SqliteFile},
    restless::Share,
    run_all, run_in_memory, run_outside, run_restless,
};
use crate::codec::objects::{ObjectBackend, Settings};
pub(crate) use crate::testing::postgres_server;
use object_store::memory::InMemory;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_does_what_every_store_must() {
    run_in_memory().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_does_what_every_store_must() {
    run_all(SqliteFile::fresh).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_does_what_every_store_must() {
    let Some(server) = postgres_server() else {
        return;
    };
    run_all(async || PostgresDatabase::fresh(&server).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_does_so_with_bodies_in_a_directory() {
    let directory = tempfile::TempDir::new().unwrap();
    let settings = Settings {
        url: format!("file://{}/objects", directory.path().display()),
        above: 40,
        log_above: 40,
        keep: None,
        options: std::collections::BTreeMap::new(),
    };
    let depot = || ObjectBackend::open(&settings).unwrap();
    run_outside(SqliteFile::fresh, depot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_does_so_with_bodies_in_memory() {
    let Some(server) = postgres_server() else {
        return;
    };
    let depot = || ObjectBackend::over(Arc::new(InMemory::new()), 40, None);
    run_outside(async || PostgresDatabase::fresh(&server).await, depot).await;
}

/// What is about records, wherever they are.
const OF_RECORDS: [&str; 8] = [
    "writes",
    "payloads",
    "listing",
    "thin",
    "filtering",
    "aggregates",
    "races",
    "model",
];

/// What differs between databases while records move.
const OF_MOVES: [&str; 4] = ["writes", "listing", "races", "model"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_does_so_with_records_in_files() {
    assert!(run_restless(SqliteFile::fresh, Share::All, &OF_RECORDS).await > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_does_so_with_records_that_move() {
    assert!(run_restless(SqliteFile::fresh, Share::Half, &OF_MOVES).await > 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_does_so_with_records_that_move() {
    let Some(server) = postgres_server() else {
        return;
    };
    let fresh = async || PostgresDatabase::fresh(&server).await;
    assert!(run_restless(fresh, Share::Half, &OF_MOVES).await > 50);
}

#[test]
fn every_case_is_in_the_table() {
    let sources = [
        include_str!("aggregates.rs"),
        include_str!("expiry.rs"),
        include_str!("feed.rs"),
        include_str!("files.rs"),
        include_str!("filtering.rs"),
        include_str!("histories.rs"),
        include_str!("lifecycle.rs"),
        include_str!("listing.rs"),
        include_str!("log_lists.rs"),
        include_str!("logs.rs"),
        include_str!("model.rs"),
        include_str!("payloads.rs"),
        include_str!("dictionaries.rs"),
        include_str!("purge.rs"),
        include_str!("races.rs"),
        include_str!("thin.rs"),
        include_str!("ways.rs"),
        include_str!("writes.rs"),
    ];
    let mut written: Vec<&str> = sources
        .iter()
        .flat_map(|source| source.lines())
        .filter_map(|line| line.strip_prefix("pub(super) async fn "))
        .filter_map(|rest| rest.split('(').next())
        .collect();
    let mut listed: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    written.sort_unstable();
    listed.sort_unstable();
    assert_eq!(written, listed);
}
