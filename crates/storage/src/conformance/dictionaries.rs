//! Bodies that refer to others.

use std::num::NonZeroU32;

use serde_json::{Value, json};

use super::{
    World,
    backends::{crossing, dictionaries, referring},
    fixtures::{Dice, everything, later_record, record, result},
};
use crate::{codec::objects::testing::given, seam::Change};
use hindsight_filter::model::Record;

const MANY: NonZeroU32 = NonZeroU32::MAX;

/// A finished run of a task, the same as others but for `at`.
fn run(pipeline: &str, at: i64) -> Value {
    let mut dice = Dice::new(pipeline.len() as u64);
    let script: String = (0..400)
        .map(|_| char::from(*dice.pick(b"abcdefghijklmnopqrstuvwxyz \n")))
        .collect();
    json!({"kind": "TaskRun",
        "metadata": {"name": format!("{pipeline}-{at}"), "uid": format!("uid-{at}"),
            "labels": {"tekton.dev/pipeline": pipeline}},
        "spec": {"script": script},
        "status": {"conditions": [{"type": "Succeeded", "status": "True"}],
            "completionTime": "2026-01-01T00:00:00Z"}})
}

/// Records of runs of one pipeline, in one result.
pub(crate) async fn given_runs(
    world: &World,
    name: &str,
    pipeline: &str,
    count: i64,
) -> Vec<Record> {
    world.given([Change::InsertResult(result(name, 0))]).await;
    let mut records = Vec::new();
    for at in 0..count {
        let x = record(&format!("{name}/records/x{at}"), at, &run(pipeline, at));
        world.given([Change::InsertRecord(x.clone())]).await;
        records.push(x);
    }
    records
}

pub(super) async fn like_bodies_come_back_byte_for_byte(world: World) {
    let mut records = given_runs(&world, "a/results/r", "build", 20).await;
    let last = records.last().unwrap().clone();
    let mut changed = later_record(&last, 99);
    changed.data.as_mut().unwrap().value = run("build", 777).to_string().into();
    world
        .given([Change::ReplaceRecord {
            expect: last.etag,
            value: changed.clone(),
        }])
        .await;
    *records.last_mut().unwrap() = changed;
    // A store that has read and written none of them before.
    let fresh = World::open(&world.url).await;
    for world in [&world, &fresh] {
        let listed = world.store.list_records(&everything()).await.unwrap();
        let listed: Vec<Record> = listed.into_iter().rev().map(|row| row.item).collect();
        assert_eq!(listed, records);
        for x in &records {
            assert_eq!(world.record(&x.name).await.as_ref(), Some(x));
        }
    }
    fresh.maintenance.close().await;
}

pub(super) async fn dictionaries_go_when_nothing_refers_to_them(world: World) {
    given_runs(&world, "a/results/gone", "build", 5).await;
    let kept = given_runs(&world, "a/results/kept", "release-train", 5).await;
    assert_eq!(world.maintenance.sweep(MANY, 0).await.unwrap(), 0);
    let name = "a/results/gone".parse().unwrap();
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    // That of the pipeline, and that of the type, to which one of the other pipeline referred.
    assert_eq!(world.maintenance.sweep(MANY, 0).await.unwrap(), 2);
    assert_eq!(world.maintenance.sweep(MANY, 0).await.unwrap(), 0);
    for x in &kept {
        assert_eq!(world.record(&x.name).await.as_ref(), Some(x));
    }
}

pub(super) async fn a_body_whose_dictionary_was_swept_is_stored_all_the_same(world: World) {
    given_runs(&world, "a/results/gone", "build", 5).await;
    let other = World::open(&world.url).await;
    let name = "a/results/gone".parse().unwrap();
    other
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    assert_eq!(other.maintenance.sweep(MANY, 0).await.unwrap(), 2);
    other.maintenance.close().await;
    // This store still remembers the dictionaries.
    for x in given_runs(&world, "a/results/new", "build", 5).await {
        assert_eq!(world.record(&x.name).await.as_ref(), Some(&x));
    }
}

pub(super) async fn sweeping_beside_writers_harms_none(world: World) {
    let sweeper = world.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let sweeping = tokio::spawn(async move {
        let mut swept = 0;
        while stopped.try_recv().is_err() {
            swept += sweeper.maintenance.sweep(MANY, 1).await.unwrap();
            tokio::task::yield_now().await;
        }
        swept
    });
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let world = world.clone();
            tokio::spawn(async move {
                for round in 0..6 {
                    let name = format!("a/results/w{writer}-{round}");
                    for x in given_runs(&world, &name, "build", 4).await {
                        assert_eq!(world.record(&x.name).await.as_ref(), Some(&x));
                    }
                    let name = name.parse().unwrap();
                    let delete = Change::DeleteResult { name, expect: None };
                    world.given([delete]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    stop.send(()).unwrap();
    sweeping.await.unwrap();
    while world.maintenance.sweep(MANY, 0).await.unwrap() > 0 {}
}

/// Runs of one pipeline, each of which has a text that no other has.
async fn given_secrets(world: &World, result: &str, texts: &[&str]) -> Vec<Record> {
    let mut records = Vec::new();
    for (at, text) in (0..).zip(texts) {
        let mut run = run("build", at);
        run["spec"]["params"] = json!([{"name": "token", "value": text}]);
        let x = record(&format!("{result}/records/x{at}"), at, &run);
        world.given([Change::InsertRecord(x.clone())]).await;
        records.push(x);
    }
    records
}

async fn given_result(world: &World, name: &str) {
    let change = Change::InsertResult(self::result(name, 0));
    world.given([change]).await;
}

fn delete(record: &Record) -> Change {
    Change::DeleteRecord {
        name: record.name.clone(),
        expect: None,
    }
}

async fn swept(world: &World) {
    while world.maintenance.sweep(MANY, 0).await.unwrap() > 0 {}
}

/// Whether a text is in a dictionary.
async fn is_in_dictionaries(world: &World, text: &str) -> bool {
    let dictionaries = dictionaries(&world.url).await;
    let has = |(_, content): &(String, Vec<u8>)| {
        let parts = content.windows(text.len());
        parts.into_iter().any(|part| part == text.as_bytes())
    };
    dictionaries.iter().any(has)
}

pub(super) async fn dictionaries_never_cross_a_parent(world: World) {
    for parent in ["a", "a/b", "c"] {
        let result = format!("{parent}/results/r");
        given_result(&world, &result).await;
        given_secrets(&world, &result, &[parent, "one", "two"]).await;
    }
    assert_eq!(crossing(&world.url).await, 0);
    let dictionaries = dictionaries(&world.url).await;
    for parent in ["a", "a/b", "c"] {
        let own = dictionaries.iter().filter(|(of, _)| of == parent).count();
        assert_eq!(own, 2, "{parent}: that of the type, that of the pipeline");
    }
}

pub(super) async fn a_deleted_payload_is_in_no_dictionary_after_a_sweep(world: World) {
    given_result(&world, "a/results/r").await;
    let texts = ["SECRET-0", "SECRET-1", "other-2", "other-3", "other-4"];
    let mut records = given_secrets(&world, "a/results/r", &texts).await;
    swept(&world).await;
    assert!(
        is_in_dictionaries(&world, "SECRET-0").await,
        "it is of the type"
    );
    assert!(
        is_in_dictionaries(&world, "SECRET-1").await,
        "of the pipeline"
    );
    world.given(records.drain(..2).map(|x| delete(&x))).await;
    swept(&world).await;
    for text in ["SECRET-0", "SECRET-1"] {
        assert!(!is_in_dictionaries(&world, text).await, "{text}");
    }
    let fresh = World::open(&world.url).await;
    for world in [&world, &fresh] {
        for x in &records {
            assert_eq!(world.record(&x.name).await.as_ref(), Some(x));
        }
    }
    // What remains still refers to one of them, and so does what comes.
    given_result(&world, "a/results/later").await;
    given_secrets(&fresh, "a/results/later", &["later"]).await;
    fresh.maintenance.close().await;
    if given(&world.url).is_none() {
        assert_eq!(referring(&world.url).await, 4);
    }
}

pub(super) async fn a_replaced_payload_is_in_no_dictionary_after_a_sweep(world: World) {
    given_result(&world, "a/results/r").await;
    let texts = ["SECRET-0", "SECRET-1", "other-2", "other-3"];
    let mut records = given_secrets(&world, "a/results/r", &texts).await;
    for x in &mut records[..2] {
        let mut changed = later_record(x, 99);
        changed.data.as_mut().unwrap().value = run("build", 99).to_string().into();
        let expect = x.etag.clone();
        *x = changed.clone();
        let value = changed;
        world.given([Change::ReplaceRecord { expect, value }]).await;
    }
    swept(&world).await;
    for text in ["SECRET-0", "SECRET-1"] {
        assert!(!is_in_dictionaries(&world, text).await, "{text}");
    }
    for x in &records {
        assert_eq!(world.record(&x.name).await.as_ref(), Some(x));
    }
}

pub(super) async fn a_refused_payload_is_in_no_dictionary_after_a_sweep(world: World) {
    given_result(&world, "a/results/r").await;
    for at in 0..2 {
        let mut run = run("build", at);
        run["spec"]["params"] = json!("SECRET");
        let x = record(&format!("a/results/none/records/x{at}"), at, &run);
        let refused = world.store.commit(&Change::InsertRecord(x).into()).await;
        refused.unwrap_err();
    }
    let kept = given_secrets(&world, "a/results/r", &["one", "two"]).await;
    swept(&world).await;
    assert!(!is_in_dictionaries(&world, "SECRET").await);
    for x in &kept {
        assert_eq!(world.record(&x.name).await.as_ref(), Some(x));
    }
}
