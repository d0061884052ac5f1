//! A copy holds what its source does, and says what it does not hold.

use super::{Count, Depots, Event, Logs, Outcome, Verify, copy};
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, SqliteFile, execute},
        dictionaries::given_runs,
        fixtures::{Dice, ODD_TEXTS, everything, later_record, map, record, result, summary},
        tests::postgres_server,
    },
    seam::Change,
};
use hindsight_filter::model::Record;

/// Copies, and gives what was said as well.
async fn copied(from: &str, to: &str) -> (Outcome, Vec<String>) {
    let mut said = Vec::new();
    let mut tell = |event| match event {
        Event::Stage { .. } | Event::Seen(_) => {}
        Event::Note(text) => said.push(format!("note {}: {}", text.of, text.why)),
        Event::Refused(text) => said.push(format!("refused {}: {}", text.of, text.why)),
        Event::Found(found) => said.push(format!("found {} {}", found.kind.name(), found.of)),
    };
    let outcome = copy(
        from,
        to,
        &Depots::default(),
        (Logs::Yes, Verify::Yes),
        &mut tell,
    )
    .await
    .unwrap();
    (outcome, said)
}

/// Results with and without summaries, runs alike, payloads of all kinds; 3 and 13 rows.
async fn fill(world: &World) {
    given_runs(world, "a/results/r", "build", 8).await;
    let mut odd = result("a/b/c/results/odd", 7);
    odd.annotations = map(ODD_TEXTS.map(|text| (text, text)));
    let mut about = summary(&odd.name, Some(1), None);
    about.annotations = map([("k", "v")]);
    odd.summary = Some(about);
    world
        .given([
            Change::InsertResult(odd),
            Change::InsertResult(result("a/results/empty", 8)),
        ])
        .await;
    let mut records: Vec<Record> = (0..5)
        .map(|at| {
            let name = format!("a/b/c/results/odd/records/x{at}");
            record(&name, 20 + at, &serde_json::json!({"n": at}))
        })
        .collect();
    records[0].data = None;
    records[1].data.as_mut().unwrap().value = bytes::Bytes::new();
    records[2].data.as_mut().unwrap().value = Dice::new(3).bytes(3 << 20).into();
    records[3].data.as_mut().unwrap().value = vec![b'x'; 100_000].into();
    world
        .given(records.into_iter().map(Change::InsertRecord))
        .await;
}

/// Everything there is, in order of names.
async fn all(world: &World) -> (Vec<hindsight_filter::model::RunResult>, Vec<Record>) {
    let results = world.store.list_results(&everything()).await.unwrap();
    let records = world.store.list_records(&everything()).await.unwrap();
    let mut results: Vec<_> = results.into_iter().map(|listed| listed.item).collect();
    let mut records: Vec<_> = records.into_iter().map(|listed| listed.item).collect();
    results.sort_by_key(|result| result.name.to_string());
    records.sort_by_key(|record| record.name.to_string());
    (results, records)
}

async fn holds_the_same(from: &str, to: &str) {
    let source = World::open(from).await;
    fill(&source).await;
    let created = |count| Count {
        created: count,
        ..Count::default()
    };
    let (outcome, said) = copied(from, to).await;
    assert_eq!(said, [""; 0]);
    assert_eq!(
        (outcome.results, outcome.records),
        (created(3), created(13))
    );
    assert_eq!(outcome.verified, 16);
    let target = World::open(to).await;
    let before = all(&target).await;
    assert_eq!(before, all(&source).await);

    let same = |count| Count {
        unchanged: count,
        ..Count::default()
    };
    let (outcome, said) = copied(from, to).await;
    assert_eq!(said, [""; 0]);
    assert_eq!((outcome.results, outcome.records), (same(3), same(13)));
    assert_eq!(all(&target).await, before, "a second copy changes nothing");

    // Some rows are gone, as after a copy that was cut off, and one has changed in the source.
    for gone in ["a/results/r/records/x3", "a/results/r/records/x4"] {
        let name = gone.parse().unwrap();
        let delete = Change::DeleteRecord { name, expect: None };
        target.given([delete]).await;
    }
    let was = source
        .record(&"a/results/r/records/x5".parse().unwrap())
        .await;
    let was = was.unwrap();
    let mut value = later_record(&was, 5000);
    value.data.as_mut().unwrap().value = b"{\"later\": true}".to_vec().into();
    let expect = was.etag;
    source
        .given([Change::ReplaceRecord { expect, value }])
        .await;
    let (outcome, said) = copied(from, to).await;
    assert_eq!(said, [""; 0]);
    let Count {
        created, updated, ..
    } = outcome.records;
    assert_eq!((created, updated, outcome.records.unchanged), (2, 1, 10));
    assert_eq!(all(&target).await, all(&source).await);
    source.maintenance.close().await;
    target.maintenance.close().await;
}

mod logs;
mod pipelines;

#[tokio::test]
async fn every_copy_holds_the_same_and_goes_on_where_one_stopped() {
    let (a, b) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    holds_the_same(&a.url(), &b.url()).await;
    let Some(server) = postgres_server() else {
        return;
    };
    let (c, d) = (
        PostgresDatabase::fresh(&server).await,
        PostgresDatabase::fresh(&server).await,
    );
    let e = SqliteFile::fresh().await;
    holds_the_same(&SqliteFile::fresh().await.url(), &c.url()).await;
    let (outcome, said) = copied(&c.url(), &e.url()).await;
    assert_eq!((said, outcome.verified), (vec![], 16), "and back");
    let (outcome, said) = copied(&c.url(), &d.url()).await;
    assert_eq!((said, outcome.verified), (vec![], 16), "and on");
    c.remove().await;
    d.remove().await;
}

#[tokio::test]
async fn what_the_target_has_of_others_or_later_is_kept_and_said() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let (source, target) = (World::open(&from.url()).await, World::open(&to.url()).await);
    given_runs(&source, "a/results/r", "build", 3).await;
    given_runs(&source, "a/results/taken", "build", 1).await;
    let mut other = result("a/results/taken", 0);
    other.uid = "somebody".to_owned();
    target.given([Change::InsertResult(other.clone())]).await;
    copied(&from.url(), &to.url()).await;
    let name = "a/results/r/records/x1".parse().unwrap();
    let was = target.record(&name).await.unwrap();
    let later = later_record(&was, 9000);
    let expect = was.etag;
    let value = later.clone();
    target
        .given([Change::ReplaceRecord { expect, value }])
        .await;

    let (outcome, said) = copied(&from.url(), &to.url()).await;
    let other_uid = "whose uid is `somebody`";
    assert_eq!(
        said,
        [
            format!(
                "refused a/results/taken: the target has another of this name, {other_uid}, \
                 which was kept"
            ),
            "refused a/results/r/records/x1: the target has a later version of it, which was kept"
                .to_owned(),
            format!(
                "refused a/results/taken/records/x0: the result of this name in the target is \
                 another, {other_uid}"
            ),
        ]
    );
    assert_eq!((outcome.results.refused, outcome.records.refused), (1, 2));
    assert_eq!(target.record(&name).await, Some(later));
    assert_eq!(target.result(&other.name).await, Some(other));
    source.maintenance.close().await;
    target.maintenance.close().await;
}

#[tokio::test]
async fn a_damaged_payload_is_refused_and_the_others_are_copied() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let source = World::open(&from.url()).await;
    fill(&source).await;
    source.maintenance.close().await;
    let spoil = "UPDATE bodies SET bytes = zeroblob(length(bytes)) WHERE length(bytes) > 1000000";
    execute(&from.url(), spoil, "").await;
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    assert_eq!((outcome.records.created, outcome.records.refused), (12, 1));
    let wanted = "refused a/b/c/results/odd/records/x2: ";
    assert!(said[0].starts_with(wanted) && said.len() == 1, "{said:?}");
}

#[tokio::test]
async fn a_difference_after_the_copy_is_found_beside_rows_that_were_refused() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let (source, target) = (World::open(&from.url()).await, World::open(&to.url()).await);
    given_runs(&source, "a/results/r", "build", 3).await;
    given_runs(&source, "a/results/taken", "build", 1).await;
    let mut other = result("a/results/taken", 0);
    other.uid = "somebody".to_owned();
    target.given([Change::InsertResult(other)]).await;
    // Somebody who spoils each record as it comes.
    let spoil = "CREATE TRIGGER spoil AFTER INSERT ON records WHEN new.id = 'x1' BEGIN \
                 UPDATE records SET update_us = 7 WHERE id = 'x1'; END";
    execute(&to.url(), spoil, "").await;
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    let refused = "refused a/results/taken";
    assert!(
        said[..2].iter().all(|said| said.starts_with(refused)),
        "{said:?}"
    );
    assert!(said.contains(&"found copy-differs a/results/r/records/x1".to_owned()));
    assert_eq!(outcome.verified, 3);
    source.maintenance.close().await;
    target.maintenance.close().await;
}
