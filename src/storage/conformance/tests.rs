//! Runs the suite on both databases.

use std::sync::Arc;

use object_store::memory::InMemory;
use sqlx::postgres::PgConnectOptions;

use super::{
    CASES,
    backends::{PostgresDatabase, SqliteFile},
    run_all, run_outside,
};
use crate::storage::objects::{Depot, Settings};

/// The server to test on, if the environment names one.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by the environment"
)]
pub(crate) fn postgres_server() -> Option<PgConnectOptions> {
    if let Ok(url) = std::env::var("HINDSIGHT_TEST_POSTGRES") {
        return Some(
            url.parse()
                .expect("HINDSIGHT_TEST_POSTGRES is the URL of a superuser"),
        );
    }
    assert!(
        std::env::var_os("HINDSIGHT_FORBID_SKIP").is_none(),
        "HINDSIGHT_TEST_POSTGRES is not set, and HINDSIGHT_FORBID_SKIP is"
    );
    eprintln!("skipped: HINDSIGHT_TEST_POSTGRES names no PostgreSQL server");
    None
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
        keep: None,
        options: std::collections::BTreeMap::new(),
    };
    let depot = || Depot::open(&settings).unwrap();
    run_outside(SqliteFile::fresh, depot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_does_so_with_bodies_in_memory() {
    let Some(server) = postgres_server() else {
        return;
    };
    let depot = || Depot::over(Arc::new(InMemory::new()), 40, None);
    run_outside(async || PostgresDatabase::fresh(&server).await, depot).await;
}

#[test]
fn every_case_is_in_the_table() {
    let sources = [
        include_str!("aggregates.rs"),
        include_str!("filtering.rs"),
        include_str!("histories.rs"),
        include_str!("lifecycle.rs"),
        include_str!("listing.rs"),
        include_str!("model.rs"),
        include_str!("payloads.rs"),
        include_str!("pieces.rs"),
        include_str!("purge.rs"),
        include_str!("races.rs"),
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
