//! Signatures of older rules become those of the current ones, and those of failures that say nothing
//! get the ends of their logs.

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
    seam::{
        Batch, Change, FeedPosition, LogAppend, LogKey, LogKind, LogSource, LogStore as _,
        Maintenance, Store,
    },
    sql::{row::SqlRow as _, statement::Statement},
    store::{SqlStore, resolve::over},
};
use hindsight_filter::{columns::unreadable, model::Record};
use hindsight_logs::{Lines, ends};
use jiff::Timestamp;

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

fn log_of(at: usize, container: &str) -> LogKey {
    LogKey {
        run: format!("a/results/r/records/{at:02}").parse().unwrap(),
        kind: LogKind::Container,
        source: LogSource {
            pod: "pod".to_owned(),
            container: container.to_owned(),
            restart: 0,
        },
    }
}

async fn given_log<D: Driver>(store: &SqlStore<D>, key: LogKey, text: String, holes: Vec<i64>) {
    let times = vec![0; ends(text.as_bytes()).count()];
    let parts = vec![Lines::new(0, text.into(), times, holes).unwrap()];
    let appends = [LogAppend { key, parts }];
    let stored = store.append_logs(&appends, Timestamp::UNIX_EPOCH).await;
    assert!(stored.iter().all(Result::is_ok));
}

/// A run of which a step failed, and nothing more is known.
fn vague(name: &str, us: i64) -> Record {
    let object = json!({
        "kind": "TaskRun", "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed",
                "message": "\"step-unit\" exited with code 1: Error"}],
            "steps": [{"name": "unit", "terminated": {"exitCode": 1, "reason": "Error"}}],
        },
    });
    record(name, us, &object)
}

/// A failure that says nothing gets a signature of the end of its log, whichever of the two is stored first.
async fn logs_are_caught_up<D: Driver>(store: SqlStore<D>) {
    let plain = said(&store).await;
    let name = |at: usize| format!("a/results/r/records/{at:02}");
    let keys = async || {
        let mut all = said(&store).await;
        all.retain(|(id, _)| id.as_str() >= "20");
        all.sort();
        let all = all.into_iter();
        all.map(|(_, said)| said).collect::<Vec<_>>()
    };
    let insert = async |at: usize| {
        let change = Change::InsertRecord(vague(&name(at), 100));
        let changes = vec![change];
        store.commit(&Batch { changes }).await.unwrap();
    };
    let now = Timestamp::UNIX_EPOCH;
    let mut weak = String::new();
    for at in [20, 21, 22] {
        if at != 21 {
            insert(at).await;
        }
        if at == 20 {
            weak.clone_from(&keys().await[0]);
        }
        let (step, other) = (log_of(at, "step-unit"), log_of(at, "step-build"));
        let error = match at {
            22 => "no space left on device".to_owned(),
            at => format!("cannot reach 10.0.0.{at}"),
        };
        let noise = "building\n".repeat(20_000);
        let text = format!("{noise}error: {error}\nerror: lines are missing\n");
        given_log(&store, step.clone(), text, vec![20_001]).await;
        let text = format!("error: {at} of another step\n");
        given_log(&store, other.clone(), text, vec![]).await;
        if at == 20 {
            assert_eq!(signed(&store).await, 0, "no log is sealed");
        }
        for key in [step, other] {
            assert!(!store.seal_log(&key, now).await.unwrap().signed);
        }
        if at == 21 {
            // The record comes after the pass has looked at its logs.
            assert_eq!(signed(&store).await, 4);
            insert(at).await;
        }
    }
    let before = keys().await;
    assert!(
        before[0] != weak && before[1] == weak && before[2] == weak,
        "{before:?}"
    );
    assert_eq!(signed(&store).await, 4);
    let after = keys().await;
    assert_eq!(after[0], before[0], "what was looked at stays");
    assert_eq!(after[0], after[1]);
    assert!(after[0] != after[2] && after[2] != weak, "{after:?}");
    let log = store.log(&log_of(21, "step-unit")).await.unwrap().unwrap();
    assert!(log.signed);
    assert_eq!(signed(&store).await, 0);
    // A run that changes is looked at again.
    tell(
        &store,
        "UPDATE records SET run_signature = '1old' WHERE run_message LIKE '%step-unit%'",
    )
    .await;
    assert_eq!(signed(&store).await, 3, "older rules");
    assert_eq!(keys().await, after);
    tell(&store, "UPDATE records SET body_sha256 = body_sha256").await;
    assert_eq!(signed(&store).await, 6);
    let others: Vec<_> = said(&store)
        .await
        .into_iter()
        .filter(|(id, _)| id.as_str() < "20")
        .collect();
    assert_eq!(others, plain, "what says why has no signature of a log");
    store.close().await;
}

#[tokio::test]
async fn ends_of_logs_are_caught_up_on_sqlite() {
    let database = SqliteFile::fresh().await;
    let url = database.url();
    let file = File::new(url.strip_prefix("sqlite:").unwrap());
    logs_are_caught_up(given(sqlite::open(file, &migrating()).await.unwrap().0).await).await;
    database.remove().await;
}

#[tokio::test]
async fn ends_of_logs_are_caught_up_on_postgres() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let url = database.url();
    logs_are_caught_up(given(postgres::open(&url, &migrating()).await.unwrap().0).await).await;
    database.remove().await;
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
