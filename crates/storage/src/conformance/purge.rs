//! Removing for good.

use jiff::Timestamp;
use serde_json::json;

use super::{
    World,
    backends::{dictionaries, rows},
    dictionaries::given_runs,
    fixtures::{everything, record, result},
};
use crate::{
    codec::objects::testing::given,
    seam::{Change, Purge},
};

/// Runs of two parents that are like one another, and a payload that no dictionary helps.
async fn given_both(world: &World) {
    for parent in ["a", "b"] {
        for name in ["one", "two"] {
            given_runs(world, &format!("{parent}/results/{name}"), "build", 4).await;
        }
    }
    // Nothing that becomes small, so it lies outside where anything does.
    let text = |at: u32| format!("{:08x}", at.wrapping_mul(2_654_435_761));
    let object = json!({"text": (0..500).map(text).collect::<String>()});
    let big = record("a/results/one/records/big", 50, &object);
    world.given([Change::InsertRecord(big)]).await;
}

async fn left(world: &World, parent: &str) -> usize {
    let listed = world.store.list_records(&everything()).await.unwrap();
    let of = |name: &str| name.starts_with(&format!("{parent}/"));
    let names = listed.into_iter().map(|row| row.item.name.to_string());
    names.filter(|name| of(name)).count()
}

pub(super) async fn a_parent_is_purged_and_nothing_of_it_is_left(world: World) {
    given_both(&world).await;
    let what = Purge::Parent("a".parse().unwrap());
    let there = world.maintenance.purgeable(&what).await.unwrap();
    assert_eq!((there.results, there.records), (2, 9));
    let outside = given(&world.url).is_some();
    assert_eq!(there.objects > 0, outside);

    let purged = world.maintenance.purge(&what, Timestamp::UNIX_EPOCH).await;
    assert_eq!(purged.unwrap(), there);
    assert_eq!((left(&world, "a").await, left(&world, "b").await), (0, 8));
    let dictionaries = dictionaries(&world.url).await;
    assert!(dictionaries.iter().all(|(parent, _)| parent == "b"));
    let again = world.maintenance.purge(&what, Timestamp::UNIX_EPOCH).await;
    assert_eq!(again.unwrap().records, 0);
}

pub(super) async fn a_record_and_a_result_are_purged_and_others_stay(world: World) {
    given_both(&world).await;
    let what = Purge::Record("a/results/one/records/x0".parse().unwrap());
    let purged = world.maintenance.purge(&what, Timestamp::UNIX_EPOCH).await;
    let purged = purged.unwrap();
    assert_eq!((purged.results, purged.records), (0, 1));
    assert_eq!(left(&world, "a").await, 8);
    let what = Purge::Result("a/results/one".parse().unwrap());
    let purged = world.maintenance.purge(&what, Timestamp::UNIX_EPOCH).await;
    let purged = purged.unwrap();
    assert_eq!((purged.results, purged.records), (1, 4));
    assert_eq!((left(&world, "a").await, left(&world, "b").await), (4, 8));
    let other = result("c/results/x", 1);
    world.given([Change::InsertResult(other)]).await;
    assert_eq!(rows(&world.url).await["results"], 4);
}
