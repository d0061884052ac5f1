//! Signatures of older rules become those of the current ones.

use std::{num::NonZeroU32, path::Path as File, time::Duration};

use serde_json::json;

use crate::{
    conformance::{
        backends::{Database, PostgresDatabase, SqliteFile},
        fixtures::{everything, record, result},
        tests::postgres_server,
    },
    driver::{
        Database as Driver,
        options::{Options, Schema},
        postgres, sqlite,
    },
    seam::{Batch, Change, FeedPosition, Maintenance, Store},
    sql::{row::SqlRow as _, statement::Statement},
    store::{SqlStore, resolve::over},
};
use hindsight_filter::columns::unreadable;

const RUNS: usize = 12;
const FEW: NonZeroU32 = NonZeroU32::new(5).unwrap();

fn migrating() -> Options {
    Options {
        schema: Schema::Migrate,
        ..Options::default()
    }
}

async fn given<D: Driver>(db: D) -> SqlStore<D> {
    let store = over(db, &migrating()).await.unwrap();
    let mut changes = vec![Change::InsertResult(result("a/results/r", 0))];
    for at in 0..RUNS {
        let status = if at % 4 == 0 { "True" } else { "False" };
        let object = json!({
            "kind": "TaskRun", "metadata": {"name": format!("run-{at}")},
            "status": {"retriesStatus": vec![json!({}); at % 3], "conditions": [{
                "type": "Succeeded", "status": status, "reason": "Failed",
                "message": format!("cannot reach 10.0.0.{at}: stage {}", ["a", "b"][at % 2])}]},
        });
        let name = format!("a/results/r/records/{at:02}");
        let us = i64::try_from(at).unwrap();
        changes.push(Change::InsertRecord(record(&name, us, &object)));
    }
    store.commit(&Batch { changes }).await.unwrap();
    store
}

/// What rows say of their ends.
async fn said<D: Driver>(store: &SqlStore<D>) -> Vec<(String, String)> {
    let rows = store.list_columns(&everything()).await.unwrap();
    let said = rows.into_iter().map(|row| {
        let object = row.item.object;
        let said = format!(
            "{:?} {:?} {:?}",
            object.signature, object.message, object.attempt
        );
        (row.item.record.name.id().to_owned(), said)
    });
    said.collect()
}

async fn tell<D: Driver>(store: &SqlStore<D>, text: &'static str) {
    store.tell(vec![Statement::new(text)]).await.unwrap();
}

async fn signed<D: Driver>(store: &SqlStore<D>) -> u64 {
    let mut signed = 0;
    loop {
        match store.sign(FEW).await.unwrap() {
            0 => return signed,
            some => {
                assert!(some <= 5, "a batch is bounded");
                signed += some;
            }
        }
    }
}

/// How many rows the table of the feed has.
async fn noted<D: Driver>(store: &SqlStore<D>) -> Option<i64> {
    let count = Statement::new("SELECT count(*) FROM changes");
    store.ask(&count).await.unwrap()[0].int(0).unwrap()
}

/// What was not read before is told nonetheless.
async fn every_run_is_told<D: Driver>(store: &SqlStore<D>) {
    let most = NonZeroU32::new(100).unwrap();
    loop {
        // Transactions of other databases hold changes back.
        let page = store.feed(FeedPosition::after(0), most).await;
        let told = page.unwrap().changes.len();
        assert!(told <= RUNS, "{told} changes");
        if told == RUNS {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whatever is lacking is written again, and nothing else.
async fn is_caught_up<D: Driver>(store: SqlStore<D>) {
    let written = said(&store).await;
    let changes = noted(&store).await;
    let count = |what: &str| {
        written
            .iter()
            .filter(|(_, said)| said.contains(what))
            .count()
    };
    assert_eq!((count("stage a"), count("stage b")), (3, 6), "{written:?}");
    assert_eq!(signed(&store).await, 0, "nothing is left to do");
    tell(
        &store,
        "UPDATE records SET run_signature = '0old', run_message = 'old' \
         WHERE run_signature IS NOT NULL",
    )
    .await;
    assert_eq!(signed(&store).await, 9);
    assert_eq!(said(&store).await, written);
    tell(
        &store,
        "UPDATE records SET run_signature = NULL, run_message = NULL, run_attempt = NULL \
         WHERE run_outcome = 2",
    )
    .await;
    assert_eq!(signed(&store).await, 9);
    assert_eq!(said(&store).await, written);
    tell(
        &store,
        "UPDATE records SET run_signature = 'znew' WHERE run_signature IS NOT NULL",
    )
    .await;
    assert_eq!(
        signed(&store).await,
        0,
        "newer rules are those of another server"
    );
    tell(&store, "UPDATE records SET run_signature = NULL").await;
    tell(
        &store,
        "UPDATE bodies SET dictionary = NULL, codec = 1, bytes = substr(bytes, 1, 1)",
    )
    .await;
    assert_eq!(signed(&store).await, 9);
    let nothing = format!("{:?} None None", Some(unreadable()));
    let damaged = said(&store).await;
    let count = damaged.iter().filter(|(_, said)| *said == nothing).count();
    assert_eq!(count, 9, "{damaged:?}");
    assert_eq!(noted(&store).await, changes, "no record changed");
    every_run_is_told(&store).await;
    store.close().await;
}

#[tokio::test]
async fn signatures_are_caught_up_on_sqlite() {
    let database = SqliteFile::fresh().await;
    let url = database.url();
    let file = File::new(url.strip_prefix("sqlite:").unwrap());
    is_caught_up(given(sqlite::open(file, &migrating()).await.unwrap().0).await).await;
    database.remove().await;
}

#[tokio::test]
async fn signatures_are_caught_up_on_postgres() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let url = database.url();
    is_caught_up(given(postgres::open(&url, &migrating()).await.unwrap().0).await).await;
    database.remove().await;
}
