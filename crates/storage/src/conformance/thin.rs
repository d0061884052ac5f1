//! Lists with columns: what they say of a payload is what the payload says.

use std::num::NonZeroU32;

use serde_json::{Value as Json, json};

use super::{
    World,
    fixtures::{Dice, ODD_TEXTS, everything, record, result},
};
use crate::seam::{Change, ListQuery, Projection, RecordColumns};
use hindsight_filter::columns::ObjectColumns;
use hindsight_filter::condition::{Column, ObjectField};
use hindsight_filter::model::Record;
use hindsight_filter::order::{Order, OrderKey};

/// Kinds and types, words and others.
const TYPES: [(&str, &str); 5] = [
    ("tekton.dev/v1.TaskRun", "TaskRun"),
    ("tekton.dev/v1.PipelineRun", "PipelineRun"),
    ("argoproj.io/v1alpha1.Workflow", "Workflow"),
    ("ray.io/v1.RayJob", "RayJob"),
    ("text/plain", "Odd"),
];

/// An object with odd texts and times, some of which are missing.
fn object(dice: &mut Dice, kind: &str, uid: &str) -> Json {
    let text = |dice: &mut Dice| (!dice.once_in(5)).then(|| dice.pick(&ODD_TEXTS).to_string());
    let time = |dice: &mut Dice| {
        const TIMES: [&str; 4] = [
            "2026-03-29T01:30:00+01:00",
            "2026-03-29T00:59:60Z",
            "1969-12-30T00:00:00.0000019Z",
            "soon",
        ];
        (!dice.once_in(5)).then(|| dice.pick(&TIMES).to_string())
    };
    let uid = match dice.once_in(3) {
        true => Some(uid.to_owned()),
        false => text(dice),
    };
    json!({
        "apiVersion": "tekton.dev/v1", "kind": kind,
        "metadata": {
            "name": text(dice), "namespace": text(dice), "uid": uid,
            "creationTimestamp": time(dice),
            "labels": {"tekton.dev/pipeline": text(dice), "odd\u{1}\u{10}": text(dice), "": "x",
                "number": 5},
        },
        "spec": {"pipelineRef": {"name": text(dice)}, "taskRef": {"name": text(dice)}},
        "status": {
            "phase": text(dice), "startTime": time(dice), "completionTime": time(dice),
            "conditions": [{"type": "Succeeded", "status": dice.pick(&["True", "False"]),
                "reason": text(dice), "message": text(dice)}],
            "retriesStatus": dice.pick(&[json!(null), json!([]), json!([{}, 5])]),
            "steps": dice.pick(&[json!("odd"), json!([{"name": "s",
                "terminated": {"exitCode": 3, "reason": "OOMKilled"}}])]),
        },
    })
}

fn records(count: usize) -> Vec<Record> {
    let mut dice = Dice::new(7);
    let mut records = Vec::new();
    for number in 0..count {
        let id = match number % 3 {
            0 => format!("0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d{number:04}"),
            _ => format!("odd-{number}"),
        };
        let (data_type, kind) = *dice.pick(&TYPES);
        let us = i64::try_from(dice.below(1_000_000)).expect("it is small");
        let name = format!("p/results/r/records/{id}");
        let mut value = record(&name, us, &object(&mut dice, kind, &id));
        if let Some(data) = &mut value.data {
            data.data_type = data_type.to_owned();
            if dice.once_in(10) {
                data.value = b"no JSON"[..].into();
            }
        }
        value.data = value.data.filter(|_| !dice.once_in(10));
        records.push(value);
    }
    records
}

/// What is compared of columns.
fn parts(object: &ObjectColumns) -> impl PartialEq + std::fmt::Debug {
    let fields = ObjectField::ALL.map(|field| {
        let text = object.text(field).map(str::to_owned);
        (field, text, object.time(field))
    });
    let pipeline = object.pipeline().map(str::to_owned);
    let labels = (object.labels.clone(), object.has_odd_labels);
    let said = (&object.signature, &object.message, object.attempt);
    (fields, labels, object.run, pipeline, format!("{said:?}"))
}

async fn given(world: &World, records: &[Record]) {
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    world
        .given(records.iter().cloned().map(Change::InsertRecord))
        .await;
}

pub(super) async fn columns_say_what_payloads_say(world: World) {
    let records = records(120);
    given(&world, &records).await;
    let listed = world.store.list_columns(&everything()).await.unwrap();
    assert_eq!(listed.len(), records.len());
    for row in listed {
        let found = records
            .iter()
            .find(|record| record.name == row.item.record.name);
        let wanted = RecordColumns::of(found.expect("it was inserted").clone());
        assert_eq!(row.item.record, wanted.record);
        assert_eq!(
            format!("{:?}", parts(&row.item.object)),
            format!("{:?}", parts(&wanted.object)),
            "{found:?}"
        );
        assert!(row.item.weight() >= wanted.record.weight());
    }
}

pub(super) async fn columns_that_are_asked_for_are_those_of_a_list_of_all(world: World) {
    use ObjectField::{CreationTime, Kind, Name, Reason, TaskRef};
    given(&world, &records(60)).await;
    let all = world.store.list_columns(&everything()).await.unwrap();
    for fields in [&[][..], &[Name, Kind, TaskRef], &[CreationTime, Reason]] {
        for labels in [false, true] {
            let projection = Projection::of(fields);
            let query = ListQuery {
                projection: match labels {
                    true => projection.with_labels(),
                    false => projection,
                },
                ..everything()
            };
            let some = world.store.list_columns(&query).await.unwrap();
            assert_eq!(some.len(), all.len());
            for (some, all) in some.iter().zip(&all) {
                assert_eq!(some.position, all.position);
                let (some, all) = (&some.item, &all.item);
                assert_eq!(some.record, all.record);
                assert_eq!(some.object.run, all.object.run);
                for field in fields {
                    assert_eq!(some.object.text(*field), all.object.text(*field));
                    assert_eq!(some.object.time(*field), all.object.time(*field));
                }
                if labels {
                    assert_eq!(some.object.labels, all.object.labels);
                }
            }
        }
    }
}

pub(super) async fn lists_with_columns_have_the_order_and_the_pages_of_others(world: World) {
    given(&world, &records(60)).await;
    let by = |column, descending| OrderKey { column, descending };
    for keys in [
        vec![],
        vec![by(Column::Began, true)],
        vec![by(Column::Outcome, false), by(Column::Pipeline, true)],
        vec![by(Column::Signature, true)],
        vec![by(Column::Label("odd\u{1}\u{10}".to_owned()), true)],
        vec![by(Column::Duration, true)],
    ] {
        let mut query = ListQuery {
            order: Order::of(keys),
            limit: NonZeroU32::new(7).expect("it is not 0"),
            ..everything()
        };
        let mut seen = 0;
        loop {
            let columns = world.store.list_columns(&query).await.unwrap();
            let plain = ListQuery {
                bodies: false,
                ..query.clone()
            };
            let plain = world.store.list_records(&plain).await.unwrap();
            let columns: Vec<_> = columns
                .into_iter()
                .map(|row| (row.item.record, row.position))
                .collect();
            let plain: Vec<_> = plain
                .into_iter()
                .map(|row| (row.item, row.position))
                .collect();
            assert_eq!(columns, plain);
            seen += columns.len();
            let Some((_, last)) = columns.into_iter().next_back() else {
                break;
            };
            query.after = Some(last);
        }
        assert_eq!(seen, 60);
    }
}
