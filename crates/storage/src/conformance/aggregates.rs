//! Groups and sums: what the database adds up is what plain addition gives.

use std::collections::BTreeMap;

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};
use serde_json::{Value as Json, json};

use super::{
    World,
    fixtures::{Dice, ODD_TEXTS, assert_same_groups, record, result, test, time},
};
use crate::seam::{AggregateQuery, Change, GroupKey, Priority, Quantity, Summed};
use hindsight_filter::columns::{object_columns, of_record};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Value};
use hindsight_filter::measure::{Calendar, Depth, EXACT, Key, Samples, Unit};
use hindsight_filter::model::{Record, Tier};

/// Runs around the days on which clocks are set, some of them odd.
fn object(dice: &mut Dice) -> Json {
    const MOMENTS: [&str; 6] = [
        "2026-03-28T20:00:00Z",
        "2026-10-24T20:00:00Z",
        "2026-01-01T00:00:00Z",
        "1969-12-30T00:00:00Z",
        "2011-12-29T00:00:00Z",
        "2026-03-29T00:59:59.9999999Z",
    ];
    let from: Timestamp = dice.pick(&MOMENTS).parse().unwrap();
    let later = |dice: &mut Dice, most: usize| {
        let us = i64::try_from(dice.below(most)).unwrap();
        let time = from + jiff::SignedDuration::from_micros(us);
        (!dice.once_in(6)).then(|| time.to_string())
    };
    let day = 86_400_000_000;
    json!({
        "kind": dice.pick(&["TaskRun", "PipelineRun"]),
        "metadata": {
            "namespace": dice.pick(&["a", "b"]),
            "labels": {"odd": dice.pick(&ODD_TEXTS), "tekton.dev/pipeline": dice.pick(&["x", "y"])},
            "creationTimestamp": later(dice, day),
        },
        "status": {
            "startTime": later(dice, day),
            "completionTime": later(dice, 3 * day),
            "conditions": [{"type": "Succeeded", "status": dice.pick(&["True", "False"]),
                "reason": dice.pick(&[json!("Succeeded"), json!("Completed"), json!("Failed"), json!("Odd"), json!(null)])}],
            "phase": dice.pick(&["Succeeded", "Odd"]),
        },
    })
}

async fn given(world: &World, count: usize) -> Vec<Record> {
    let mut dice = Dice::new(4);
    let mut changes = Vec::new();
    let mut records = Vec::new();
    for parent in ["p", "cluster/east/namespace/q"] {
        changes.push(Change::InsertResult(result(
            &format!("{parent}/results/r"),
            0,
        )));
        for number in 0..count {
            let us = i64::try_from(dice.below(200_000)).unwrap() * 1_000_000;
            let name = format!("{parent}/results/r/records/{number}");
            let mut value = record(&name, us, &object(&mut dice));
            if dice.once_in(20) {
                value.data = None;
            }
            records.push(value.clone());
            changes.push(Change::InsertRecord(value));
        }
    }
    world.given(changes).await;
    records
}

fn column_of(record: &Record, column: &Column) -> Option<Value> {
    let object = record.data.as_ref().map(object_columns).unwrap_or_default();
    of_record(record, Tier::Hot, &object, column)
}

fn reason(reasons: &[&str]) -> Condition {
    let values = reasons.iter().map(|&reason| Value::Text(reason.into()));
    test(
        Column::Object(ObjectField::Reason),
        Is::OneOf(values.collect()),
    )
}

const CREATED: Column = Column::Object(ObjectField::CreationTime);
const STARTED: Column = Column::Object(ObjectField::StartTime);
const COMPLETED: Column = Column::Object(ObjectField::CompletionTime);

fn everything() -> AggregateQuery {
    AggregateQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: Condition::All,
        keys: Vec::new(),
        counts: Vec::new(),
        amounts: Vec::new(),
        priority: Priority::Normal,
    }
}

fn random(dice: &mut Dice) -> AggregateQuery {
    let zones = ["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"];
    let zones = zones.map(|zone| TimeZone::get(zone).unwrap());
    let ahead = TimeZone::fixed(Offset::from_seconds(5 * 3_600 + 1_801).unwrap());
    let zone = dice.pick(&[&zones[..], &[ahead]].concat()).clone();
    let columns = [
        Column::Parent,
        Column::Cluster,
        Column::DataType,
        Column::Label("odd".to_owned()),
        Column::Label("tekton.dev/pipeline".to_owned()),
        Column::Object(ObjectField::Namespace),
        Column::Object(ObjectField::Reason),
        Column::Reason,
        Column::SummaryType,
        Column::Outcome,
        Column::Pipeline,
        Column::Signature,
        STARTED,
    ];
    let times = [
        CREATED,
        STARTED,
        COMPLETED,
        Column::CreateTime,
        Column::UpdateTime,
    ];
    let keys = (0..dice.below(4)).map(|_| {
        if dice.once_in(2) {
            let unit = *dice.pick(&Unit::ALL);
            let zone = zone.clone();
            GroupKey::Bucket(dice.pick(&times).clone(), Calendar { unit, zone })
        } else {
            GroupKey::Column(dice.pick(&columns).clone())
        }
    });
    let keys = keys.collect();
    let conditions = [
        Condition::All,
        Condition::Nothing,
        reason(&["Failed"]),
        test(COMPLETED, Is::Present),
        test(CREATED, Is::Greater(Value::Time(time(0)))),
        test(
            Column::Object(ObjectField::Kind),
            Is::Equal(Value::Text("TaskRun".into())),
        ),
    ];
    let scopes = [
        "-/results/-",
        "p/results/-",
        "p/results/r",
        "-/results/r",
        "none/results/-",
    ];
    let quantities = [
        Quantity::Between(STARTED, COMPLETED),
        Quantity::Between(CREATED, STARTED),
        Quantity::Value(STARTED),
        Quantity::Value(Column::Duration),
        Quantity::Value(Column::Ended),
        Quantity::Between(CREATED, Column::Began),
        Quantity::Value(Column::CreateTime),
    ];
    let amounts = (0..dice.below(3)).map(|_| Summed {
        of: dice.pick(&quantities).clone(),
        depth: *dice.pick(&[Depth::Most, Depth::Sums, Depth::Values]),
    });
    let amounts = amounts.collect();
    AggregateQuery {
        scope: dice.pick(&scopes).parse().unwrap(),
        condition: dice.pick(&conditions).clone(),
        keys,
        counts: (0..dice.below(3))
            .map(|_| dice.pick(&conditions).clone())
            .collect(),
        amounts,
        priority: Priority::Normal,
    }
}

pub(super) async fn sums_agree_with_plain_ones(world: World) {
    given(&world, 200).await;
    let model = World::in_memory("");
    given(&model, 200).await;
    let mut dice = Dice::new(11);
    for _ in 0..150 {
        let mut query = random(&mut dice);
        for _ in 0..2 {
            let got = world.store.aggregate(&query).await.unwrap();
            let wanted = model.store.aggregate(&query).await.unwrap();
            assert_same_groups(&got, &wanted, &query);
            // The same without the values: counts, sums and ends are there all the same.
            for summed in &mut query.amounts {
                summed.depth = summed.depth.min(Depth::Sums);
            }
        }
    }
}

pub(super) async fn buckets_of_the_calendar_are_those_of_the_zone(world: World) {
    let records = given(&world, 200).await;
    let mut stored: Vec<_> = records.iter().map(|record| record.create_time).collect();
    stored.sort_unstable();
    for zone in ["Europe/Berlin", "Pacific/Apia", "Asia/Kolkata", "UTC"] {
        let zone = TimeZone::get(zone).unwrap();
        for (column, since) in [
            (CREATED, stored[0]),
            (CREATED, stored[100]),
            (Column::CreateTime, stored[0]),
            (Column::CreateTime, stored[100]),
        ] {
            let unit = Unit::Day;
            let day = Calendar {
                unit,
                zone: zone.clone(),
            };
            let mut query = everything();
            if since > stored[0] {
                query.condition = test(Column::CreateTime, Is::AtLeast(Value::Time(since)));
            }
            query.keys = vec![GroupKey::Bucket(column.clone(), day)];
            let date = |us: i64| {
                let time = Timestamp::from_microsecond(us).unwrap();
                time.to_zoned(zone.clone()).date().to_string()
            };
            let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
            for record in records.iter().filter(|record| record.create_time >= since) {
                let date = match column_of(record, &column) {
                    Some(Value::Time(time)) => date(time.as_microsecond()),
                    _ => "none".to_owned(),
                };
                *wanted.entry(date).or_default() += 1;
            }
            let groups = world.store.aggregate(&query).await.unwrap();
            let got = groups.into_iter().map(|group| match group.keys[..] {
                [Key::Time(us)] => (date(us), group.sums.rows),
                _ => ("none".to_owned(), group.sums.rows),
            });
            assert_eq!(
                got.collect::<BTreeMap<_, _>>(),
                wanted,
                "{column:?} {zone:?} {since}"
            );
        }
    }
}

pub(super) async fn what_has_no_rows_has_no_groups(world: World) {
    let mut query = everything();
    query.counts = vec![Condition::All];
    query.amounts = vec![Summed {
        of: Quantity::Between(STARTED, COMPLETED),
        depth: Depth::Values,
    }];
    assert_eq!(world.store.aggregate(&query).await.unwrap(), []);
    let days = Calendar::utc(Unit::Day);
    query.keys = vec![
        GroupKey::Bucket(Column::CreateTime, days.clone()),
        GroupKey::Bucket(STARTED, days),
    ];
    assert_eq!(world.store.aggregate(&query).await.unwrap(), []);
}

pub(super) async fn percentiles_of_many_are_the_same_sketch(world: World) {
    let mut changes = vec![Change::InsertResult(result("p/results/r", 0))];
    let mut dice = Dice::new(5);
    let mut wanted = Samples::default();
    for number in 0..=EXACT {
        let took = i64::try_from(dice.below(1_000_000_000)).unwrap();
        let text = |us: i64| Json::from(time(us).to_string());
        let status = json!({"startTime": text(0), "completionTime": text(took)});
        let name = format!("p/results/r/records/{number}");
        changes.push(Change::InsertRecord(record(
            &name,
            0,
            &json!({"status": status}),
        )));
        wanted.extend([took]);
    }
    for part in changes.chunks(2_000) {
        world.given(part.to_vec()).await;
    }
    let mut query = everything();
    query.amounts = vec![Summed {
        of: Quantity::Between(STARTED, COMPLETED),
        depth: Depth::Values,
    }];
    let groups = world.store.aggregate(&query).await.unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].sums.amounts[0].samples, wanted);
    assert!(!wanted.is_exact());
}

pub(super) async fn sums_are_of_one_moment(world: World) {
    const BUCKETS: i64 = 24;
    let mut query = everything();
    query.keys = vec![GroupKey::Bucket(
        Column::CreateTime,
        Calendar::utc(Unit::Hour),
    )];
    query.amounts = vec![Summed {
        of: Quantity::Value(Column::UpdateTime),
        depth: Depth::Values,
    }];
    let changes = (0..BUCKETS).map(|hour| result(&format!("p/results/{hour}"), 0));
    world.given(changes.map(Change::InsertResult)).await;
    // One record more in every hour with each write.
    let all = |number: usize| {
        (0..BUCKETS).map(move |hour| {
            let name = format!("p/results/{hour}/records/{number}");
            Change::InsertRecord(record(&name, hour * 3_600_000_000, &json!({})))
        })
    };
    world.given(all(0)).await;
    let writer = world.clone();
    let writing = tokio::spawn(async move {
        for number in 1..=60 {
            writer.given(all(number)).await;
        }
    });
    let mut last = 0;
    while last < 61 {
        let is_written = writing.is_finished();
        let groups = world.store.aggregate(&query).await.unwrap();
        let rows: Vec<u64> = groups.iter().map(|group| group.sums.rows).collect();
        assert_eq!(rows.len(), 24);
        assert!(rows.iter().all(|count| *count == rows[0]), "{rows:?}");
        assert!(rows[0] >= last, "an earlier moment");
        for group in &groups {
            assert_eq!(group.sums.amounts[0].count, group.sums.rows);
        }
        last = rows[0];
        assert!(last == 61 || !is_written, "a write failed after {last}");
    }
    writing.await.unwrap();
}
