//! Groups and sums: what the database adds up is what plain addition gives.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value as Json, json};

use super::{
    World,
    filtering::of_record,
    fixtures::{Dice, ODD_TEXTS, record, result, time},
};
use crate::seam::{AggregateQuery, Change, GroupKey, Quantity, Summed};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::measure::{Calendar, EXACT, Group, Key, Samples, Unit};
use hindsight_filter::model::Record;

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
            "conditions": [{"type": "Succeeded", "status": dice.pick(&["True", "False"]), "reason": dice.pick(&["Succeeded", "Completed", "Failed", "Odd"])}],
        },
    })
}

async fn given(world: &World, count: usize) -> Vec<Record> {
    let mut dice = Dice::new(4);
    let mut changes = Vec::new();
    let mut records = Vec::new();
    for parent in ["p", "q"] {
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

fn test(column: Column, is: Is) -> Condition {
    Condition::Test(Test {
        column,
        is,
        negated: false,
    })
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
    }
}

fn random(dice: &mut Dice) -> AggregateQuery {
    let zones = ["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"];
    let zone: &str = dice.pick::<&str>(&zones);
    let zone = TimeZone::get(zone).unwrap();
    let columns = [
        Column::Parent,
        Column::DataType,
        Column::Label("odd".to_owned()),
        Column::Label("tekton.dev/pipeline".to_owned()),
        Column::Object(ObjectField::Namespace),
        Column::Object(ObjectField::Reason),
        Column::SummaryType,
        Column::Outcome,
        Column::Pipeline,
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
            GroupKey::Piece(dice.pick(&times).clone(), Calendar { unit, zone })
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
        sampled: dice.once_in(2),
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
    }
}

/// Rows, counts, and each amount's values in ascending order.
type Plain = (u64, Vec<u64>, Vec<Vec<i64>>);

fn number(record: &Record, of: &Quantity) -> Option<i64> {
    let time = |column: &Column| match of_record(record, column)? {
        Value::Time(time) => Some(time.as_microsecond()),
        Value::Int(number) => Some(number),
        Value::Text(_) => None,
    };
    match of {
        Quantity::Value(Column::Duration) => time(&Column::Duration).filter(|us| *us >= 0),
        Quantity::Value(column) => time(column),
        // What ended before it began took no time that could be told.
        Quantity::Between(from, to) => Some(time(to)? - time(from)?).filter(|us| *us >= 0),
    }
}

fn key(record: &Record, key: &GroupKey) -> Key {
    let (GroupKey::Column(column) | GroupKey::Piece(column, _)) = key;
    match (of_record(record, column), key) {
        (None, _) => Key::Missing,
        (Some(Value::Text(text)), _) => Key::Text(text),
        (Some(Value::Int(number)), _) => Key::Int(number),
        (Some(Value::Time(time)), GroupKey::Column(_)) => Key::Time(time.as_microsecond()),
        (Some(Value::Time(time)), GroupKey::Piece(_, calendar)) => {
            Key::Time(calendar.piece(time.as_microsecond()).0)
        }
    }
}

fn plainly(records: &[Record], query: &AggregateQuery) -> BTreeMap<Vec<Key>, Plain> {
    let mut groups: BTreeMap<Vec<Key>, Plain> = BTreeMap::new();
    for record in records {
        let column = |column: &Column| of_record(record, column);
        let name = record.name.to_string();
        let inside = match query.scope.to_string().as_str() {
            "p/results/-" | "p/results/r" => name.starts_with("p/"),
            "none/results/-" => false,
            _ => true,
        };
        if !inside || !query.condition.passes(&column) {
            continue;
        }
        let keys = query.keys.iter().map(|one| key(record, one)).collect();
        let group = groups.entry(keys).or_insert_with(|| {
            (
                0,
                vec![0; query.counts.len()],
                vec![Vec::new(); query.amounts.len()],
            )
        });
        group.0 += 1;
        for (count, condition) in group.1.iter_mut().zip(&query.counts) {
            *count += u64::from(condition.passes(&column));
        }
        for (values, summed) in group.2.iter_mut().zip(&query.amounts) {
            values.extend(number(record, &summed.of));
            values.sort_unstable();
        }
    }
    groups
}

fn read(group: Group, query: &AggregateQuery) -> (Vec<Key>, Plain) {
    let mut amounts = Vec::new();
    for (amount, summed) in group.sums.amounts.into_iter().zip(&query.amounts) {
        let mut values = match amount.samples {
            Samples::All(ref values) => values.clone(),
            Samples::Sketch(_) => panic!("there are few"),
        };
        values.sort_unstable();
        if summed.sampled {
            assert_eq!(amount.count, values.len() as u64);
            assert_eq!(amount.sum(), values.iter().map(|v| i128::from(*v)).sum());
            assert_eq!(amount.least, values.first().copied());
            assert_eq!(amount.most, values.last().copied());
        } else {
            assert!(values.is_empty());
        }
        amounts.push(values);
    }
    (group.keys, (group.sums.rows, group.sums.counts, amounts))
}

pub(super) async fn sums_agree_with_plain_ones(world: World) {
    let records = given(&world, 200).await;
    let mut dice = Dice::new(11);
    for number in 0..150 {
        let mut query = random(&mut dice);
        let groups = world.store.aggregate(&query).await.unwrap();
        let order: Vec<_> = groups.iter().map(|group| group.keys.clone()).collect();
        assert!(order.is_sorted(), "query {number} is in the order of keys");
        let got: BTreeMap<_, _> = groups.into_iter().map(|g| read(g, &query)).collect();
        let mut wanted = plainly(&records, &query);
        for group in wanted.values_mut() {
            for (values, summed) in group.2.iter_mut().zip(&query.amounts) {
                if !summed.sampled {
                    values.clear();
                }
            }
        }
        assert_eq!(got, wanted, "query {number}: {query:?}");
        // The same without the values: counts, sums and ends are there all the same.
        for summed in &mut query.amounts {
            summed.sampled = false;
        }
        let wanted = plainly(&records, &query);
        for group in world.store.aggregate(&query).await.unwrap() {
            let (_, _, values) = &wanted[&group.keys];
            for (amount, values) in group.sums.amounts.iter().zip(values) {
                assert_eq!(amount.count, values.len() as u64);
                assert_eq!(amount.sum(), values.iter().map(|v| i128::from(*v)).sum());
                assert_eq!(amount.least, values.first().copied(), "{query:?}");
                assert_eq!(amount.most, values.last().copied());
            }
        }
    }
}

pub(super) async fn pieces_of_the_calendar_are_those_of_the_zone(world: World) {
    let records = given(&world, 200).await;
    for zone in ["Europe/Berlin", "Pacific/Apia", "Asia/Kolkata"] {
        let zone = TimeZone::get(zone).unwrap();
        for column in [CREATED, Column::CreateTime] {
            let unit = Unit::Day;
            let day = Calendar {
                unit,
                zone: zone.clone(),
            };
            let mut query = everything();
            query.keys = vec![GroupKey::Piece(column.clone(), day)];
            let date = |us: i64| {
                let time = Timestamp::from_microsecond(us).unwrap();
                time.to_zoned(zone.clone()).date().to_string()
            };
            let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
            for record in &records {
                let date = match of_record(record, &column) {
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
                "{column:?} {zone:?}"
            );
        }
    }
}

pub(super) async fn what_has_no_rows_has_no_groups(world: World) {
    let mut query = everything();
    query.counts = vec![Condition::All];
    query.amounts = vec![Summed {
        of: Quantity::Between(STARTED, COMPLETED),
        sampled: true,
    }];
    assert_eq!(world.store.aggregate(&query).await.unwrap(), []);
    let days = Calendar::utc(Unit::Day);
    query.keys = vec![
        GroupKey::Piece(Column::CreateTime, days.clone()),
        GroupKey::Piece(STARTED, days),
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
        sampled: true,
    }];
    let groups = world.store.aggregate(&query).await.unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].sums.amounts[0].samples, wanted);
    assert!(!wanted.is_exact());
}

pub(super) async fn sums_are_of_one_moment(world: World) {
    const PIECES: i64 = 24;
    let mut query = everything();
    query.keys = vec![GroupKey::Piece(
        Column::CreateTime,
        Calendar::utc(Unit::Hour),
    )];
    query.amounts = vec![Summed {
        of: Quantity::Value(Column::UpdateTime),
        sampled: true,
    }];
    let changes = (0..PIECES).map(|hour| result(&format!("p/results/{hour}"), 0));
    world.given(changes.map(Change::InsertResult)).await;
    // One record more in every hour with each write.
    let all = |number: usize| {
        (0..PIECES).map(move |hour| {
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
        let groups = world.store.aggregate(&query).await.unwrap();
        let rows: Vec<u64> = groups.iter().map(|group| group.sums.rows).collect();
        assert_eq!(rows.len(), 24);
        assert!(rows.iter().all(|count| *count == rows[0]), "{rows:?}");
        assert!(rows[0] >= last, "an earlier moment");
        for group in &groups {
            assert_eq!(group.sums.amounts[0].count, group.sums.rows);
        }
        last = rows[0];
    }
    writing.await.unwrap();
}
