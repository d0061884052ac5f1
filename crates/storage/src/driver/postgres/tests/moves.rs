//! Records that are created while those of their result are moved to a file.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use sqlx::{AssertSqlSafe, Executor as _, Row as _, postgres::PgConnection};

use super::connect;
use crate::{
    codec::objects::Bucket,
    conformance::{
        World,
        backends::{Database as _, PostgresDatabase},
        fixtures::{everything, kind, record, result, time},
        tests::postgres_server,
    },
    seam::{Change, Error, Store, WholeVersion},
    tiers::{Archive, Moving, Tiers},
};

/// What a move of `a/results/r` to a file does, as far as its end.
const MOVE: [&str; 4] = [
    "BEGIN",
    "SELECT 1 FROM results FOR UPDATE",
    "UPDATE results SET archive_file = (SELECT max(row_id) FROM archive_files)",
    "DELETE FROM records",
];

/// A database with the result and a record, `one`, which is in a file that is not named yet.
async fn written(world: &World) -> Archive {
    world
        .given([Change::InsertResult(result("a/results/r", 1))])
        .await;
    let one = record("a/results/r/records/one", 2, &json!({}));
    let version = WholeVersion::of(&result("a/results/r", 1), [one.update_time]);
    world.given([Change::InsertRecord(one)]).await;
    let index = world.index.clone().unwrap();
    let archive = Archive::new(Bucket::in_memory(), index);
    let moving = Moving::of(&*world.store, result("a/results/r", 1), version).await;
    let moving = moving.unwrap().unwrap();
    archive.write(vec![moving], time(3)).await.unwrap();
    archive
}

/// Creates records while a move is open, and ends the move once they wait for it.
async fn created(world: &World, store: Arc<dyn Store>, ids: &[&str]) -> Vec<Result<(), Error>> {
    let database = world.url.clone();
    let options: sqlx::postgres::PgConnectOptions = database.parse().unwrap();
    let mut mover: PgConnection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    for statement in MOVE {
        mover.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let named = |id: &&str| {
        let name = format!("a/results/r/records/{id}");
        Change::InsertRecord(record(&name, 9, &json!({})))
    };
    let changes: Vec<_> = ids.iter().map(named).collect();
    let creating = tokio::spawn(async move { store.commit_each(&changes).await });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock'";
    while mover.fetch_one(waits).await.unwrap().get::<i64, _>(0) == 0 {
        assert!(!creating.is_finished(), "it does not wait for the move");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    mover.execute("COMMIT").await.unwrap();
    creating.await.unwrap()
}

#[tokio::test]
async fn no_record_is_put_into_a_result_while_it_is_moved() {
    let Some(server) = postgres_server() else {
        return;
    };
    // By itself, with others in one statement, and under a name that the file has.
    for ids in [&["new"][..], &["new", "newer"], &["one"]] {
        let database = PostgresDatabase::fresh(&server).await;
        let world = World::open(&database.url()).await;
        let archive = written(&world).await;
        let store = Arc::clone(&world.store);
        for outcome in created(&world, store, ids).await {
            assert_eq!(kind(&outcome), "missing", "{ids:?}");
        }
        let left = "SELECT count(*) FROM records";
        let left = connect(&database).await.fetch_one(left).await.unwrap();
        assert_eq!(left.get::<i64, _>(0), 0, "{ids:?}");
        drop(archive);
        world.maintenance.close().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_record_that_is_created_during_a_move_brings_the_others_back() {
    let Some(server) = postgres_server() else {
        return;
    };
    for (id, wanted, records) in [("new", "done", 2), ("one", "exists", 1)] {
        let database = PostgresDatabase::fresh(&server).await;
        let world = World::open(&database.url()).await;
        let tiers = Tiers::new(Arc::clone(&world.store), written(&world).await);
        let tiers: Arc<dyn Store> = Arc::new(tiers);
        let outcomes = created(&world, Arc::clone(&tiers), &[id]).await;
        assert_eq!(kind(&outcomes[0]), wanted);
        let listed = tiers.list_records(&everything()).await.unwrap();
        assert_eq!(listed.len(), records, "{id}");
        world.maintenance.close().await;
        database.remove().await;
    }
}
