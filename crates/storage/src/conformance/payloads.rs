//! Payloads and texts of every kind: all come back as they went in.

use serde_json::json;

use super::{
    World,
    fixtures::{Dice, ODD_TEXTS, everything, later_record, map, record, result, summary},
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::condition::{Column, Condition, Is, Test, Value};
use hindsight_filter::model::{Payload, Record};

pub(super) async fn a_big_body_comes_back_byte_for_byte(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let mut dice = Dice::new(1);
    // A quarter compresses, the rest does not.
    let mut value = dice.bytes(19 << 20);
    value.resize(25 << 20, b' ');
    let mut big = record("a/results/r/records/big", 2, &json!({}));
    big.data = Some(Payload::new("logs".to_owned(), value.into()));
    world.given([Change::InsertRecord(big.clone())]).await;
    assert!(
        world.record(&big.name).await == Some(big.clone()),
        "the bytes differ"
    );
    let listed = world.store.list_records(&everything()).await.unwrap();
    assert!(listed[0].item == big, "the listed bytes differ");
}

pub(super) async fn payloads_need_not_be_json(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let bodies: [&[u8]; 8] = [
        b"",
        b"not json",
        b"{",
        &[0, 159, 146, 150, 0, 255],
        b"{\"metadata\":{\"name\":\"\\ud800\"}}",
        b"{\"metadata\":{\"name\":7,\"labels\":[]},\"status\":\"x\"}",
        b" { \"b\" : 1.0e3 , \"a\" : 1, \"a\" : 2 } \n",
        b"{\"metadata\":{\"name\":\"\\u0000\",\"labels\":{\"\\u0000\":\"\\u0000\"}}}",
    ];
    for (at, body) in bodies.iter().enumerate() {
        let mut value = record(&format!("a/results/r/records/{at}"), 2, &json!({}));
        let data_type = "tekton.dev/v1.TaskRun".to_owned();
        value.data = Some(Payload::new(data_type, body.to_vec().into()));
        world.given([Change::InsertRecord(value.clone())]).await;
        assert_eq!(world.record(&value.name).await, Some(value));
    }
}

pub(super) async fn a_payload_can_come_and_go(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let mut versions = Vec::new();
    for (at, body) in [Some("one"), None, Some(""), Some("three"), Some(""), None]
        .iter()
        .enumerate()
    {
        let us = i64::try_from(at).unwrap();
        let first = record("a/results/r/records/x", 1, &json!({}));
        let mut version = later_record(&first, us);
        version.data =
            body.map(|body| Payload::new(format!("type {at}"), body.as_bytes().to_vec().into()));
        versions.push(version);
    }
    world
        .given([Change::InsertRecord(versions[0].clone())])
        .await;
    for pair in versions.windows(2) {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        let expect = before.etag.clone();
        world
            .given([Change::ReplaceRecord {
                expect,
                value: after.clone(),
            }])
            .await;
        assert_eq!(world.record(&after.name).await.as_ref(), Some(after));
    }
}

pub(super) async fn text_of_any_kind_is_only_text(world: World) {
    for (at, text) in ODD_TEXTS.iter().enumerate() {
        let us = i64::try_from(at).unwrap();
        let mut r = result(&format!("a/results/r{at}"), us);
        r.uid = (*text).to_owned();
        r.annotations = map([(*text, *text)]);
        let mut about = summary(&r.name, None, None);
        about.data_type = (*text).to_owned();
        about.annotations = map([(*text, *text)]);
        r.summary = Some(about);
        let mut x = record(
            &format!("a/results/r{at}/records/x"),
            us,
            &json!({"kind": text, "metadata": {"name": text, "uid": text, "labels": {*text: text}}}),
        );
        x.uid = (*text).to_owned();
        x.data.as_mut().unwrap().data_type = (*text).to_owned();
        world
            .given([
                Change::InsertResult(r.clone()),
                Change::InsertRecord(x.clone()),
            ])
            .await;
        assert_eq!(world.result(&r.name).await.as_ref(), Some(&r));
        assert_eq!(world.record(&x.name).await.as_ref(), Some(&x));

        let has = |column| {
            let is = Is::Equal(Value::Text((*text).to_owned()));
            Condition::Test(Test {
                column,
                is,
                negated: false,
            })
        };
        let mut query = everything();
        query.condition = Condition::And(vec![
            has(Column::Uid),
            has(Column::Annotation((*text).to_owned())),
            has(Column::SummaryAnnotation((*text).to_owned())),
            has(Column::SummaryType),
        ]);
        let found = world.store.list_results(&query).await.unwrap();
        assert_eq!(
            found.into_iter().map(|row| row.item).collect::<Vec<_>>(),
            [r]
        );
        query.condition = Condition::And(vec![
            has(Column::DataType),
            has(Column::Label((*text).to_owned())),
        ]);
        let found = world.store.list_records(&query).await.unwrap();
        assert_eq!(
            found.into_iter().map(|row| row.item).collect::<Vec<_>>(),
            [x]
        );
    }
}

pub(super) async fn many_records_are_inserted_at_once_or_none(world: World) {
    let results = ["a/results/r", "a/results/s", "b/results/r"];
    world
        .given(results.map(|name| Change::InsertResult(result(name, 0))))
        .await;
    let mut records = Vec::new();
    for at in 0..1100_i64 {
        let name = results[usize::try_from(at % 3).unwrap()];
        let object = json!({"kind": "T", "metadata": {"name": format!("n{at}"),
            "labels": {"at": at.to_string(), "odd": "a\u{0}b"}}});
        let mut x = record(&format!("{name}/records/x{at}"), at / 7, &object);
        match at % 5 {
            0 => x.data = None,
            1 => x.data.as_mut().unwrap().value = Vec::new().into(),
            _ => {}
        }
        records.push(x);
    }
    let insert = |records: &[Record]| Batch {
        changes: records.iter().cloned().map(Change::InsertRecord).collect(),
    };
    let mut orphaned = records.clone();
    orphaned[777].name = "a/results/none/records/x".parse().unwrap();
    let outcome = world.store.commit(&insert(&orphaned)).await;
    assert!(matches!(&outcome, Err(Error::Missing(name)) if name == "a/results/none"));
    let mut doubled = records.clone();
    doubled[778].name = doubled[3].name.clone();
    let outcome = world.store.commit(&insert(&doubled)).await;
    let name = doubled[3].name.to_string();
    assert!(matches!(&outcome, Err(Error::Exists(taken)) if *taken == name));
    assert_eq!(world.store.list_records(&everything()).await.unwrap(), []);

    world.store.commit(&insert(&records)).await.unwrap();
    let listed = world.store.list_records(&everything()).await.unwrap();
    let listed: Vec<Record> = listed.into_iter().rev().map(|row| row.item).collect();
    assert_eq!(listed, records, "in the order in which they were given");
}
