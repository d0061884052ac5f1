//! Opening, migrating, closing, and several processes on one database.

use std::sync::Arc;

use serde_json::json;

use super::{
    World,
    fixtures::{everything, kind, record, result},
};
use crate::{driver::options::Options, seam::Change, store::resolve::open};

pub(super) async fn what_was_acknowledged_is_there_after_reopening(world: World) {
    let World {
        store,
        maintenance,
        logs,
        index,
        url,
    } = world;
    let first = World {
        store,
        maintenance,
        logs,
        index,
        url: url.clone(),
    };
    first
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let writers: Vec<_> = (0..100)
        .map(|at| {
            let name = format!("a/results/r/records/{at}");
            first.start(Change::InsertRecord(record(&name, at, &json!({"at": at}))))
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    // Dropped, not closed.
    drop(first);
    let second = World::open(&url).await;
    assert_eq!(
        second
            .store
            .list_records(&everything())
            .await
            .unwrap()
            .len(),
        100
    );
    second.maintenance.close().await;
    let third = World::open(&url).await;
    assert_eq!(
        third.store.list_records(&everything()).await.unwrap().len(),
        100
    );
    third.maintenance.close().await;
}

pub(super) async fn two_open_stores_see_each_other(world: World) {
    let other = World::open(&world.url).await;
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    let mut tasks = Vec::new();
    for at in 0..60 {
        let by = if at % 2 == 0 { &world } else { &other };
        let name = format!("a/results/r/records/{}", at / 2);
        tasks.push(by.start(Change::InsertRecord(record(&name, at, &json!({"at": at})))));
    }
    let mut done = 0;
    for task in tasks {
        match kind(&task.await.unwrap()) {
            "done" => done += 1,
            other => assert_eq!(other, "exists"),
        }
    }
    assert_eq!(done, 30);
    let here = world.store.list_records(&everything()).await.unwrap();
    assert_eq!(here, other.store.list_records(&everything()).await.unwrap());
    other.maintenance.close().await;
}

pub(super) async fn a_secret_is_made_once(world: World) {
    let other = World::open(&world.url).await;
    let asking: Vec<_> = (0..8_u8)
        .map(|at| {
            let by = if at % 2 == 0 { &world } else { &other };
            let maintenance = Arc::clone(&by.maintenance);
            tokio::spawn(async move { maintenance.secret("page tokens", &[at; 32]).await })
        })
        .collect();
    let mut secrets = Vec::new();
    for one in asking {
        secrets.push(one.await.unwrap().unwrap());
    }
    assert!(
        secrets.iter().all(|secret| *secret == secrets[0]),
        "{secrets:?}"
    );
    assert_eq!(secrets[0].len(), 32);
    assert_eq!(
        world.maintenance.secret("another", b"b").await.unwrap(),
        b"b"
    );
    assert_eq!(
        other.maintenance.secret("page tokens", b"c").await.unwrap(),
        secrets[0]
    );
    other.maintenance.close().await;
}

pub(super) async fn migrating_again_changes_nothing(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    assert_eq!(
        world.maintenance.migrate().await.unwrap(),
        Vec::<i64>::new()
    );
    world.maintenance.ping().await.unwrap();
    // Now that it is migrated, it opens without.
    let opened = open(&world.url, &Options::default()).await.unwrap();
    assert_eq!(opened.applied, Vec::<i64>::new());
    assert_eq!(
        opened
            .store
            .list_results(&everything())
            .await
            .unwrap()
            .len(),
        1
    );
    opened.maintenance.close().await;
}

pub(super) async fn a_closed_store_says_so(world: World) {
    world
        .given([Change::InsertResult(result("a/results/r", 0))])
        .await;
    world.maintenance.close().await;
    world.maintenance.close().await;
    let refused = world
        .try_to(Change::InsertResult(result("a/results/s", 0)))
        .await;
    assert_eq!(kind(&refused), "unavailable");
    assert!(
        world.store.list_results(&everything()).await.is_err(),
        "an empty list is no answer"
    );
    assert!(world.maintenance.ping().await.is_err());
}
