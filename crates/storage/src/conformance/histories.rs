//! What many writers did at the same time, through several replicas, makes sense as something
//! that happened one after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::json;

use super::{
    World,
    backends::rows,
    fixtures::{Dice, everything, kind, later_record, record, record_name, result, result_name},
};
use crate::seam::{Change, Store};
use hindsight_filter::model::Etag;

/// Races of all records together.
const RACES: i64 = 10_000;
/// Records that are fought over at the same time.
const TRACKS: i64 = 16;
/// Writers of each race.
const WRITERS: i64 = 3;

pub(super) async fn of_ten_thousand_races_each_has_one_winner(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let replicas = world.replicas().await;
    let tracks: Vec<_> = (0..TRACKS)
        .map(|track| tokio::spawn(races(world.clone(), replicas.stores(), track)))
        .collect();
    let mut rounds = 0;
    for track in tracks {
        rounds += track.await.unwrap();
    }
    assert_eq!(rounds, RACES);
    replicas.close().await;
}

/// The races for one record, one after the other: all writers of a race know the same etag.
async fn races(world: World, stores: Vec<Arc<dyn Store>>, track: i64) -> i64 {
    let name = format!("a/results/r/records/{track}");
    let mut current = record(&name, 0, &json!({}));
    world.given([Change::InsertRecord(current.clone())]).await;
    let rounds = RACES / TRACKS;
    for round in 0..rounds {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let object = json!({"round": round, "writer": writer});
                let us = 1 + round * WRITERS + writer;
                let value = later_record(&record(&name, 0, &object), us);
                let change = Change::ReplaceRecord {
                    expect: current.etag.clone(),
                    value: value.clone(),
                };
                let store = Arc::clone(&stores[usize::try_from(writer).unwrap() % stores.len()]);
                let writing = tokio::spawn(async move { store.commit(&change.into()).await });
                (value, writing)
            })
            .collect();
        let mut winners = Vec::new();
        for (value, writing) in writers {
            match kind(&writing.await.unwrap()) {
                "done" => winners.push(value),
                other => assert_eq!(other, "stale", "round {round} of {name}"),
            }
        }
        assert_eq!(winners.len(), 1, "winners of round {round} of {name}");
        current = winners.remove(0);
    }
    assert_eq!(world.record(&current.name).await, Some(current));
    rounds
}

/// Something a writer did that succeeded: the etag that it took away, and the one that it left.
type Link = (Option<Etag>, Option<Etag>);

/// Writers create, change and delete a few records as they find them. Every write that was
/// acknowledged took the place of one etag, each etag lost its place at most once, and what has
/// not lost it is what is stored: the history of each record is a chain.
pub(super) async fn histories_of_many_writers_are_chains(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let replicas = world.replicas().await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let stores = replicas.stores();
            let store = Arc::clone(&stores[usize::try_from(writer).unwrap() % stores.len()]);
            tokio::spawn(write(store, writer))
        })
        .collect();
    let mut links: BTreeMap<String, Vec<Link>> = BTreeMap::new();
    for writer in writers {
        for (name, link) in writer.await.unwrap() {
            links.entry(name).or_default().push(link);
        }
    }
    for (name, links) in links {
        let made: Vec<_> = links.iter().filter_map(|(_, made)| made.as_ref()).collect();
        let taken: Vec<_> = links.iter().filter_map(|(took, _)| took.as_ref()).collect();
        let text = |etag: &&Etag| etag.to_string();
        let mut left: BTreeSet<_> = made.iter().map(text).collect();
        assert_eq!(left.len(), made.len(), "every etag of {name} was made once");
        for etag in taken {
            assert!(
                left.remove(etag.as_str()),
                "{etag} of {name} was taken twice"
            );
        }
        let stored = world.record(&record_name(&name)).await;
        let stored: BTreeSet<_> = stored
            .iter()
            .map(|stored| stored.etag.to_string())
            .collect();
        assert_eq!(left, stored, "what is left of {name} is what is stored");
    }
    replicas.close().await;
}

async fn write(store: Arc<dyn Store>, writer: i64) -> Vec<(String, Link)> {
    let mut dice = Dice::new(u64::try_from(writer).unwrap());
    let mut done = Vec::new();
    for step in 0..150 {
        let name = format!("a/results/r/records/{}", dice.below(3));
        // No two writes have the same time, so no two etags are the same.
        let us = 1 + step * 8 + writer;
        let new = later_record(&record(&name, us, &json!({"us": us})), us);
        let found = store.record(&record_name(&name)).await.unwrap();
        let (change, link) = match found {
            None => {
                let made = Some(new.etag.clone());
                (Change::InsertRecord(new), (None, made))
            }
            Some(found) if dice.once_in(4) => {
                let (name, expect) = (found.name, Some(found.etag.clone()));
                (
                    Change::DeleteRecord { name, expect },
                    (Some(found.etag), None),
                )
            }
            Some(found) => {
                let link = (Some(found.etag.clone()), Some(new.etag.clone()));
                let (expect, value) = (found.etag, new);
                (Change::ReplaceRecord { expect, value }, link)
            }
        };
        // Lone changes and those that come in company are the same to others.
        let outcome = if dice.once_in(2) {
            store.commit(&change.into()).await
        } else {
            store.commit_each(&[change]).await.remove(0)
        };
        match kind(&outcome) {
            "done" => done.push((name, link)),
            other => assert!(
                ["exists", "stale", "missing"].contains(&other),
                "{outcome:?}"
            ),
        }
    }
    done
}

pub(super) async fn what_is_deleted_leaves_nothing(world: World) {
    let before = rows(&world.url).await;
    let object = |n: usize| {
        json!({"kind": "TaskRun", "metadata": {"name": format!("n{n}"), "labels": {"a": "b"}},
            "status": {"conditions": [{"type": "Succeeded", "status": "True"}]},
            "pad": "x".repeat(400)})
    };
    for parent in ["a", "b"] {
        let name = format!("{parent}/results/r");
        let records = (0..20).map(|n| record(&format!("{name}/records/{n}"), 1, &object(n)));
        let mut changes = vec![Change::InsertResult(result(&name, 1))];
        changes.extend(records.map(Change::InsertRecord));
        world.given(changes).await;
    }
    let full = rows(&world.url).await;
    assert_eq!(
        [full["results"], full["records"], full["bodies"]],
        [2, 40, 40]
    );
    let one_by_one = (0..20).map(|n| Change::DeleteRecord {
        name: record_name(&format!("b/results/r/records/{n}")),
        expect: None,
    });
    let outcomes = world
        .store
        .commit_each(&one_by_one.collect::<Vec<_>>())
        .await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    for parent in ["a", "b"] {
        let (name, expect) = (result_name(&format!("{parent}/results/r")), None);
        world.given([Change::DeleteResult { name, expect }]).await;
    }
    let most = std::num::NonZeroU32::new(1000).unwrap();
    world.maintenance.sweep(most, 0).await.unwrap();
    assert_eq!(rows(&world.url).await, before);
    let left = world.store.list_records(&everything()).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
