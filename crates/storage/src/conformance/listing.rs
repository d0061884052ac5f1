//! Lists: every row once, in order, in pages of any size.

use std::{collections::HashSet, num::NonZeroU32};

use serde_json::{Map, json};

use super::{
    World,
    fixtures::{Dice, everything, map, names, record, result, summary, test, time},
};
use crate::seam::{Change, ListQuery, Listed, RecordColumns};
use hindsight_filter::model::{Resource, RunResult, Tier};
use hindsight_filter::{
    Order, Position,
    columns::of_result,
    condition::{Column, Condition, Is, Value},
    order::OrderKey,
};

const FIELDS: [Column; 4] = [
    Column::CreateTime,
    Column::UpdateTime,
    Column::SummaryStartTime,
    Column::SummaryEndTime,
];

fn limited(limit: u32) -> ListQuery {
    let limit = NonZeroU32::new(limit).expect("pages have rows");
    ListQuery {
        limit,
        bodies: false,
        ..everything()
    }
}

/// The order that is wanted, where `rows` are in the order in which they were inserted.
fn sorted(rows: &[RunResult], order: &Order) -> Vec<String> {
    let key = &order.keys()[0];
    let mut rows: Vec<_> = rows.iter().enumerate().collect();
    rows.sort_by(|(at, a), (bt, b)| {
        let time = |row| match of_result(row, &key.column) {
            Some(Value::Time(time)) => Some(time),
            _ => None,
        };
        let by_key = match (time(a), time(b)) {
            (Some(a), Some(b)) if key.descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        by_key.then(if key.descending {
            bt.cmp(at)
        } else {
            at.cmp(bt)
        })
    });
    rows.into_iter()
        .map(|(_, row)| row.name.to_string())
        .collect()
}

pub(super) async fn every_order_and_page_size_gives_each_row_once(world: World) {
    let mut dice = Dice::new(3);
    let mut rows = Vec::new();
    for at in 0..23 {
        // Few different times, so that many are equal; some before 1970.
        let early = |dice: &mut Dice| i64::try_from(dice.below(4)).unwrap() * 1_000_000;
        let mut row = result(&format!("p{}/results/r{at}", at % 2), early(&mut dice));
        row.update_time = time(early(&mut dice) - 1_800_000_000_000_000);
        if !dice.once_in(3) {
            let began = (!dice.once_in(3)).then(|| early(&mut dice));
            let ended = (!dice.once_in(3)).then(|| early(&mut dice));
            row.summary = Some(summary(&row.name, began, ended));
        }
        world.given([Change::InsertResult(row.clone())]).await;
        rows.push(row);
    }
    for field in FIELDS {
        for descending in [false, true] {
            let order = Order::by(field.clone(), descending);
            for limit in 1..=24 {
                let query = ListQuery {
                    order: order.clone(),
                    ..limited(limit)
                };
                let listed = names(&world, Resource::Results, &query).await;
                assert_eq!(
                    listed,
                    sorted(&rows, &order),
                    "{order:?} in pages of {limit}"
                );
                let only = ListQuery {
                    scope: "p1/results/-".parse().unwrap(),
                    ..query
                };
                let listed = names(&world, Resource::Results, &only).await;
                let wanted: Vec<_> = sorted(&rows, &order)
                    .into_iter()
                    .filter(|name| name.starts_with("p1/"))
                    .collect();
                assert_eq!(
                    listed, wanted,
                    "{order:?} of one parent in pages of {limit}"
                );
            }
        }
    }
}

pub(super) async fn scopes_cover_what_they_say(world: World) {
    let mut all = Vec::new();
    for parent in ["a", "a_b", "axb", "a/b", "A"] {
        for id in ["r", "s", "R"] {
            let name = format!("{parent}/results/{id}");
            world.given([Change::InsertResult(result(&name, 1))]).await;
            for id in ["x", "y"] {
                let name = format!("{name}/records/{id}");
                world
                    .given([Change::InsertRecord(record(&name, 1, &json!({})))])
                    .await;
                all.push(name);
            }
        }
    }
    for parent in ["-", "a", "a_b", "axb", "a/b", "A", "none"] {
        for id in ["-", "r", "R", "none"] {
            let scope = format!("{parent}/results/{id}");
            let query = ListQuery {
                scope: scope.parse().unwrap(),
                ..limited(4)
            };
            let listed: HashSet<_> = names(&world, Resource::Records, &query)
                .await
                .into_iter()
                .collect();
            let covers = |name: &&String| {
                let (result, _) = name.rsplit_once("/records/").unwrap();
                let (of, at) = result.rsplit_once("/results/").unwrap();
                (parent == "-" || parent == of) && (id == "-" || id == at)
            };
            let wanted: HashSet<_> = all.iter().filter(covers).cloned().collect();
            assert_eq!(listed, wanted, "records of {scope}");
            let results: HashSet<_> = names(&world, Resource::Results, &query)
                .await
                .into_iter()
                .collect();
            let wanted: HashSet<_> = wanted
                .iter()
                .map(|name| name.rsplit_once("/records/").unwrap().0.to_owned())
                .collect();
            assert_eq!(results, wanted, "results of {scope}");
        }
    }
}

pub(super) async fn pages_are_stable_while_rows_are_inserted(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let mut dice = Dice::new(5);
    let mut first = Vec::new();
    for at in 0..60 {
        let us = i64::try_from(dice.below(20)).unwrap();
        let value = record(&format!("a/results/r/records/{at}"), us, &json!({}));
        first.push(value.name.to_string());
        world.given([Change::InsertRecord(value)]).await;
    }
    for descending in [false, true] {
        let order = Order::by(Column::CreateTime, descending);
        let before: Vec<_> = names(
            &world,
            Resource::Records,
            &ListQuery {
                order: order.clone(),
                ..everything()
            },
        )
        .await
        .into_iter()
        .filter(|name| first.contains(name))
        .collect();
        let inserting = {
            let world = world.clone();
            let mut dice = dice.clone();
            tokio::spawn(async move {
                for at in 0..60 {
                    let us = i64::try_from(dice.below(20)).unwrap();
                    let name = format!("a/results/r/records/new-{descending}-{at}");
                    world
                        .given([Change::InsertRecord(record(&name, us, &json!({})))])
                        .await;
                }
            })
        };
        while !inserting.is_finished() {
            let query = ListQuery {
                order: order.clone(),
                ..limited(7)
            };
            let during = names(&world, Resource::Records, &query).await;
            let distinct: HashSet<_> = during.iter().collect();
            assert_eq!(distinct.len(), during.len(), "a row came twice");
            let old: Vec<_> = during
                .into_iter()
                .filter(|name| first.contains(name))
                .collect();
            assert_eq!(old, before);
        }
        inserting.await.unwrap();
    }
}

pub(super) async fn bodies_come_only_when_asked(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let x = record("a/results/r/records/x", 1, &json!({"kind": "X"}));
    let mut none = record("a/results/r/records/none", 2, &json!({}));
    none.data = None;
    world
        .given([
            Change::InsertRecord(x.clone()),
            Change::InsertRecord(none.clone()),
        ])
        .await;
    let with = world.store.list_records(&everything()).await.unwrap();
    let without = ListQuery {
        bodies: false,
        ..everything()
    };
    let without = world.store.list_records(&without).await.unwrap();
    assert_eq!(
        with.iter().map(|row| &row.item).collect::<Vec<_>>(),
        [&none, &x]
    );
    let mut thin = x.clone();
    thin.data.as_mut().unwrap().value.clear();
    assert_eq!(
        without.iter().map(|row| &row.item).collect::<Vec<_>>(),
        [&none, &thin]
    );
    let places = |rows: &[crate::seam::Listed<_>]| {
        rows.iter()
            .map(|row| row.position.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&with), places(&without));
}

pub(super) async fn records_have_no_key_of_results(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    for at in [3, 1, 2] {
        let value = record(&format!("a/results/r/records/{at}"), at, &json!({}));
        world.given([Change::InsertRecord(value)]).await;
    }
    for (descending, wanted) in [(false, ["3", "1", "2"]), (true, ["2", "1", "3"])] {
        let order = Order::by(Column::SummaryEndTime, descending);
        let listed = names(
            &world,
            Resource::Records,
            &ListQuery {
                order,
                ..limited(2)
            },
        )
        .await;
        assert_eq!(listed, wanted.map(|id| format!("a/results/r/records/{id}")));
    }
}

pub(super) async fn a_list_ends_when_it_has_its_bytes(world: World) {
    let sizes = [10, 0, 300, 5, 5, 5, 2000, 1];
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let mut dice = Dice::new(3);
    for (at, size) in sizes.iter().enumerate() {
        let us = i64::try_from(at).unwrap();
        let mut x = record(&format!("a/results/r/records/x{at}"), us, &json!({}));
        x.data.as_mut().unwrap().value = dice.bytes(*size).into();
        world.given([Change::InsertRecord(x)]).await;
    }
    for max in [0, 1, 10, 11, 309, 310, 311, 2325, 2326, usize::MAX] {
        for descending in [false, true] {
            let order = Order::by(Column::CreateTime, descending);
            let mut wanted = sizes.to_vec();
            if descending {
                wanted.reverse();
            }
            let mut query = ListQuery {
                order,
                max_bytes: Some(max),
                ..everything()
            };
            let mut found = Vec::new();
            while found.len() < sizes.len() {
                let page = world.store.list_records(&query).await.unwrap();
                let has: Vec<usize> = page
                    .iter()
                    .map(|row| row.item.data.as_ref().unwrap().value.len())
                    .collect();
                let rest = &wanted[found.len()..];
                let mut bytes = 0;
                let fitting = rest.iter().take_while(|size| {
                    let fits = bytes < max.max(1);
                    bytes += **size;
                    fits
                });
                assert_eq!(has.len(), fitting.count(), "at {} of {max}", found.len());
                found.extend(has);
                query.after = page.last().map(|row| row.position.clone());
            }
            assert_eq!(found, wanted);
        }
    }
}

/// The names, weights and places of a page of results, or of records with columns; of those in files the weight is 0.
async fn weighed(
    world: &World,
    resource: Resource,
    query: &ListQuery,
) -> Vec<(String, usize, Position)> {
    match resource {
        Resource::Results => {
            let page = world.store.list_results(query).await.unwrap().into_iter();
            page.map(|row| (row.item.name.to_string(), row.item.weight(), row.position))
                .collect()
        }
        Resource::Records => {
            let page = world.store.list_columns(query).await.unwrap().into_iter();
            let weight = |row: &Listed<RecordColumns>| match row.tier {
                Tier::Hot => row.item.weight(),
                Tier::Cold => 0,
            };
            page.map(|row| (row.item.record.name.to_string(), weight(&row), row.position))
                .collect()
        }
    }
}

pub(super) async fn lists_without_payloads_end_when_they_have_their_bytes(world: World) {
    for at in 0..40 {
        let name = format!("p{}/results/r{at}", at % 2);
        let text = "x".repeat(usize::try_from(at * 97 % 3_000).unwrap());
        let mut of = result(&name, at);
        of.annotations = map([("text", text.clone())]);
        let labels = json!({"team": format!("t{}", at % 3), "text": text});
        let object = json!({"metadata": {"name": format!("n{}-{text}", at % 7), "labels": labels}});
        let x = record(&format!("{name}/records/x"), at, &object);
        world
            .given([Change::InsertResult(of), Change::InsertRecord(x)])
            .await;
    }
    let labelled = Column::Label("team".to_owned());
    let one_team = test(labelled.clone(), Is::Equal(Value::Text("t1".to_owned())));
    let cases = [
        (Resource::Results, Condition::All, Order::newest_first()),
        (
            Resource::Results,
            Condition::All,
            Order::by(Column::Uid, false),
        ),
        (Resource::Records, Condition::All, Order::newest_first()),
        (
            Resource::Records,
            Condition::All,
            Order::by(labelled, false),
        ),
        (
            Resource::Records,
            one_team,
            Order::by(Column::CreateTime, false),
        ),
    ];
    for (resource, condition, order) in cases {
        for scope in ["-/results/-", "p1/results/-"] {
            let all = ListQuery {
                scope: scope.parse().unwrap(),
                condition: condition.clone(),
                order: order.clone(),
                ..everything()
            };
            let wanted: Vec<_> = weighed(&world, resource, &all).await;
            let wanted: Vec<_> = wanted.into_iter().map(|(name, ..)| name).collect();
            assert!(wanted.len() > 5, "{}", wanted.len());
            for most in [0, 1, 4_000, 20_000, usize::MAX] {
                let mut query = all.clone();
                query.max_bytes = Some(most);
                let mut found = Vec::new();
                loop {
                    let page = weighed(&world, resource, &query).await;
                    let Some((_, last, position)) = page.last() else {
                        break;
                    };
                    let bytes: usize = page.iter().map(|(_, bytes, _)| bytes).sum();
                    assert!(bytes - last < most.max(1), "{bytes} of {most}");
                    query.after = Some(position.clone());
                    found.extend(page.into_iter().map(|(name, ..)| name));
                }
                assert_eq!(
                    found, wanted,
                    "{resource:?} of {scope} by {order:?}, {most} bytes"
                );
            }
        }
    }
}

pub(super) async fn pages_by_many_labels_follow_each_other(world: World) {
    const KEYS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let mut wanted = Vec::new();
    for at in 0..48 {
        let labels = KEYS.map(|key| (key.to_owned(), json!(format!("{:02}", (at * 7) % 16))));
        let object = json!({"metadata": {"labels": Map::from_iter(labels)}});
        let name = format!("a/results/r/records/x{at:02}");
        let row = record(&name, at, &object);
        world.given([Change::InsertRecord(row)]).await;
        wanted.push(((at * 7) % 16, at, name));
    }
    wanted.sort();
    let labels = KEYS.map(|key| Column::Label(key.to_owned()));
    let columns = [Column::DataType].into_iter().chain(labels.clone());
    let keys = columns.map(|column| OrderKey {
        column,
        descending: false,
    });
    let keys: Vec<_> = keys.collect();
    assert_eq!(keys.len(), 8);
    for limit in [1, 5] {
        let query = ListQuery {
            order: Order::of(keys.clone()),
            condition: test(labels[0].clone(), Is::Present),
            bodies: true,
            max_bytes: Some(1 << 20),
            ..limited(limit)
        };
        let listed = names(&world, Resource::Records, &query).await;
        let wanted: Vec<_> = wanted.iter().map(|(.., name)| name.clone()).collect();
        assert_eq!(listed, wanted, "in pages of {limit}");
    }
}
