//! Results that retention deletes, and holds.

use std::num::NonZeroU32;

use hindsight_filter::model::ParentPattern;
use serde_json::json;

use super::{
    World,
    fixtures::{everything, hold, later_record, record, result, result_name, time},
};
use crate::seam::{Change, Error, Hold, WholeVersion};

const MOST: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");

async fn version(world: &World, name: &str) -> WholeVersion {
    let of = world.store.result(&result_name(name)).await.unwrap();
    let listed = world.store.list_records(&everything()).await.unwrap();
    let records = listed.iter().map(|listed| &listed.item);
    let records = records.filter(|record| *record.name.result() == result_name(name));
    let updates = records.map(|record| record.update_time);
    WholeVersion::of(&of.expect("it is there"), updates)
}

async fn expire(world: &World, version: &WholeVersion, us: i64) -> Result<(), Error> {
    let change = Change::ExpireResult {
        name: result_name("a/results/x"),
        version: version.clone(),
        now: time(us),
    };
    world.store.commit(&change.into()).await
}

async fn holds(world: &World, parent: &ParentPattern) -> Vec<Hold> {
    let holds = world.store.holds(parent, 0, MOST).await.unwrap();
    holds.into_iter().map(|(_, hold)| hold).collect()
}

pub(super) async fn what_changed_since_does_not_expire(world: World) {
    let run = record("a/results/x/records/run", 10, &json!({"n": 1}));
    let other = record("a/results/x/records/other", 11, &json!({"n": 2}));
    world
        .given([
            Change::InsertResult(result("a/results/x", 10)),
            Change::InsertRecord(run.clone()),
        ])
        .await;
    let seen = version(&world, "a/results/x").await;
    world.given([Change::InsertRecord(other)]).await;
    let came = expire(&world, &seen, 100).await;
    assert!(matches!(came, Err(Error::Stale { .. })), "{came:?}");

    let seen = version(&world, "a/results/x").await;
    let value = later_record(&run, 12);
    let expect = run.etag;
    world.given([Change::ReplaceRecord { expect, value }]).await;
    let came = expire(&world, &seen, 100).await;
    assert!(matches!(came, Err(Error::Stale { .. })), "{came:?}");

    let seen = version(&world, "a/results/x").await;
    expire(&world, &seen, 100).await.unwrap();
    let left = world.store.list_records(&everything()).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    let again = expire(&world, &seen, 100).await;
    assert!(matches!(again, Err(Error::Missing(_))), "{again:?}");
}

pub(super) async fn what_is_held_does_not_expire(world: World) {
    for name in ["a/results/x", "b/results/y"] {
        world.given([Change::InsertResult(result(name, 10))]).await;
    }
    let seen = version(&world, "a/results/x").await;
    let first = hold("a/results/x", 20, Some(50));
    world.given([Change::InsertHold(first.clone())]).await;
    let came = expire(&world, &seen, 49).await;
    assert!(matches!(came, Err(Error::Stale { .. })), "{came:?}");

    let second = hold("a/results/x", 40, None);
    let taken = world.store.commit(&Change::InsertHold(second).into()).await;
    assert!(matches!(taken, Err(Error::Exists(_))), "{taken:?}");
    // One that has expired gives way.
    let second = hold("a/results/x", 50, None);
    let third = hold("b/results/y", 60, None);
    world.given([Change::InsertHold(second.clone())]).await;
    world.given([Change::InsertHold(third.clone())]).await;
    assert_eq!(
        holds(&world, &ParentPattern::Any).await,
        [second.clone(), third]
    );
    let of_a = ParentPattern::Exact("a".parse().unwrap());
    assert_eq!(holds(&world, &of_a).await, [second]);

    let name = result_name("a/results/x");
    world
        .given([Change::DeleteHold { name: name.clone() }])
        .await;
    let again = world
        .store
        .commit(&Change::DeleteHold { name }.into())
        .await;
    assert!(matches!(again, Err(Error::Missing(_))), "{again:?}");
    expire(&world, &seen, 60).await.unwrap();
    let nothing = world.store.commit(&Change::InsertHold(first).into()).await;
    assert!(matches!(nothing, Err(Error::Missing(_))), "{nothing:?}");
}

/// A hold goes with its result, and one of the same name later is not held.
pub(super) async fn a_hold_ends_with_its_result(world: World) {
    let name = result_name("a/results/x");
    world
        .given([Change::InsertResult(result("a/results/x", 10))])
        .await;
    world
        .given([Change::InsertHold(hold("a/results/x", 20, None))])
        .await;
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    world
        .given([Change::InsertResult(result("a/results/x", 30))])
        .await;
    assert_eq!(holds(&world, &ParentPattern::Any).await, []);
}
