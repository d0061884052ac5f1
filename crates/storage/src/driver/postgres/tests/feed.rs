//! The feed of changes where transactions commit in another order than they began.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, postgres::PgConnection};

use super::connect;
use crate::{
    conformance::{
        World,
        backends::{Database as _, PostgresDatabase},
        fixtures::result,
        tests::postgres_server,
    },
    seam::{Change, FeedPosition, Store},
};

const PAGE: NonZeroU32 = NonZeroU32::new(100).unwrap();

async fn insert(connection: &mut PgConnection, id: &str) {
    let insert = format!(
        "INSERT INTO records (result_row, create_us, update_us, parent, id, uid, etag) \
         SELECT row_id, 1, 1, parent, '{id}', '{id}', '' FROM results"
    );
    connection.execute(AssertSqlSafe(insert)).await.unwrap();
}

/// The ids of the records that are told after a place, each with its place, and the end.
async fn told(
    store: &Arc<dyn Store>,
    after: FeedPosition,
) -> (Vec<(String, FeedPosition)>, FeedPosition) {
    let page = store.feed(after, PAGE).await.unwrap();
    let ids = page.changes.into_iter();
    let ids = ids.map(|change| (change.columns.record.name.id().to_owned(), change.position));
    (ids.collect(), page.end)
}

/// What is told once `count` changes can be read: transactions of other databases hold them back, too.
async fn until(
    store: &Arc<dyn Store>,
    after: FeedPosition,
    count: usize,
) -> Vec<(String, FeedPosition)> {
    loop {
        let (ids, _) = told(store, after).await;
        if ids.len() >= count {
            return ids;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_commits_late_is_neither_passed_over_nor_told_twice() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    let other = World::open(&database.url()).await;
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    let (mut early, mut late) = (connect(&database).await, connect(&database).await);
    let mut first = early.begin().await.unwrap();
    insert(&mut first, "first").await;
    let start = world.store.feed_end().await.unwrap();
    insert(&mut late, "second").await;
    let (ids, held) = told(&world.store, start).await;
    assert_eq!(ids, [], "the second waits for the first");
    assert_eq!(held, start);
    first.commit().await.unwrap();
    let both = until(&world.store, held, 2).await;
    let ids: Vec<_> = both.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["first", "second"]);
    let (rest, _) = told(&other.store, both[0].1).await;
    assert_eq!(rest, both[1..], "at another server, after the first");

    // A change of what was told, by a transaction that is older than others that are told.
    let mut older = early.begin().await.unwrap();
    older
        .execute("UPDATE records SET update_us = 2 WHERE id = 'second'")
        .await
        .unwrap();
    insert(&mut late, "third").await;
    older.rollback().await.unwrap();
    let third = until(&other.store, both[1].1, 1).await;
    assert_eq!(third[0].0, "third", "what was rolled back did not happen");
    let (none, end) = told(&world.store, third[0].1).await;
    assert_eq!(none, []);
    let mut older = early.begin().await.unwrap();
    older
        .execute("UPDATE records SET update_us = 3 WHERE id = 'second'")
        .await
        .unwrap();
    late.execute("UPDATE records SET update_us = 4 WHERE id = 'third'")
        .await
        .unwrap();
    older.commit().await.unwrap();
    let changed = until(&world.store, end, 2).await;
    let ids: Vec<_> = changed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["second", "third"]);
    for world in [world, other] {
        world.maintenance.close().await;
    }
    drop((early, late));
    database.remove().await;
}
