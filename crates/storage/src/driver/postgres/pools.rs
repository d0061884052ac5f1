//! What may take long has connections of its own, and an end.

use std::{num::NonZeroU32, time::Duration};

use sqlx::Executor;

use super::{Postgres, errors::classify, open, together::each};
use crate::{
    codec::row::PreparedChange,
    conformance::{
        backends::{Database as _, PostgresDatabase},
        fixtures::{everything, record, result},
        tests::postgres_server,
    },
    driver::options::{Options, Schema},
    seam::{Change, Error, ListQuery, Maintenance as _, Store as _},
    store::{SqlStore, resolve::over},
};
use hindsight_filter::{Order, condition::Column};
use hindsight_runtime::error::{ErrorKind, HasKind as _};

async fn opened(options: Options) -> Option<(SqlStore<Postgres>, PostgresDatabase)> {
    let database = PostgresDatabase::fresh(&postgres_server()?).await;
    let (db, _) = open(&database.url(), &options).await.unwrap();
    Some((over(db, &options).await.unwrap(), database))
}

#[tokio::test]
async fn ten_long_statements_leave_writes_and_readiness_answering() {
    let options = Options {
        max_connections: NonZeroU32::new(10).unwrap(),
        schema: Schema::Migrate,
        wait: Duration::from_secs(2),
        ..Options::default()
    };
    let Some((store, database)) = opened(options).await else {
        return;
    };
    let mut long = Vec::new();
    for _ in 0..10 {
        let pool = store.db.long.inner().clone();
        long.push(tokio::spawn(async move {
            pool.execute("SELECT pg_sleep(600)").await.map(drop)
        }));
    }
    let at_work = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                   query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    loop {
        let count = sqlx::query_scalar::<_, i64>(at_work);
        if count.fetch_one(store.db.pool.inner()).await.unwrap() == 4 {
            break;
        }
    }
    let sorted = ListQuery {
        order: Order::by(Column::Outcome, true),
        ..everything()
    };
    let refused = store.list_records(&sorted).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");

    let new = Change::InsertResult(result("a/results/r", 0));
    store.commit(&new.into()).await.unwrap();
    let new = record(
        "a/results/r/records/x",
        1,
        &serde_json::json!({"kind": "TaskRun"}),
    );
    store
        .commit(&Change::InsertRecord(new.clone()).into())
        .await
        .unwrap();
    assert_eq!(store.record(&new.name).await.unwrap(), Some(new));
    assert_eq!(store.list_records(&everything()).await.unwrap().len(), 1);
    store.ping().await.unwrap();
    for one in long {
        one.abort();
    }
    database.remove().await;
}

#[tokio::test]
async fn a_statement_that_takes_longer_than_it_may_is_ended_and_said_to_be_too_slow() {
    let options = Options {
        schema: Schema::Migrate,
        statement_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let Some((store, database)) = opened(options).await else {
        return;
    };
    for pool in [store.db.pool.inner(), store.db.long.inner()] {
        let error = pool.execute("SELECT pg_sleep(600)").await.unwrap_err();
        let error = classify("sleeping", error);
        assert!(matches!(error, Error::TooSlow { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            error.to_string().contains("db_statement_timeout"),
            "{error}"
        );
    }
    store.close().await;
    database.remove().await;
}

#[tokio::test]
async fn a_lock_that_was_waited_for_in_vain_may_be_had_another_time() {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let Some((store, database)) = opened(options).await else {
        return;
    };
    let mut holder = store.db.pool.inner().begin().await.unwrap();
    holder.execute("LOCK TABLE indexed_paths").await.unwrap();
    let mut other = store.db.pool.inner().begin().await.unwrap();
    let wait = "SET LOCAL lock_timeout = '10ms'; SELECT count(*) FROM indexed_paths";
    let error = sqlx::raw_sql(wait).execute(&mut *other).await.unwrap_err();
    let error = classify("looking", error);
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    other.rollback().await.unwrap();
    holder.rollback().await.unwrap();
    store.close().await;
    database.remove().await;
}

#[tokio::test]
async fn a_connection_that_broke_is_not_lent_again() {
    let options = Options {
        max_connections: NonZeroU32::new(2).unwrap(),
        schema: Schema::Migrate,
        ..Options::default()
    };
    let Some((store, database)) = opened(options).await else {
        return;
    };
    let mut lease = store.db.pool.acquire().await.unwrap();
    let number = sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()");
    let number = number.fetch_one(&mut *lease).await.unwrap();
    lease.give_back();
    let end = sqlx::query("SELECT pg_terminate_backend($1, 10000)").bind(number);
    end.execute(store.db.long.inner()).await.unwrap();
    let new = [PreparedChange::InsertResult(result("a/results/r", 0))];
    let refused = each(&store.db.pool, &new).await;
    assert!(
        matches!(refused[0], Err(Error::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(matches!(each(&store.db.pool, &new).await[0], Ok(())));
    store.close().await;
    database.remove().await;
}
