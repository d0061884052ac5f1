//! Conditions: what the database answers is what plain evaluation answers.

use std::{cmp::Ordering, collections::BTreeSet};

use jiff::Timestamp;
use serde_json::json;

use super::{
    World,
    fixtures::{Dice, ODD_TEXTS, everything, map, names, record, result, summary, time},
};
use crate::seam::{Change, Error, ListQuery};
use hindsight_filter::model::{Record, Resource, RunResult};
use hindsight_filter::{
    columns::object_columns,
    condition::{Ability, Column, Condition, Is, ObjectField, Test, Value},
};

/// A row of either resource.
enum Row {
    Result(RunResult),
    Record(Record),
}

impl Row {
    fn name(&self) -> String {
        match self {
            Self::Result(value) => value.name.to_string(),
            Self::Record(value) => value.name.to_string(),
        }
    }

    /// What a column holds, by the words of the seam.
    fn value(&self, column: &Column) -> Option<Value> {
        match self {
            Self::Result(value) => of_result(value, column),
            Self::Record(value) => of_record(value, column),
        }
    }

    fn passes(&self, condition: &Condition) -> bool {
        match condition {
            Condition::All => true,
            Condition::Nothing => false,
            Condition::And(all) => all.iter().all(|one| self.passes(one)),
            Condition::Or(any) => any.iter().any(|one| self.passes(one)),
            Condition::Test(test) => match (self.value(&test.column), &test.is) {
                (value, Is::Present) => value.is_some() != test.negated,
                (None, _) => false,
                (Some(value), is) => plain(&value, is) != test.negated,
            },
        }
    }
}

fn of_result(value: &RunResult, column: &Column) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let summary = value.summary.as_ref();
    match column {
        Column::Parent => text(value.name.parent().as_str()),
        Column::ResultId => text(value.name.id()),
        Column::Uid => text(&value.uid),
        Column::CreateTime => Some(Value::Time(value.create_time)),
        Column::UpdateTime => Some(Value::Time(value.update_time)),
        Column::SummaryRecord => text(&summary?.record.to_string()),
        Column::SummaryType => text(&summary?.data_type),
        Column::SummaryStartTime => summary?.start_time.map(Value::Time),
        Column::SummaryEndTime => summary?.end_time.map(Value::Time),
        Column::SummaryStatus => Some(Value::Int(summary?.status.into())),
        Column::Annotation(key) => text(value.annotations.get(key)?),
        Column::SummaryAnnotation(key) => text(summary?.annotations.get(key)?),
        _ => None,
    }
}

pub(super) fn of_record(value: &Record, column: &Column) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let time = |us| Timestamp::from_microsecond(us).ok().map(Value::Time);
    let data = value.data.as_ref();
    let columns = || data.map(object_columns);
    match column {
        Column::Parent => text(value.name.result().parent().as_str()),
        Column::ResultId => text(value.name.result().id()),
        Column::Uid => text(&value.uid),
        Column::CreateTime => Some(Value::Time(value.create_time)),
        Column::UpdateTime => Some(Value::Time(value.update_time)),
        Column::Outcome => columns()?.run.outcome.map(Value::Int),
        Column::Duration => columns()?.run.duration().map(Value::Int),
        Column::Began => time(columns()?.run.began?),
        Column::Ended => time(columns()?.run.ended?),
        Column::Pipeline => text(columns()?.pipeline()?),
        Column::RecordId => text(value.name.id()),
        Column::RecordName => text(&value.name.to_string()),
        Column::DataType => text(&data?.data_type),
        Column::Object(field) if field.is_time() => columns()?.time(*field).map(Value::Time),
        Column::Object(field) => text(columns()?.text(*field)?),
        Column::Label(key) => text(columns()?.labels.get(key)?),
        _ => None,
    }
}

fn plain(value: &Value, is: &Is) -> bool {
    let order = |with: &Value| match (value, with) {
        (Value::Text(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let text = match value {
        Value::Text(text) => text.as_str(),
        _ => "",
    };
    match is {
        Is::Present => true,
        Is::Equal(with) => order(with) == Some(Ordering::Equal),
        Is::OneOf(list) => list.iter().any(|with| order(with) == Some(Ordering::Equal)),
        Is::Less(with) => order(with).is_some_and(Ordering::is_lt),
        Is::AtMost(with) => order(with).is_some_and(Ordering::is_le),
        Is::Greater(with) => order(with).is_some_and(Ordering::is_gt),
        Is::AtLeast(with) => order(with).is_some_and(Ordering::is_ge),
        Is::StartsWith(part) => text.starts_with(part.as_str()),
        Is::EndsWith(part) => text.ends_with(part.as_str()),
        Is::Contains(part) => text.contains(part.as_str()),
    }
}

/// Asks for one condition; exact ones give the same rows, others at least those.
async fn agree(world: &World, resource: Resource, rows: &[Row], condition: Condition, exact: bool) {
    let wanted: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.passes(&condition))
        .map(Row::name)
        .collect();
    let query = ListQuery {
        condition,
        bodies: false,
        ..everything()
    };
    let got: BTreeSet<String> = names(world, resource, &query).await.into_iter().collect();
    if exact {
        assert_eq!(got, wanted, "{:?}", query.condition);
    } else {
        assert!(
            wanted.is_subset(&got),
            "too little for {:?}",
            query.condition
        );
    }
}

/// Texts that cut into escapes and into each other.
const PARTS: [&str; 6] = ["b", "\u{2}", "\0", "\u{1}", "本語", "\u{10ffff}\u{10ffff}"];

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = ODD_TEXTS
        .iter()
        .chain(&PARTS)
        .map(|text| (*text).to_owned())
        .collect();
    for length in [127, 128, 129, 300] {
        texts.push("x".repeat(length));
        texts.push(format!("{}é", "x".repeat(length - 1)));
    }
    texts
}

fn questions(dice: &mut Dice, column: &Column, texts: &[String], all: bool) -> Vec<Is> {
    let is_time = matches!(
        column,
        Column::CreateTime | Column::UpdateTime | Column::SummaryStartTime | Column::SummaryEndTime
    ) || matches!(column, Column::Object(field) if field.is_time());
    let mut values: Vec<Value> = if is_time {
        [-1, 0, 1, 2, 3]
            .map(|s| Value::Time(time(s * 1_000_000)))
            .to_vec()
    } else if *column == Column::SummaryStatus {
        [-1, 0, 1, 2, i64::from(i32::MAX) + 1]
            .map(Value::Int)
            .to_vec()
    } else {
        let all = texts.iter().cloned().map(Value::Text);
        all.chain(["p0", "p0/results/z/records/x1", "r1", "z", "x1"].map(|t| Value::Text(t.into())))
            .collect()
    };
    if !all {
        values = (0..3).map(|_| dice.pick(&values).clone()).collect();
    }
    let mut questions = vec![
        Is::Present,
        Is::OneOf(vec![]),
        Is::OneOf((0..4).map(|_| dice.pick(&values).clone()).collect()),
        // Of a type that the column never has.
        Is::Equal(if is_time {
            Value::Int(0)
        } else {
            Value::Time(time(0))
        }),
    ];
    for value in values {
        for is in [Is::Equal, Is::Less, Is::AtMost, Is::Greater, Is::AtLeast] {
            questions.push(is(value.clone()));
        }
        if let Value::Text(text) = value {
            for is in [Is::StartsWith, Is::EndsWith, Is::Contains] {
                questions.push(is(text.clone()));
            }
        }
    }
    questions
}

async fn every_test(world: &World, resource: Resource, rows: &[Row], columns: &[Column]) {
    let mut dice = Dice::new(11);
    let texts = texts();
    for (at, column) in columns.iter().enumerate() {
        // All texts on some columns of each sort; a few on the others.
        for is in questions(&mut dice, column, &texts, at % 3 == 0) {
            for negated in [false, true] {
                let test = Test {
                    column: column.clone(),
                    is: is.clone(),
                    negated,
                };
                let exact = world.store.ability(&test) == Ability::Exact;
                agree(world, resource, rows, Condition::Test(test), exact).await;
            }
        }
    }
}

fn keys() -> [&'static str; 12] {
    [
        "a", "$", "$.a", "0", "[0]", "#", "a.b/c", "\"", "a\"b", "", "\0", "none",
    ]
}

async fn results(world: &World) -> Vec<Row> {
    let mut dice = Dice::new(7);
    let texts = texts();
    let mut rows = Vec::new();
    for at in 0..70 {
        let seconds = |dice: &mut Dice| i64::try_from(dice.below(4)).unwrap() * 1_000_000;
        let mut row = result(&format!("p{}/results/r{at}", at % 3), seconds(&mut dice));
        row.update_time = time(seconds(&mut dice));
        row.uid = texts[at % texts.len()].clone();
        row.annotations = map([
            (*dice.pick(&keys()), dice.pick(&texts).clone()),
            ("a", dice.pick(&texts).clone()),
        ]);
        if !dice.once_in(4) {
            let began = (!dice.once_in(3)).then(|| seconds(&mut dice));
            let mut about = summary(&row.name, began, None);
            about.status = i32::try_from(dice.below(3)).unwrap();
            about.data_type = dice.pick(&texts).clone();
            about.annotations = map([(*dice.pick(&keys()), dice.pick(&texts).clone())]);
            row.summary = Some(about);
        }
        world.given([Change::InsertResult(row.clone())]).await;
        rows.push(Row::Result(row));
    }
    rows
}

async fn records(world: &World) -> Vec<Row> {
    let mut dice = Dice::new(9);
    let texts = texts();
    for parent in 0..3 {
        world
            .given([Change::InsertResult(result(
                &format!("p{parent}/results/z"),
                0,
            ))])
            .await;
    }
    let mut rows = Vec::new();
    for at in 0..90 {
        let mut text = || {
            if dice.once_in(5) {
                json!(7)
            } else {
                json!(dice.pick(&texts))
            }
        };
        let mut object = json!({
            "kind": text(), "metadata": {"name": text(), "uid": text()},
            "spec": {"taskRef": {"name": text()}}, "status": {"phase": text()},
        });
        let when: Timestamp = time(i64::try_from(dice.below(4)).unwrap() * 1_000_000);
        object["status"]["startTime"] = json!(when.to_string());
        object["metadata"]["labels"] = json!({*dice.pick(&keys()): dice.pick(&texts)});
        let mut row = record(&format!("p{}/results/z/records/x{at}", at % 3), 1, &object);
        match dice.below(8) {
            0 => row.data = None,
            1 => row.data.as_mut().unwrap().value.clear(),
            _ => row.data.as_mut().unwrap().data_type = dice.pick(&texts).clone(),
        }
        world.given([Change::InsertRecord(row.clone())]).await;
        rows.push(Row::Record(row));
    }
    rows
}

fn result_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::Uid,
        Column::Parent,
        Column::ResultId,
        Column::SummaryType,
        Column::CreateTime,
        Column::UpdateTime,
        Column::SummaryRecord,
        Column::SummaryStartTime,
        Column::SummaryEndTime,
        Column::SummaryStatus,
        Column::DataType,
        Column::Label("a".to_owned()),
    ];
    columns.extend(keys().map(|key| Column::Annotation(key.to_owned())));
    columns.extend(keys().map(|key| Column::SummaryAnnotation(key.to_owned())));
    columns
}

fn record_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::DataType,
        Column::Uid,
        Column::Parent,
        Column::RecordName,
        Column::RecordId,
        Column::ResultId,
        Column::CreateTime,
        Column::UpdateTime,
        Column::SummaryType,
        Column::Annotation("a".to_owned()),
    ];
    columns.extend(ObjectField::ALL.map(Column::Object));
    columns.extend(keys().map(|key| Column::Label(key.to_owned())));
    columns
}

pub(super) async fn every_test_agrees_with_plain_evaluation_on_results(world: World) {
    let rows = results(&world).await;
    every_test(&world, Resource::Results, &rows, &result_columns()).await;
}

pub(super) async fn every_test_agrees_with_plain_evaluation_on_records(world: World) {
    let rows = records(&world).await;
    every_test(&world, Resource::Records, &rows, &record_columns()).await;
}

pub(super) async fn combined_conditions_agree_with_plain_evaluation(world: World) {
    fn condition(dice: &mut Dice, texts: &[String], columns: &[Column], depth: usize) -> Condition {
        let list = |dice: &mut Dice| {
            (0..dice.below(4))
                .map(|_| condition(dice, texts, columns, depth - 1))
                .collect()
        };
        match dice.below(if depth == 0 { 7 } else { 14 }) {
            0 => Condition::All,
            1 => Condition::Nothing,
            2..=6 => {
                let column = dice.pick(columns).clone();
                let questions = questions(dice, &column, texts, false);
                let is = dice.pick(&questions).clone();
                Condition::Test(Test {
                    column,
                    is,
                    negated: dice.once_in(2),
                })
            }
            7..=9 => Condition::Or(list(dice)),
            _ => Condition::And(list(dice)),
        }
    }
    fn is_exact(world: &World, condition: &Condition) -> bool {
        match condition {
            Condition::All | Condition::Nothing => true,
            Condition::And(list) | Condition::Or(list) => {
                list.iter().all(|one| is_exact(world, one))
            }
            Condition::Test(test) => world.store.ability(test) == Ability::Exact,
        }
    }
    let rows = [results(&world).await, records(&world).await];
    let texts = texts();
    let mut dice = Dice::new(13);
    for _ in 0..250 {
        for (resource, columns, at) in [
            (Resource::Results, result_columns(), 0),
            (Resource::Records, record_columns(), 1),
        ] {
            let condition = condition(&mut dice, &texts, &columns, 3);
            let exact = is_exact(&world, &condition);
            // The results that hold the records are not among the rows.
            let Row::Result(_) = &rows[at][0] else {
                agree(&world, resource, &rows[at], condition, exact).await;
                continue;
            };
            let own = Condition::And(vec![
                condition,
                Condition::Test(Test {
                    column: Column::ResultId,
                    is: Is::Equal(Value::Text("z".to_owned())),
                    negated: true,
                }),
            ]);
            agree(&world, resource, &rows[at], own, exact).await;
        }
    }
}

pub(super) async fn a_condition_of_thousands_is_answered(world: World) {
    let rows = records(&world).await;
    let test = |text: String| {
        let is = Is::Equal(Value::Text(text));
        Condition::Test(Test {
            column: Column::RecordId,
            is,
            negated: false,
        })
    };
    let many = |count: usize| (0..count).map(|at| test(format!("x{}", at * 7))).collect();
    agree(
        &world,
        Resource::Records,
        &rows,
        Condition::Or(many(3_000)),
        true,
    )
    .await;
    agree(
        &world,
        Resource::Records,
        &rows,
        Condition::And(many(3_000)),
        true,
    )
    .await;
    let condition = Condition::Or(many(40_000));
    let refused = world
        .store
        .list_records(&ListQuery {
            condition,
            ..everything()
        })
        .await;
    assert!(
        matches!(refused, Err(Error::Database { .. })),
        "an answer to too many values"
    );
    let values = (0..50_000)
        .map(|at| Value::Text(format!("x{}", at * 3)))
        .collect();
    let test = Test {
        column: Column::RecordId,
        is: Is::OneOf(values),
        negated: true,
    };
    agree(
        &world,
        Resource::Records,
        &rows,
        Condition::Test(test),
        true,
    )
    .await;
}

pub(super) async fn names_are_compared_as_wholes(world: World) {
    let rows = records(&world).await;
    for text in [
        "p1/results/z/records/x1",
        "p1/results/z/records/x2",
        "p1/results/Z/records/x1",
        "p1/results/z/records/x",
        "x1",
        "",
        "p1/results/-/records/x1",
        "nonsense/records/",
    ] {
        for negated in [false, true] {
            let is = Is::Equal(Value::Text(text.to_owned()));
            let test = Test {
                column: Column::RecordName,
                is,
                negated,
            };
            agree(
                &world,
                Resource::Records,
                &rows,
                Condition::Test(test),
                true,
            )
            .await;
        }
    }
}
