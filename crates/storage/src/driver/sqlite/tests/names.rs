//! How names are found.

use std::num::NonZeroU32;

use serde_json::{Value, json};
use sqlx::Executor;

use super::super::{file::File, migrate};
use super::{connect, dir, url};
use crate::{
    conformance::{
        World,
        fixtures::{everything, later_record, record, result, test},
    },
    seam::{Change, ListQuery},
};
use hindsight_filter::{
    Order,
    condition::{Column, Is, ObjectField},
    model::Resource,
};

#[tokio::test]
async fn names_that_begin_so_are_gathered_if_they_are_few_and_sought_in_order_if_they_are_many() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    world
        .given([
            Change::InsertResult(result("a/results/r", 0)),
            Change::InsertRecord(record("a/results/r/records/x", 0, &json!({}))),
        ])
        .await;
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) INSERT INTO records \
                  (result_row, parent, id, uid, etag, create_us, update_us, data_type, object_name) \
                  SELECT result_row, parent, randomblob(16), randomblob(16), '', i * 1000, i * 1000, 'x', \
                  CASE WHEN i < 10 THEN 'rare-' WHEN i < 6000 THEN 'old-' ELSE 'new-' END || i FROM n JOIN records";
    connect(&path).await.execute(copies).await.unwrap();
    let by_end = Order::by(Column::Ended, true);
    for (prefix, order, leads, newest) in [
        (
            "rare-",
            Order::newest_first(),
            "index of names (9 rows)",
            "rare-9",
        ),
        (
            "old-",
            Order::newest_first(),
            "scan of all rows in order",
            "old-5999",
        ),
        // No index has this order, so that all have to be gathered.
        ("old-", by_end, "index of names (5000 rows)", "old-5999"),
    ] {
        let query = ListQuery {
            condition: test(
                Column::Object(ObjectField::Name),
                Is::StartsWith(prefix.to_owned()),
            ),
            order,
            limit: NonZeroU32::new(7).unwrap(),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        let steps = plan.unwrap().steps;
        assert!(steps[0].contains(leads), "{prefix}: {steps:#?}");
        let found = world.store.list_columns(&query).await.unwrap();
        let first = found[0].item.object.text(ObjectField::Name);
        assert_eq!((found.len(), first), (7, Some(newest)));
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn parts_of_names_are_looked_for_by_trigrams_and_go_with_their_records() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let object = |at: i64| json!({"metadata": {"name": format!("run-{at:05}-end")}});
    let row = |at: i64| record(&format!("a/results/r/records/{at}"), at, &object(at));
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    for some in (0..6_000).collect::<Vec<i64>>().chunks(500) {
        world
            .given(some.iter().map(|at| Change::InsertRecord(row(*at))))
            .await;
    }
    let path_to = async |part: &str| {
        let query = ListQuery {
            condition: test(
                Column::Object(ObjectField::Name),
                Is::Contains(part.to_owned()),
            ),
            ..everything()
        };
        let plan = world.store.explain(Resource::Records, &query, 9).await;
        plan.unwrap().steps.swap_remove(0)
    };
    for (part, leads) in [
        // 00012 has its trigrams, too.
        ("-0012", "index of parts of names (11 rows)"),
        // More than are worth gathering are found in order.
        ("run-", "scan of all rows in order"),
        ("12", "scan of the index of names"),
    ] {
        let path = path_to(part).await;
        assert!(path.contains(leads), "{part}: {path}");
    }
    let mut connection = connect(&path).await;
    let entries =
        "SELECT count(*) FROM record_names WHERE record_names MATCH '\"-00\" AND \"012\"'";
    let count: i64 = sqlx::query_scalar(entries)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, 11);
    // Writers merge blocks of this size.
    let longest = "SELECT max(length(block)) FROM record_names_data WHERE id > 10";
    let bytes: i64 = sqlx::query_scalar(longest)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!((500..1_100).contains(&bytes), "a block has {bytes} bytes");
    let gone = "DELETE FROM records WHERE object_name LIKE 'run-0012%'";
    connection.execute(gone).await.unwrap();
    let count: i64 = sqlx::query_scalar(entries)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, 1, "an entry outlived its record");
    drop(connection);
    world.maintenance.close().await;
}

#[tokio::test]
async fn each_transaction_merges_a_few_blocks_of_the_index_of_names() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    for at in 0..300 {
        let object = json!({"metadata": {"name": format!("run-{at:05}-{}", at * 7_919 % 10_007)}});
        let row = record(&format!("a/results/r/records/{at}"), at, &object);
        world.given([Change::InsertRecord(row)]).await;
    }
    let parts = "SELECT count(DISTINCT segid) FROM record_names_idx";
    let mut connection = connect(&path).await;
    let parts: i64 = sqlx::query_scalar(parts)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!((1..12).contains(&parts), "{parts} parts");
    drop(connection);
    world.maintenance.close().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_deleted_name_once_the_file_is_written_anew() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let named = |id: &str, name: &str| {
        let object = json!({"metadata": {"name": name}});
        Change::InsertRecord(record(&format!("a/results/r/records/{id}"), 0, &object))
    };
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    world
        .given([named("kept", "abc"), named("gone", "zqx")])
        .await;
    world.maintenance.close().await;
    let parts = async || -> i64 {
        let has = "SELECT count(*) FROM record_names_data WHERE instr(block, CAST('zqx' AS BLOB))";
        let mut connection = connect(&path).await;
        sqlx::query_scalar(has)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    };
    let gone = "DELETE FROM records WHERE id = 'gone'";
    connect(&path).await.execute(gone).await.unwrap();
    assert_ne!(
        parts().await,
        0,
        "a delete is noted beside what was written"
    );
    let left = migrate::rewrite(&File::at(&path)).await.unwrap();
    assert_eq!((left, parts().await), (None, 0));
}

#[tokio::test]
async fn long_names_are_found_by_their_parts_and_not_divided() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let payload = |name: &str| {
        record(
            "a/results/r/records/x",
            0,
            &json!({"metadata": {"name": name}}),
        )
    };
    let long = format!("{}-needle-{}", "ä".repeat(300), "b".repeat(300));
    let mut stored = payload("short-needle");
    world
        .given([
            Change::InsertResult(result("a/results/r", 0)),
            Change::InsertRecord(stored.clone()),
        ])
        .await;
    let check = async |indexed: i64| {
        let entries = "SELECT count(*) FROM record_names WHERE record_names MATCH 'dle'";
        let mut connection = connect(&path).await;
        let entries = sqlx::query_scalar::<_, i64>(entries);
        assert_eq!(entries.fetch_one(&mut connection).await.unwrap(), indexed);
        let query = ListQuery {
            condition: test(
                Column::Object(ObjectField::Name),
                Is::Contains("-needle".to_owned()),
            ),
            ..everything()
        };
        assert_eq!(world.store.list_columns(&query).await.unwrap().len(), 1);
    };
    check(1).await;
    for (at, name, indexed) in [(1, long.as_str(), 0), (2, "short-needle", 1)] {
        let mut value = later_record(&stored, at);
        value.data = payload(name).data;
        let expect = std::mem::replace(&mut stored, value.clone()).etag;
        world.given([Change::ReplaceRecord { expect, value }]).await;
        check(indexed).await;
    }
    world.maintenance.close().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_label_that_no_record_has() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let labelled = |id: &str, labels: Value| {
        let name = format!("a/results/r/records/{id}");
        record(&name, 0, &json!({"metadata": {"labels": labels}}))
    };
    let labels = async || -> Vec<String> {
        let all = sqlx::query_scalar("SELECT value FROM labels ORDER BY value");
        all.fetch_all(&mut connect(&path).await).await.unwrap()
    };
    let before = labelled("x", json!({"team": "red", "token": "secret"}));
    world
        .given([
            Change::InsertResult(result("a/results/r", 0)),
            Change::InsertRecord(before.clone()),
        ])
        .await;
    let mut value = later_record(&before, 1);
    value.data = labelled("x", json!({"team": "red", "tier": "web"})).data;
    let expect = before.etag.clone();
    world.given([Change::ReplaceRecord { expect, value }]).await;
    assert_eq!(labels().await, ["red", "web"], "what an update took off");
    let again = labelled("x", json!({"team": "blue"}));
    let refused = world.try_to(Change::InsertRecord(again)).await;
    assert!(refused.is_err(), "it is there already");
    world.maintenance.close().await;
    let left = migrate::rewrite(&File::at(&path)).await.unwrap();
    assert_eq!(
        (left, labels().await),
        (None, vec!["red".to_owned(), "web".to_owned()])
    );
}
