//! How many rows are read at once where a filter is evaluated on them.

use std::sync::Arc;

use super::rows::{Opened, Rows};
use crate::query::{list::first_row, scan::Scan};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::{
    Filter, Order,
    condition::{Column, Condition},
    model::{Record, Resource},
    samples::known::{record, result},
};
use hindsight_storage::{
    Priority,
    testing::{Database, SqliteFile},
};

const RECORDS: usize = 4_000;

/// In how many chunks a page of 50, which nothing matches, reads at most `budget` records, and whether there are more.
async fn chunks(database: &Opened, column: Column, budget: u64) -> (usize, bool) {
    let filter = Filter::compile("data.n + 1 == 0", Resource::Records).unwrap();
    let (scope, order) = ("-/results/-".parse().unwrap(), Order::by(column, false));
    let query = first_row(scope, Condition::All, order, Priority::Normal);
    let quota = QuotaGuard::default();
    let store = &*database.store;
    let mut scan = Scan::<Record>::new(store, &quota, Some(Arc::new(filter)), query, budget);
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
async fn chunks_grow_farther_where_each_sorts_all_rows_and_end_with_the_budget() {
    let file = SqliteFile::fresh().await;
    let database = Opened::at("SQLite", &file.url()).await;
    let records = (0..RECORDS).map(|at| {
        let name = format!("ci/results/r-1/records/u-{at}");
        record(&name, "note", br#"{"n":0}"#)
    });
    Rows::new(vec![result()], records.collect())
        .fill(&*database.store)
        .await;
    // 71, 284, three of 1,000, and the rest; 71, 284, 1,136, and the rest.
    let all = RECORDS as u64;
    assert_eq!(chunks(&database, Column::CreateTime, all).await, (6, false));
    assert_eq!(chunks(&database, Column::Uid, all).await, (4, false));
    assert_eq!(chunks(&database, Column::Uid, all - 1).await, (4, true));
    assert_eq!(chunks(&database, Column::CreateTime, 70).await, (1, true));
    database.close().await;
    file.remove().await;
}
