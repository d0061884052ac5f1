//! Adding up all of a large table on two connections.

use std::num::NonZeroU32;

use hindsight_filter::{
    condition::{Column, Condition, Is, ObjectField, Value},
    measure::{Calendar, Depth, Unit},
};
use jiff::Timestamp;
use serde_json::json;
use sqlx::Executor;

use super::{connect, dir, plan_of, url};
use crate::{
    conformance::{
        World,
        fixtures::{assert_same_groups, record, result, test},
    },
    driver::{Database as _, Work, options::Options},
    seam::{AggregateQuery, Change, GroupKey, Priority, Quantity, Summed},
    sql::{aggregate, dialect::Dialect, row::Row},
    store::{resolve::open, sum::parts_of_table},
};

const KIND: Column = Column::Object(ObjectField::Kind);
const STARTED: Column = Column::Object(ObjectField::StartTime);

#[tokio::test]
async fn parts_of_a_sum_are_the_whole() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let two = World::open(&url(&path)).await;
    two.given([
        Change::InsertResult(result("a/results/r", 0)),
        Change::InsertRecord(record("a/results/r/records/x", 0, &json!({}))),
    ])
    .await;
    let mut connection = connect(&path).await;
    for statement in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) INSERT INTO records \
         (result_row, parent, id, uid, etag, create_us, update_us, data_type, object_kind, object_start_us) \
         SELECT result_row, parent, randomblob(16), randomblob(16), '', i * 1000, i * 1000, 'x' || i % 3, 'y' || i % 5, i \
         FROM n JOIN records",
        "DELETE FROM records WHERE row_id BETWEEN 10000 AND 30000 OR row_id % 7 = 0",
    ] {
        connection.execute(statement).await.unwrap();
    }
    let options = Options {
        max_connections: NonZeroU32::MIN,
        ..Options::default()
    };
    let one = open(&url(&path), &options).await.unwrap();
    let (db, _) = super::super::open::open(&path, &options).await.unwrap();
    for (depth, condition, parts) in [
        (Depth::Most, Condition::All, Some(8)),
        (Depth::Sums, test(STARTED, Is::Present), Some(8)),
        (Depth::Values, Condition::All, Some(8)),
        // An index leads to these, of which there are none.
        (
            Depth::Sums,
            test(Column::DataType, Is::Equal(Value::Text("none".to_owned()))),
            None,
        ),
    ] {
        let asked = AggregateQuery {
            scope: "-/results/-".parse().unwrap(),
            condition,
            keys: vec![GroupKey::Column(KIND)],
            counts: vec![test(STARTED, Is::Present)],
            amounts: vec![Summed {
                of: Quantity::Value(STARTED),
                depth,
            }],
            priority: Priority::Normal,
        };
        let plans = aggregate::plans(Dialect::Sqlite, &asked, None::<&Row>).unwrap();
        let reader = db.reader(Work::Scan, Priority::Normal, "asking").await;
        let mut reader = reader.unwrap();
        let divided = parts_of_table(&mut *reader, &plans[0]).await.unwrap();
        reader.release().await;
        assert_eq!(divided.as_ref().map(Vec::len), parts, "{asked:?}");
        for part in divided.into_iter().flatten() {
            let plan = plan_of(&mut connection, &part.statement()).await;
            assert!(plan[0].contains("USING INTEGER PRIMARY KEY"), "{plan:?}");
        }
        let whole = one.store.aggregate(&asked).await.unwrap();
        assert_same_groups(&two.store.aggregate(&asked).await.unwrap(), &whole, &asked);
        let rows: u64 = whole.iter().map(|group| group.sums.rows).sum();
        assert_eq!(rows > 10_000, parts.is_some(), "{rows}");
    }
    one.maintenance.close().await;
    two.maintenance.close().await;
}

#[tokio::test]
async fn first_and_last_times_are_of_what_was_stored_then() {
    let dir = dir();
    let path = dir.path().join("x.db");
    let world = World::open(&url(&path)).await;
    let mut connection = connect(&path).await;
    let asked = AggregateQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: test(
            Column::CreateTime,
            Is::AtLeast(Value::Time(Timestamp::UNIX_EPOCH)),
        ),
        keys: vec![GroupKey::Bucket(
            Column::Object(ObjectField::CreationTime),
            Calendar::utc(Unit::Day),
        )],
        counts: Vec::new(),
        amounts: Vec::new(),
        priority: Priority::Normal,
    };
    let bounds = aggregate::bounds(Dialect::Sqlite, &asked).unwrap();
    let plan = plan_of(&mut connection, &bounds).await;
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(plan[0].contains("records_by_create ("), "{plan:?}");
    world.maintenance.close().await;
}
