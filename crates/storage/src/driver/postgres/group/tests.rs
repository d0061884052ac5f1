//! Callers that share a statement are told what became of their own change alone.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use sqlx::{Executor, Postgres as Sql, Transaction};
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::{
    conformance::{
        backends::{Database as _, PostgresDatabase},
        fixtures::{kind, later_record, record, result},
        tests::postgres_server,
    },
    driver::{
        options::{Options, Schema},
        postgres::{Postgres, open},
    },
    seam::{Change, Store as _},
    store::{SqlStore, resolve::over},
};

/// Longer than a test takes.
const NEVER: Duration = Duration::from_secs(3_600);

/// The result whose records wait while the test holds it.
const HELD: &str = "a/results/held";

struct Given {
    store: Arc<SqlStore<Postgres>>,
    database: PostgresDatabase,
}

type Outcome = Result<(), Error>;

impl Given {
    /// A store with two results, whose writers wait so long for a statement under way.
    async fn patient(patience: Duration) -> Option<Self> {
        let options = Options {
            schema: Schema::Migrate,
            // A busy machine may take longer than the default for what comes before the write.
            wait: NEVER,
            ..Options::default()
        };
        let database = PostgresDatabase::fresh(&postgres_server()?).await;
        let (mut db, _) = open(&database.url(), &options).await.unwrap();
        db.groups.patience = patience;
        let store = Arc::new(over(db, &options).await.unwrap());
        for name in [HELD, "a/results/r"] {
            let new = Change::InsertResult(result(name, 0));
            store.commit(&new.into()).await.unwrap();
        }
        Some(Self { store, database })
    }

    fn start(&self, change: Change) -> JoinHandle<Outcome> {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.commit(&change.into()).await })
    }

    fn waiting(&self, of: Kind) -> usize {
        self.store.db.groups.queue(of).waiting.len()
    }

    /// Begins changes one after the other, which wait in this order.
    async fn queue(&self, of: Kind, changes: Vec<Change>) -> Vec<JoinHandle<Outcome>> {
        let mut started = Vec::new();
        for change in changes {
            let before = self.waiting(of);
            started.push(self.start(change));
            while self.waiting(of) == before {
                yield_now().await;
            }
        }
        started
    }

    /// Begins to insert a record, which waits until the transaction ends.
    async fn hold(&self) -> (Transaction<'static, Sql>, JoinHandle<Outcome>) {
        let mut holder = self.store.db.pool.inner().begin().await.unwrap();
        let lock = "SELECT 1 FROM results WHERE id = 'held' FOR UPDATE";
        holder.execute(lock).await.unwrap();
        let first = self.start(new("held", "first", 0));
        while self.store.db.groups.queue(Kind::NewRecords).under_way == 0 {
            yield_now().await;
        }
        (holder, first)
    }

    /// How many transactions wrote the records of the result `r`.
    async fn transactions(&self) -> i64 {
        let count = "SELECT count(DISTINCT records.xmin::text) FROM records JOIN results \
                     ON results.row_id = result_row WHERE results.id = 'r'";
        let pool = self.store.db.pool.inner();
        sqlx::query_scalar(count).fetch_one(pool).await.unwrap()
    }
}

fn new(of: &str, id: &str, us: i64) -> Change {
    let name = format!("a/results/{of}/records/{id}");
    Change::InsertRecord(record(&name, us, &json!({"us": us})))
}

async fn kinds(started: Vec<JoinHandle<Outcome>>) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for one in started {
        kinds.push(kind(&one.await.unwrap()));
    }
    kinds
}

#[tokio::test]
async fn those_that_come_while_one_is_under_way_share_a_transaction() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let (holder, first) = given.hold().await;
    let many = (0..20).map(|n| new("r", &format!("x{n}"), n)).collect();
    let many = given.queue(Kind::NewRecords, many).await;
    holder.rollback().await.unwrap();
    assert_eq!(kinds(vec![first]).await, ["done"]);
    assert_eq!(kinds(many).await, ["done"; 20]);
    assert_eq!(given.transactions().await, 1);
    given.database.remove().await;
}

#[tokio::test]
async fn each_is_refused_by_itself() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let there = new("r", "there", 0);
    given.store.commit(&there.into()).await.unwrap();
    let (holder, first) = given.hold().await;
    let changes = vec![
        new("r", "a", 1),
        new("r", "there", 2),
        new("none", "a", 3),
        new("r", "b", 4),
        new("r", "b", 5),
        new("r", "b", 6),
    ];
    let started = given.queue(Kind::NewRecords, changes).await;
    holder.rollback().await.unwrap();
    let wanted = ["done", "exists", "missing", "done", "exists", "exists"];
    assert_eq!(kinds(started).await, wanted);
    assert_eq!(kinds(vec![first]).await, ["done"]);
    let b = record("a/results/r/records/b", 4, &json!({"us": 4}));
    assert_eq!(given.store.record(&b.name).await.unwrap(), Some(b));
    given.database.remove().await;
}

#[tokio::test]
async fn updates_that_wait_together_keep_their_etags() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let x = record("a/results/held/records/x", 0, &json!({}));
    let [y, z] = ["y", "z"].map(|id| record(&format!("a/results/r/records/{id}"), 0, &json!({})));
    for new in [&x, &y, &z] {
        let new = Change::InsertRecord(new.clone());
        given.store.commit(&new.into()).await.unwrap();
    }
    let to = |value: &_, us| {
        let value = later_record(value, us);
        let expect = record("a/results/r/records/y", 0, &json!({})).etag;
        Change::ReplaceRecord { expect, value }
    };
    let mut holder = given.store.db.pool.inner().begin().await.unwrap();
    let lock = "SELECT 1 FROM records WHERE id = 'x' FOR UPDATE";
    holder.execute(lock).await.unwrap();
    let stale = Change::ReplaceRecord {
        expect: later_record(&z, 99).etag,
        value: later_record(&z, 3),
    };
    let first = given.start(Change::ReplaceRecord {
        expect: x.etag.clone(),
        value: later_record(&x, 1),
    });
    while given.store.db.groups.queue(Kind::Records).under_way == 0 {
        yield_now().await;
    }
    let changes = vec![to(&y, 1), to(&y, 2), stale];
    let started = given.queue(Kind::Records, changes).await;
    holder.rollback().await.unwrap();
    assert_eq!(kinds(vec![first]).await, ["done"]);
    assert_eq!(kinds(started).await, ["done", "stale", "stale"]);
    let there = given.store.record(&y.name).await.unwrap();
    assert_eq!(there, Some(later_record(&y, 1)));
    given.database.remove().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_while_it_waits_writes_nothing() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let (holder, first) = given.hold().await;
    let changes = vec![new("r", "gone", 1), new("r", "stays", 2)];
    let mut started = given.queue(Kind::NewRecords, changes).await;
    let gone = started.remove(0);
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    holder.rollback().await.unwrap();
    assert_eq!(kinds(started).await, ["done"]);
    assert_eq!(kinds(vec![first]).await, ["done"]);
    let stored = given
        .store
        .db
        .pool
        .inner()
        .fetch_all("SELECT 1 FROM records")
        .await;
    assert_eq!(stored.unwrap().len(), 2);
    given.database.remove().await;
}

#[tokio::test]
async fn the_one_under_way_may_go_away_too() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let (holder, first) = given.hold().await;
    let started = given.queue(Kind::NewRecords, vec![new("r", "x", 1)]).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    assert_eq!(kinds(started).await, ["done"]);
    holder.rollback().await.unwrap();
    given.database.remove().await;
}

#[tokio::test]
async fn a_row_that_is_locked_holds_up_its_own_statement_alone() {
    let Some(given) = Given::patient(PATIENCE).await else {
        return;
    };
    let (holder, first) = given.hold().await;
    let other = given.start(new("r", "x", 1));
    assert_eq!(kinds(vec![other]).await, ["done"]);
    assert!(!first.is_finished());
    holder.rollback().await.unwrap();
    assert_eq!(kinds(vec![first]).await, ["done"]);
    given.database.remove().await;
}

#[tokio::test]
async fn as_many_as_one_statement_takes_do_not_wait() {
    let Some(given) = Given::patient(NEVER).await else {
        return;
    };
    let (holder, first) = given.hold().await;
    let many = (0..100).map(|n| given.start(new("r", &format!("x{n}"), n)));
    assert_eq!(kinds(many.collect()).await, ["done"; 100]);
    assert!(!first.is_finished());
    holder.rollback().await.unwrap();
    assert_eq!(kinds(vec![first]).await, ["done"]);
    given.database.remove().await;
}

#[tokio::test]
async fn one_caller_sees_its_own_writes_in_order_beside_others() {
    let Some(given) = Given::patient(PATIENCE).await else {
        return;
    };
    let others: Vec<_> = (0..200)
        .map(|n| given.start(new("r", &format!("o{n}"), n)))
        .collect();
    let mut x = record("a/results/r/records/x", 0, &json!({}));
    for round in 1..10 {
        given
            .start(Change::InsertRecord(x.clone()))
            .await
            .unwrap()
            .unwrap();
        let value = later_record(&x, round * 10);
        let expect = x.etag.clone();
        let update = Change::ReplaceRecord { expect, value };
        given.start(update.clone()).await.unwrap().unwrap();
        assert_eq!(kind(&given.start(update).await.unwrap()), "stale");
        let delete = Change::DeleteRecord {
            name: x.name.clone(),
            expect: None,
        };
        given.start(delete).await.unwrap().unwrap();
        x = later_record(&x, round * 10 + 1);
    }
    assert_eq!(kinds(others).await, ["done"; 200]);
    given.database.remove().await;
}
