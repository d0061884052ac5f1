//! Bodies that lie outside: where they are, what happens when something fails in between, and
//! that no history loses an object or leaves one behind.

mod checks;
mod histories;
mod logs;
mod races;

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::json;

use self::checks::finds;
use super::{
    ObjectBackend,
    testing::{Faulty, give},
};
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, SqliteFile, execute},
        fixtures::{Dice, everything, later_record, record, result, time},
        tests::postgres_server,
    },
    seam::{Batch, Change, Error},
    tools::fsck::Depth,
};
use hindsight_filter::model::{Payload, Record};

const ABOVE: usize = 1000;
const KEEP: Duration = Duration::from_secs(3600);
const MOST: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// A database whose big bodies lie in a store that can be told to fail.
async fn faulty(url: &str) -> (World, Arc<Faulty>) {
    let store = Arc::new(Faulty::default());
    let depot = ObjectBackend::over(Arc::<Faulty>::clone(&store), ABOVE, Some(KEEP));
    give(url, &depot);
    let world = World::open(url).await;
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    (world, store)
}

/// A record whose body does not compress.
fn big(name: &str, us: i64, seed: u64) -> Record {
    let mut record = record(&format!("a/results/r/records/{name}"), us, &json!({}));
    record.data = Some(Payload::new(
        "logs".to_owned(),
        Dice::new(seed).bytes(5000).into(),
    ));
    record
}

fn hours(hours: i64) -> Timestamp {
    time(hours * 3_600_000_000)
}

async fn swept(world: &World, hour: i64) -> u64 {
    let swept = world.maintenance.sweep_objects(hours(hour), MOST).await;
    swept.unwrap()
}

/// Runs a test on both databases.
macro_rules! on_both {
    ($($case:ident as $sqlite:ident and $postgres:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $sqlite() {
            let database = SqliteFile::fresh().await;
            $case(&database.url()).await;
            database.remove().await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $postgres() {
            let Some(server) = postgres_server() else { return };
            let database = PostgresDatabase::fresh(&server).await;
            $case(&database.url()).await;
            database.remove().await;
        }
    )*};
}
use on_both;

on_both! {
    life as an_object_lives_as_long_as_its_body_and_a_while_longer_on_sqlite
        and an_object_lives_as_long_as_its_body_and_a_while_longer_on_postgres,
    failures as what_cannot_be_uploaded_or_read_is_an_error_on_sqlite
        and what_cannot_be_uploaded_or_read_is_an_error_on_postgres,
    crashes as an_upload_that_nobody_came_to_refer_to_goes_on_sqlite
        and an_upload_that_nobody_came_to_refer_to_goes_on_postgres,
    late as a_writer_who_is_too_late_uploads_again_on_sqlite
        and a_writer_who_is_too_late_uploads_again_on_postgres,
    together as changes_that_come_together_keep_their_objects_on_sqlite
        and changes_that_come_together_keep_their_objects_on_postgres,
    backlog as a_sweep_removes_all_that_is_old_beside_what_cannot_be_removed_on_sqlite
        and a_sweep_removes_all_that_is_old_beside_what_cannot_be_removed_on_postgres,
    pages as a_page_of_big_bodies_is_fetched_a_few_at_once_on_sqlite
        and a_page_of_big_bodies_is_fetched_a_few_at_once_on_postgres,
}

async fn life(url: &str) {
    let (world, store) = faulty(url).await;
    let first = big("x", 1, 1);
    let small = record("a/results/r/records/small", 1, &json!({"a": 1}));
    let inserts = [&first, &small].map(|record| Change::InsertRecord(record.clone()));
    world.given(inserts).await;
    let names = store.names().await;
    assert_eq!(names.len(), 1, "the small one is in the database");
    assert_eq!(world.record(&first.name).await, Some(first.clone()));
    assert_eq!((swept(&world, 0).await, swept(&world, 9).await), (0, 0));

    // Replaced: the old one waits, counted from the first look.
    let second = later_record(&big("x", 1, 2), 2);
    let expect = first.etag.clone();
    let value = second.clone();
    world.given([Change::ReplaceRecord { expect, value }]).await;
    assert_eq!(store.names().await.len(), 2);
    assert_eq!((swept(&world, 10).await, store.names().await.len()), (0, 2));
    assert_eq!((swept(&world, 11).await, store.names().await.len()), (1, 1));
    assert_eq!(world.record(&first.name).await, Some(second.clone()));

    // Small again: nobody needs an object.
    let third = later_record(&record("a/results/r/records/x", 1, &json!({})), 3);
    let (expect, value) = (second.etag.clone(), third.clone());
    world.given([Change::ReplaceRecord { expect, value }]).await;
    let fourth = later_record(&big("x", 1, 4), 4);
    let (expect, value) = (third.etag.clone(), fourth.clone());
    world.given([Change::ReplaceRecord { expect, value }]).await;
    assert_eq!((swept(&world, 12).await, swept(&world, 13).await), (0, 1));
    assert_eq!(world.record(&first.name).await, Some(fourth.clone()));

    // Deleted with its result, which cascades.
    let name = "a/results/r".parse().unwrap();
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    assert_eq!((swept(&world, 14).await, swept(&world, 15).await), (0, 1));
    assert!(store.names().await.is_empty());
    world.maintenance.close().await;
}

async fn failures(url: &str) {
    let (world, store) = faulty(url).await;
    let record = big("x", 1, 1);
    store.no_puts.store(true, SeqCst);
    let refused = world.try_to(Change::InsertRecord(record.clone())).await;
    assert!(
        matches!(&refused, Err(Error::ObjectStoreUnavailable { object, .. }) if object.starts_with("memory:/"))
    );
    let each = world
        .store
        .commit_each(&[Change::InsertRecord(record.clone())])
        .await;
    assert!(
        matches!(each.as_slice(), [Err(Error::ObjectStoreUnavailable { .. })]),
        "{each:?}"
    );
    assert_eq!(world.record(&record.name).await, None, "nothing happened");
    store.no_puts.store(false, SeqCst);
    world.given([Change::InsertRecord(record.clone())]).await;

    store.no_gets.store(true, SeqCst);
    let read = world.store.record(&record.name).await;
    assert!(
        matches!(read, Err(Error::ObjectStoreUnavailable { .. })),
        "{read:?}"
    );
    let listed = world.store.list_records(&everything()).await;
    assert!(
        matches!(listed, Err(Error::ObjectStoreUnavailable { .. })),
        "{listed:?}"
    );
    store.no_gets.store(false, SeqCst);

    let path = store.names().await.remove(0);
    let bytes = store.bytes(&path).await;
    let mut other = bytes.to_vec();
    other[1000] ^= 1;
    for spoilt in [Some(&other[..]), Some(&other[..99]), None] {
        store.spoil(&path, spoilt).await;
        let read = world.store.record(&record.name).await;
        let told = |why: &str| why.contains(path.as_ref()) && why.contains("put it back");
        assert!(
            matches!(&read, Err(Error::MissingObject(why)) if told(why)),
            "{read:?}"
        );
        let listed = world.store.list_records(&everything()).await;
        assert!(matches!(listed, Err(Error::MissingObject(_))), "{listed:?}");
    }
    store.spoil(&path, Some(&bytes)).await;
    assert_eq!(world.record(&record.name).await, Some(record.clone()));

    // What cannot be removed is removed another time.
    let name = record.name.clone();
    world
        .given([Change::DeleteRecord { name, expect: None }])
        .await;
    swept(&world, 1).await;
    store.no_deletes.store(true, SeqCst);
    let refused = world.maintenance.sweep_objects(hours(2), MOST).await;
    assert!(
        matches!(refused, Err(Error::ObjectStoreUnavailable { .. })),
        "{refused:?}"
    );
    store.no_deletes.store(false, SeqCst);
    assert!(swept(&world, 2).await > 0);
    assert!(store.names().await.is_empty());
    world.maintenance.close().await;
}

/// More objects than a statement notes or removes, of which some may not be removed.
async fn backlog(url: &str) {
    let (world, store) = faulty(url).await;
    let records = (0..20).map(|at| big(&format!("x{at:02}"), at, at.unsigned_abs()));
    world.given(records.map(Change::InsertRecord)).await;
    let name = result("a/results/r", 1).name;
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    let kept = store.names().await[..8].to_vec();
    kept.clone_into(&mut store.kept.lock().unwrap());
    let few = NonZeroU32::new(3).unwrap();
    assert_eq!(
        world
            .maintenance
            .sweep_objects(hours(1), few)
            .await
            .unwrap(),
        0,
        "they are noted, and kept for a while"
    );
    let refused = world.maintenance.sweep_objects(hours(3), few).await;
    assert!(
        matches!(refused, Err(Error::ObjectStoreUnavailable { .. })),
        "{refused:?}"
    );
    assert_eq!(store.names().await, kept, "one sweep removed the others");
    store.kept.lock().unwrap().clear();
    let removed = world.maintenance.sweep_objects(hours(3), few).await;
    assert_eq!(removed.unwrap(), 8);
    assert!(store.names().await.is_empty());
    world.maintenance.close().await;
}

/// Begins to write a record and stops between the upload and the commit.
async fn cut_off(world: &World, store: &Faulty, change: Change) {
    let before = store.names().await.len();
    store.mute_puts.store(true, SeqCst);
    let writing = world.start(change);
    while store.names().await.len() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    store.mute_puts.store(false, SeqCst);
}

async fn crashes(url: &str) {
    let (world, store) = faulty(url).await;
    let record = big("x", 1, 1);
    cut_off(&world, &store, Change::InsertRecord(record.clone())).await;
    assert_eq!(world.record(&record.name).await, None);
    // Refused after its upload.
    world.given([Change::InsertRecord(record.clone())]).await;
    let taken = world.try_to(Change::InsertRecord(record.clone())).await;
    assert!(matches!(taken, Err(Error::Exists(_))), "{taken:?}");
    assert_eq!(store.names().await.len(), 3);
    world.maintenance.close().await;
    let world = World::open(url).await;
    assert_eq!((swept(&world, 1).await, swept(&world, 2).await), (0, 2));
    assert_eq!(store.names().await.len(), 1);
    assert_eq!(world.record(&record.name).await, Some(record));
    world.maintenance.close().await;
}

async fn late(url: &str) {
    let (world, store) = faulty(url).await;
    let record = big("x", 1, 1);
    // Other objects of this writer are condemned as soon as they are noted, which the first two
    // are.
    let condemn = "CREATE TRIGGER late AFTER INSERT ON objects \
                WHEN (SELECT count(*) FROM objects) < 3 BEGIN \
                UPDATE objects SET condemned_us = 7 WHERE object = NEW.object; END";
    let doom_there = "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                      UPDATE objects SET condemned_us = 7 WHERE object = NEW.object \
                      AND (SELECT count(*) FROM objects) < 3; RETURN NULL; END $$; \
                      CREATE TRIGGER late AFTER INSERT ON objects FOR EACH ROW \
                      EXECUTE FUNCTION late()";
    execute(url, condemn, doom_there).await;
    world.given([Change::InsertRecord(record.clone())]).await;
    assert_eq!(world.record(&record.name).await, Some(record.clone()));
    assert_eq!(
        swept(&world, 1).await,
        2,
        "the condemned ones are removed at once"
    );
    assert_eq!(store.names().await.len(), 1);
    let other = later_record(&big("x", 1, 2), 9);
    let (expect, value) = (record.etag.clone(), other.clone());
    let changes = [Change::ReplaceRecord { expect, value }];
    let each = world.store.commit_each(&changes).await;
    assert!(each[0].is_ok(), "{each:?}");
    assert_eq!(world.record(&record.name).await, Some(other));
    assert_eq!(finds(url, Depth::Full).await, []);
    world.maintenance.close().await;
}

async fn together(url: &str) {
    let (world, store) = faulty(url).await;
    let records: Vec<_> = (0..20).map(|at| big(&format!("x{at}"), 1, at)).collect();
    let inserts: Vec<_> = records.iter().cloned().map(Change::InsertRecord).collect();
    let done = world.store.commit_each(&inserts).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    let again = world.store.commit_each(&inserts).await;
    assert!(again.iter().all(|one| matches!(one, Err(Error::Exists(_)))));
    let later: Vec<_> = (0..20)
        .map(|at| later_record(&big(&format!("x{at}"), 1, 100 + at), 2))
        .collect();
    let replaced = records
        .iter()
        .zip(&later)
        .map(|(was, is)| Change::ReplaceRecord {
            expect: was.etag.clone(),
            value: is.clone(),
        });
    let done = world.store.commit_each(&replaced.collect::<Vec<_>>()).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    for record in &later {
        assert_eq!(world.record(&record.name).await.as_ref(), Some(record));
    }
    // All or none, in one batch: nobody holds the objects of a batch that did not happen.
    let mut changes: Vec<_> = (0..3)
        .map(|at| Change::InsertRecord(big(&format!("y{at}"), 1, at)))
        .collect();
    changes.push(inserts[0].clone());
    let refused = world.store.commit(&Batch { changes }).await;
    assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
    assert_eq!(store.names().await.len(), 20 + 20 + 20 + 4);
    assert_eq!((swept(&world, 1).await, swept(&world, 2).await), (0, 44));
    assert_eq!(finds(url, Depth::Full).await, []);
    assert_eq!(finds(url, Depth::Quick).await, []);
    world.maintenance.close().await;
}

async fn pages(url: &str) {
    let (world, store) = faulty(url).await;
    let records: Vec<_> = (0..60).map(|at| big(&format!("x{at}"), 1, at)).collect();
    world
        .given(records.iter().cloned().map(Change::InsertRecord))
        .await;
    let listed = world.store.list_records(&everything()).await.unwrap();
    assert_eq!(listed.len(), 60);
    for listed in listed {
        assert!(records.contains(&listed.item));
    }
    assert!(
        (2..=8).contains(&store.most_reads()),
        "{}",
        store.most_reads()
    );
    world.maintenance.close().await;
}
