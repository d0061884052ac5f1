//! How many rows are read at once where a filter is evaluated on them.

use std::sync::Arc;

use super::rows::{Opened, Rows};
use crate::query::scan::Scan;
use hindsight_access::budget::{Budgets, Limits, QuotaGuard};
use hindsight_filter::{
    Filter, Order,
    condition::{Column, Condition},
    model::{Record, Resource},
    samples::known::{record, result},
};
use hindsight_runtime::{clock::SystemClock, telemetry::Registry};
use hindsight_storage::{
    ListQuery, Priority, RecordColumns, Store,
    testing::{Database, SqliteFile},
};

const RECORDS: usize = 6_000;

async fn filled(file: &SqliteFile, records: usize) -> Opened {
    let database = Opened::at("SQLite", &file.url()).await;
    let records = (0..records).map(|at| {
        let name = format!("ci/results/r-1/records/u-{at}");
        record(&name, "note", br#"{"n":0}"#)
    });
    Rows::new(vec![result()], records.collect())
        .fill(&*database.store)
        .await;
    database
}

/// Filters that match nothing, for a page of 50 in this order.
fn nothing<'a>(
    store: &'a dyn Store,
    quota: &'a QuotaGuard,
    by: Column,
    budget: u64,
) -> Scan<'a, Record> {
    let filter = Filter::compile("data.n + 1 == 0", Resource::Records).unwrap();
    let (scope, order) = ("-/results/-".parse().unwrap(), Order::by(by, false));
    let query = ListQuery::whole_rows(scope, Condition::All, order, Priority::Normal);
    Scan::new(store, quota, Some(Arc::new(filter)), query, budget)
}

/// In how many chunks a page of 50, which nothing matches, reads at most `budget` records, and whether there are more.
async fn chunks(database: &Opened, column: Column, budget: u64) -> (usize, bool) {
    let quota = QuotaGuard::default();
    let mut scan = nothing(&*database.store, &quota, column, budget);
    let mut chunks = 0;
    while !scan.is_over()
        && let Some(matching) = scan.next(51).await.unwrap()
    {
        assert!(matching.is_empty());
        chunks += 1;
    }
    (chunks, scan.is_over())
}

#[tokio::test]
async fn chunks_grow_and_end_with_the_budget() {
    let file = SqliteFile::fresh().await;
    let database = filled(&file, RECORDS).await;
    // 71, 284, 1,136, and the rest.
    let all = RECORDS as u64;
    for order in [Column::CreateTime, Column::Uid] {
        assert_eq!(chunks(&database, order.clone(), all).await, (4, false));
        assert_eq!(chunks(&database, order, all - 1).await, (4, true));
    }
    assert_eq!(chunks(&database, Column::CreateTime, 70).await, (1, true));
    database.close().await;
    file.remove().await;
}

#[tokio::test]
async fn a_list_that_has_found_nothing_waits_for_memory() {
    let file = SqliteFile::fresh().await;
    let database = filled(&file, 200).await;
    let limits = Limits {
        in_flight: 10,
        per_second: None,
        scan_per_minute: None,
    };
    let clock = Arc::new(SystemClock);
    let budgets = Budgets::new(limits, 1, 400_000, clock, &mut Registry::new());
    let (quota, other) = (budgets.enter("ann").unwrap(), budgets.enter("ann").unwrap());
    let mut scan = nothing(&*database.store, &quota, Column::CreateTime, 200);
    assert!(scan.next(51).await.unwrap().unwrap().is_empty());
    scan.keep();
    let held = other.expect(usize::MAX).await.unwrap();
    assert!(other.expect_more(usize::MAX).is_none(), "little is left");
    let (rest, ()) = tokio::join!(scan.next(51), async move {
        tokio::task::yield_now().await;
        drop(held);
    });
    assert!(rest.unwrap().unwrap().is_empty());
    drop(scan);
    database.close().await;
    file.remove().await;
}

#[tokio::test]
async fn rows_without_payloads_are_read_in_chunks_of_bytes() {
    let file = SqliteFile::fresh().await;
    let database = Opened::at("SQLite", &file.url()).await;
    let payload = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "n".repeat(200 << 10));
    let records = (0..60).map(|at| {
        let name = format!("ci/results/r-1/records/u-{at}");
        record(&name, "note", payload.as_bytes())
    });
    Rows::new(vec![result()], records.collect())
        .fill(&*database.store)
        .await;
    let quota = QuotaGuard::default();
    let (scope, order) = ("-/results/-".parse().unwrap(), Order::newest_first());
    let query = ListQuery::whole_rows(scope, Condition::All, order, Priority::Normal);
    let mut scan = Scan::<RecordColumns>::new(&*database.store, &quota, None, query, 60);
    let mut chunks = Vec::new();
    while let Some(rows) = scan.next(1_000).await.unwrap() {
        chunks.push(rows.len());
    }
    // The first has 4 MiB, the others as many rows as were found to have them.
    assert_eq!(chunks, [21, 20, 19]);
    drop(scan);
    database.close().await;
    file.remove().await;
}
