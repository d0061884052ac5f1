//! Conditions: what the database answers is what maps in memory answer.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::json;

use super::{
    World,
    fixtures::{AT_ONCE, Dice, ODD_TEXTS, everything, map, names, record, result, summary, time},
};
use crate::seam::{Change, Error, ListQuery};
use hindsight_filter::condition::{Ability, Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::{Order, model::Resource};

/// A store and the maps in memory that have the same rows.
struct Both {
    world: World,
    model: World,
}

impl Both {
    fn new(world: World) -> Self {
        let model = World::in_memory("");
        Self { world, model }
    }

    async fn given(&self, change: Change) {
        self.world.given([change.clone()]).await;
        self.model.given([change]).await;
    }

    /// Asks for one condition; exact ones give the same rows, others at least those.
    async fn agree(&self, resource: Resource, condition: Condition, exact: bool) {
        let query = ListQuery {
            condition,
            bodies: false,
            ..everything()
        };
        let wanted = names(&self.model, resource, &query).await;
        let wanted: BTreeSet<String> = wanted.into_iter().collect();
        let got = names(&self.world, resource, &query).await;
        let got: BTreeSet<String> = got.into_iter().collect();
        if exact {
            assert_eq!(got, wanted, "{:?}", query.condition);
        } else {
            let condition = query.condition;
            assert!(wanted.is_subset(&got), "too little for {condition:?}");
        }
    }

    /// Both have the same rows of which a test holds, and of which it does not.
    async fn agree_on(&self, of: Resource, column: &Column, is: &Is) {
        for negated in [false, true] {
            let test = Test {
                column: column.clone(),
                is: is.clone(),
                negated,
            };
            self.agree(of, Condition::Test(test), true).await;
        }
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
    // UUIDs, what is nearly one, and words that are kept as numbers.
    for text in [
        "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11",
        "0B4F9A2E-5F0A-4A30-9D3A-6F2C1F0D9E11",
        "0b4f9a2e5f0a4a309d3a6f2c1f0d9e11",
        "0b4f",
        "of sixteen bytes",
        "tekton.dev/v1.TaskRun",
        "tekton.dev/v1.TaskRuns",
        "TaskRun",
        "tekton.dev/",
    ] {
        texts.push(text.to_owned());
    }
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
        all.chain(
            [
                "p0",
                "east",
                "eas",
                "east/namespace",
                "p1/results/z/records/sixteen-bytes-01",
                "p0/results/z/records/0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d0015",
                "0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d0015",
                "p0/results/z/records/0b4f",
                "sixteen-bytes-01",
                "r1",
                "z",
                "x2",
            ]
            .map(|t| Value::Text(t.into())),
        )
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

async fn every_test(both: &Both, resource: Resource, columns: &[Column]) {
    let mut dice = Dice::new(11);
    let texts = texts();
    let mut tests = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        // All texts on some columns of each sort; a few on the others.
        for is in questions(&mut dice, column, &texts, at % 3 == 0) {
            for negated in [false, true] {
                tests.push(Test {
                    column: column.clone(),
                    is: is.clone(),
                    negated,
                });
            }
        }
    }
    let agree = |test: Test| {
        let exact = both.world.store.ability(&test) == Ability::Exact;
        both.agree(resource, Condition::Test(test), exact)
    };
    stream::iter(tests)
        .for_each_concurrent(AT_ONCE, agree)
        .await;
}

fn keys() -> [&'static str; 13] {
    [
        "a",
        "$",
        "$.a",
        "0",
        "[0]",
        "#",
        "a.b/c",
        "\"",
        "a\"b",
        "",
        "\0",
        "tekton.dev/task",
        "none",
    ]
}

async fn results(both: &Both) {
    let mut dice = Dice::new(7);
    let texts = texts();
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
        both.given(Change::InsertResult(row)).await;
    }
}

/// Those of records; the last one is of a cluster.
const PARENTS: [&str; 3] = ["p0", "p1", "cluster/east/namespace/p2"];

async fn records(both: &Both) {
    let mut dice = Dice::new(9);
    let texts = texts();
    for parent in PARENTS {
        let holder = result(&format!("{parent}/results/z"), 0);
        both.given(Change::InsertResult(holder)).await;
    }
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
        let mut labels = json!({*dice.pick(&keys()): dice.pick(&texts)});
        match at % 4 {
            0 => labels["tekton.dev/pipeline"] = json!("plain"),
            1 => labels["number"] = json!(at),
            _ => {}
        }
        object["metadata"]["labels"] = labels;
        let id = match at % 5 {
            0 => format!("0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d{at:04}"),
            1 => format!("sixteen bytes {at:02}").replace(' ', "-"),
            _ => format!("x{at}"),
        };
        if at % 3 == 0 {
            object["metadata"]["uid"] = json!(id);
        }
        let mut row = record(
            &format!("{}/results/z/records/{id}", PARENTS[at % 3]),
            1,
            &object,
        );
        match dice.below(8) {
            0 => row.data = None,
            1 => row.data.as_mut().unwrap().value.clear(),
            _ => row.data.as_mut().unwrap().data_type = dice.pick(&texts).clone(),
        }
        both.given(Change::InsertRecord(row)).await;
    }
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
        Column::Cluster,
        Column::RecordName,
        Column::RecordId,
        Column::ResultId,
        Column::CreateTime,
        Column::UpdateTime,
        Column::SummaryType,
        Column::Annotation("a".to_owned()),
        Column::Labels,
    ];
    columns.extend(ObjectField::ALL.map(Column::Object));
    columns.extend(keys().map(|key| Column::Label(key.to_owned())));
    columns
}

pub(super) async fn every_test_agrees_with_plain_evaluation_on_results(world: World) {
    let both = Both::new(world);
    results(&both).await;
    every_test(&both, Resource::Results, &result_columns()).await;
}

pub(super) async fn every_test_agrees_with_plain_evaluation_on_records(world: World) {
    let both = Both::new(world);
    records(&both).await;
    every_test(&both, Resource::Records, &record_columns()).await;
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
    let both = Both::new(world);
    results(&both).await;
    records(&both).await;
    let texts = texts();
    let mut dice = Dice::new(13);
    for _ in 0..250 {
        for (resource, columns) in [
            (Resource::Results, result_columns()),
            (Resource::Records, record_columns()),
        ] {
            let condition = condition(&mut dice, &texts, &columns, 3);
            let exact = is_exact(&both.world, &condition);
            both.agree(resource, condition, exact).await;
        }
    }
}

pub(super) async fn a_condition_of_thousands_is_answered(world: World) {
    let both = Both::new(world);
    records(&both).await;
    let test = |text: String| {
        let is = Is::Equal(Value::Text(text));
        Condition::Test(Test {
            column: Column::RecordId,
            is,
            negated: false,
        })
    };
    let many = |count: usize| (0..count).map(|at| test(format!("x{}", at * 7))).collect();
    both.agree(Resource::Records, Condition::Or(many(3_000)), true)
        .await;
    both.agree(Resource::Records, Condition::And(many(3_000)), true)
        .await;
    let condition = Condition::Or(many(40_000));
    let query = ListQuery {
        condition,
        ..everything()
    };
    match both.world.store.list_records(&query).await {
        // More values than a statement has, where there are statements.
        Err(Error::Database { .. }) => assert!(!both.world.is_in_memory()),
        answer => assert!(both.world.is_in_memory(), "{answer:?}"),
    }
    let values = (0..50_000)
        .map(|at| Value::Text(format!("x{}", at * 3)))
        .collect();
    let test = Test {
        column: Column::RecordId,
        is: Is::OneOf(values),
        negated: true,
    };
    both.agree(Resource::Records, Condition::Test(test), true)
        .await;
}

pub(super) async fn names_are_compared_as_wholes(world: World) {
    let both = Both::new(world);
    records(&both).await;
    let names = [
        "p1/results/z/records/x1",
        "p1/results/z/records/x2",
        "p1/results/Z/records/x1",
        "p1/results/z/records/x",
        "x1",
        "",
        "p1/results/-/records/x1",
        "nonsense/records/",
    ];
    let texts = names.map(|name| Value::Text(name.to_owned()));
    let mut asked: Vec<Is> = texts.clone().map(Is::Equal).into();
    asked.extend([
        Is::OneOf(texts.to_vec()),
        Is::OneOf(texts[..2].to_vec()),
        Is::OneOf(texts[2..].to_vec()),
        Is::OneOf(texts[4..].to_vec()),
    ]);
    for is in asked {
        both.agree_on(Resource::Records, &Column::RecordName, &is)
            .await;
    }
}

pub(super) async fn uids_are_compared_whatever_is_kept_of_them(world: World) {
    let both = Both::new(world);
    records(&both).await;
    let mut made = Vec::new();
    for at in 0..12_i64 {
        let id = format!("0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d90{at:02}");
        // Years apart, and microseconds.
        let us = 1_771_425_180_000_004 - (at / 3) * 100_000_000_000_000 + at % 3 * 999;
        let holder = result(&format!("p0/results/{id}"), us);
        let row = record(&format!("{}/records/{id}", holder.name), us, &json!({}));
        both.given(Change::InsertResult(holder.clone())).await;
        both.given(Change::InsertRecord(row.clone())).await;
        made.push((holder, row));
    }
    let query = ListQuery {
        order: Order::by(Column::Uid, false),
        bodies: false,
        ..everything()
    };
    for of in [Resource::Results, Resource::Records] {
        let wanted = names(&both.model, of, &query).await;
        assert_eq!(names(&both.world, of, &query).await, wanted, "in order");
        let (other, uid) = match of {
            Resource::Results => (&made[2].0.uid, &made[7].0.uid),
            Resource::Records => (&made[2].1.uid, &made[7].1.uid),
        };
        let text = |text: &str| Value::Text(text.to_owned());
        for is in [
            Is::Equal(text(uid)),
            Is::Equal(text("uid of p1/results/z/records/x7")),
            Is::OneOf(vec![text(uid), text(other), text("nobody")]),
            Is::Less(text(uid)),
            Is::AtMost(text(uid)),
            Is::Greater(text(uid)),
            Is::AtLeast(text(uid)),
            Is::StartsWith(uid[..20].to_owned()),
            Is::EndsWith(uid[20..].to_owned()),
            Is::Contains(uid[9..30].to_owned()),
        ] {
            both.agree_on(of, &Column::Uid, &is).await;
        }
    }
    // Etags that follow from uids are found as well.
    for (holder, row) in made {
        let (name, expect) = (row.name, Some(row.etag));
        both.given(Change::DeleteRecord { name, expect }).await;
        let (name, expect) = (holder.name, Some(holder.etag));
        both.given(Change::DeleteResult { name, expect }).await;
    }
}
