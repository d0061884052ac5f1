//! The feed of changes: each is told once, in an order that holds on every server.

use std::{
    collections::{BTreeMap, HashSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::json;

use super::{
    World,
    fixtures::{Dice, kind, later_record, record, record_name, result},
};
use crate::seam::{Batch, Change, Error, FeedPosition, RecordColumns};
use hindsight_filter::model::Record;

fn most(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("it is not 0")
}

/// What is told after a place until `count` changes were: it waits while transactions of other databases are open.
async fn told(
    world: &World,
    mut after: FeedPosition,
    page: u32,
    count: usize,
) -> (Vec<RecordColumns>, FeedPosition) {
    let mut told = Vec::new();
    loop {
        let found = world.store.feed(after, most(page)).await.unwrap();
        assert!(found.end >= after && found.changes.len() <= page as usize);
        for change in &found.changes {
            assert!(change.position > after && change.position <= found.end);
            after = change.position;
        }
        after = found.end;
        told.extend(found.changes.into_iter().map(|change| change.columns));
        if told.len() >= count && !found.more {
            return (told, after);
        }
        if !found.more {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn numbered(at: i64) -> Record {
    let object = json!({"kind": "TaskRun", "metadata": {"name": format!("run-{at}")}});
    record(&format!("p/results/r/records/{at}"), at, &object)
}

fn replace(was: &Record, us: i64) -> Change {
    Change::ReplaceRecord {
        expect: was.etag.clone(),
        value: later_record(was, us),
    }
}

pub(super) async fn every_change_is_told_once_and_as_it_is_stored(world: World) {
    let start = world.store.feed_end().await.unwrap();
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    let records: Vec<_> = (0..10).map(numbered).collect();
    world
        .given(records[..5].iter().cloned().map(Change::InsertRecord))
        .await;
    for record in &records[5..] {
        world.given([Change::InsertRecord(record.clone())]).await;
    }
    for page in [1, 3, 100] {
        let (told, end) = told(&world, start, page, 10).await;
        let expected: Vec<_> = records.iter().cloned().map(RecordColumns::of).collect();
        assert_eq!(told, expected, "pages of {page}");
        let rest = world.store.feed(end, most(page)).await.unwrap();
        assert_eq!(rest.changes, []);
    }
    let (_, middle) = told(&world, start, 100, 10).await;
    world.given([replace(&records[3], 100)]).await;
    let name = record_name("p/results/r/records/4");
    world
        .given([Change::DeleteRecord { name, expect: None }])
        .await;
    world.given([replace(&records[7], 101)]).await;
    world
        .given([replace(&later_record(&records[7], 101), 102)])
        .await;
    let last = [
        later_record(&records[3], 100),
        later_record(&records[7], 102),
    ];
    let last = last.map(RecordColumns::of);
    let (since, _) = told(&world, middle, 1, 2).await;
    assert_eq!(since, last, "the states in between were superseded");
    let (all, _) = told(&world, start, 4, 9).await;
    assert_eq!(all.len(), 9, "without the deleted one");
    assert_eq!(all[7..], last);
}

pub(super) async fn what_did_not_happen_is_not_told(world: World) {
    let start = world.store.feed_end().await.unwrap();
    world
        .given([
            Change::InsertResult(result("p/results/r", 0)),
            Change::InsertRecord(numbered(1)),
        ])
        .await;
    let refused = Batch {
        changes: vec![
            Change::InsertRecord(numbered(2)),
            Change::InsertRecord(numbered(1)),
        ],
    };
    let outcome = world.store.commit(&refused).await;
    assert_eq!(kind(&outcome), "exists");
    let stale = Change::ReplaceRecord {
        expect: numbered(5).etag,
        value: later_record(&numbered(1), 9),
    };
    assert_eq!(kind(&world.try_to(stale).await), "stale");
    let outcomes = world
        .store
        .commit_each(&[
            Change::InsertRecord(numbered(1)),
            Change::InsertRecord(numbered(3)),
        ])
        .await;
    assert_eq!(
        outcomes.iter().map(kind).collect::<Vec<_>>(),
        ["exists", "done"]
    );
    let (told, _) = told(&world, start, 50, 2).await;
    assert_eq!(told, [numbered(1), numbered(3)].map(RecordColumns::of));
}

/// Writers of their own records beside a follower that asks another server for each page.
pub(super) async fn a_feed_goes_on_at_another_server_without_gap_or_repeat(world: World) {
    const WRITERS: i64 = 4;
    const CHANGES: i64 = 60;
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    let replicas = world.replicas().await;
    let stores = replicas.stores();
    let mut after = world.store.feed_end().await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&stores[usize::try_from(writer).unwrap() % stores.len()]);
        writers.spawn(async move {
            let mut dice = Dice::new(writer.unsigned_abs());
            let mut own: Vec<Record> = Vec::new();
            for at in 0..CHANGES {
                let us = 1000 + at;
                let is_new = own.len() < 2 || dice.once_in(3);
                let changes = match is_new {
                    true => {
                        let record = numbered(writer * 1000 + at);
                        own.push(record.clone());
                        vec![Change::InsertRecord(record)]
                    }
                    false => {
                        let which = dice.below(own.len() - 1);
                        let changes = own[which..which + 2].iter().map(|was| replace(was, us));
                        let changes = changes.collect();
                        for record in &mut own[which..which + 2] {
                            *record = later_record(record, us);
                        }
                        changes
                    }
                };
                store.commit(&Batch { changes }).await.unwrap();
            }
            own
        });
    }
    let mut dice = Dice::new(9);
    let (mut states, mut last) = (HashSet::new(), BTreeMap::new());
    let mut written: BTreeMap<String, Record> = BTreeMap::new();
    let mut running = true;
    loop {
        running &= !writers.is_empty();
        while let Some(own) = writers.try_join_next() {
            let own = own.unwrap().into_iter();
            written.extend(own.map(|record| (record.name.to_string(), record)));
        }
        let store = dice.pick(&stores);
        let size = most(u32::try_from(1 + dice.below(20)).unwrap());
        let page = store.feed(after, size).await.unwrap();
        // A page of changes that later ones have overtaken has none, and an end.
        after = page.end;
        for change in page.changes {
            let record = change.columns.record;
            let state = (record.name.to_string(), record.etag.to_string());
            assert!(states.insert(state.clone()), "{state:?} comes twice");
            last.insert(record.name.to_string(), record);
            // A follower may be cut off after any of them.
            if dice.once_in(5) {
                after = change.position;
                break;
            }
        }
        let is_through = !running
            && last.len() == written.len()
            && written
                .iter()
                .all(|(name, record)| last[name].etag == record.etag);
        if is_through {
            break;
        }
        tokio::task::yield_now().await;
    }
    replicas.close().await;
}

pub(super) async fn a_feed_cannot_go_on_where_changes_were_removed(world: World) {
    let start = world.store.feed_end().await.unwrap();
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    for at in 0..5 {
        world.given([Change::InsertRecord(numbered(at))]).await;
    }
    let (_, end) = told(&world, start, 100, 5).await;
    if !world.is_in_memory() {
        let before = Timestamp::UNIX_EPOCH;
        let removed = world.maintenance.prune_feed(before, most(100)).await;
        assert_eq!(removed.unwrap(), 0, "nothing is so old");
    }
    let before = Timestamp::from_second(9_000_000_000).unwrap();
    while world.maintenance.prune_feed(before, most(2)).await.unwrap() > 0 {}
    let refused = world.store.feed(start, most(9)).await;
    assert!(matches!(refused, Err(Error::Expired)), "{refused:?}");
    let first = world.store.feed_begin().await.unwrap();
    assert!(first > start);
    world.store.feed(first, most(9)).await.unwrap();
    world.given([Change::InsertRecord(numbered(5))]).await;
    let (told, end) = told(&world, end, 100, 1).await;
    assert_eq!(told, [RecordColumns::of(numbered(5))]);
    let beyond = FeedPosition::after(end.transaction + 1_000_000_000);
    let refused = world.store.feed(beyond, most(9)).await;
    assert!(matches!(refused, Err(Error::Expired)), "{refused:?}");
}

pub(super) async fn a_cursor_has_one_holder_at_a_time(world: World) {
    let other = World::open(&world.url).await;
    let (long, short) = (Duration::from_secs(600), Duration::from_millis(50));
    let (one, two) = (&world.maintenance, &other.maintenance);
    let at = |transaction| FeedPosition::after(transaction);
    let end = world.store.feed_end().await.unwrap();
    let place = one.hold_cursor("broker", "one", long).await.unwrap();
    let place = place.expect("it is held by none");
    assert!(place >= end && place.row == i64::MAX, "{place:?}");
    let again = one.hold_cursor("broker", "one", long).await.unwrap();
    assert_eq!(again, Some(place), "a holder may hold it again");
    let refused = two.hold_cursor("broker", "two", long).await.unwrap();
    assert_eq!(refused, None);
    let another = two.hold_cursor("another", "two", long).await.unwrap();
    assert!(another.is_some(), "cursors are apart");
    assert!(
        !two.advance_cursor("broker", "two", at(5), long)
            .await
            .unwrap()
    );
    assert!(
        !two.advance_cursor("unknown", "two", at(5), long)
            .await
            .unwrap()
    );
    assert!(
        one.advance_cursor("broker", "one", at(7), short)
            .await
            .unwrap()
    );
    let taken = loop {
        match two.hold_cursor("broker", "two", long).await.unwrap() {
            Some(taken) => break taken,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert_eq!(taken, at(7), "it goes on where the last holder was");
    assert!(
        !one.advance_cursor("broker", "one", at(9), long)
            .await
            .unwrap()
    );
    assert!(
        two.advance_cursor("broker", "two", at(8), Duration::ZERO)
            .await
            .unwrap()
    );
    let back = one.hold_cursor("broker", "one", long).await.unwrap();
    assert_eq!(back, Some(at(8)), "it was given back");
    other.maintenance.close().await;
}
