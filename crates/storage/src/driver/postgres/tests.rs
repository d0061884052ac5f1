//! What is true of the PostgreSQL store alone: its refusals, its schema, its plans.

mod feed;
mod moves;
mod plans;

use std::{num::NonZeroU32, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, Row,
    postgres::{PgConnectOptions, PgConnection},
};

use super::{
    bind::query,
    open::{misfit, open_within},
    pool::Pool,
    reader::{PooledReader, WATCHED},
};
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, is_migrated_once, refusal},
        fixtures::{assert_same_groups, everything, kind, result},
        tests::postgres_server,
    },
    driver::{
        Database as _, Work,
        migrations::MIGRATIONS,
        options::{Options, Schema, Synchronous},
    },
    seam::{AggregateQuery, Change, Error, GroupKey, Priority, Quantity, Summed},
    sql::{aggregate, dialect::Dialect},
    store::{resolve::open, sum::parts},
};
use hindsight_filter::condition::{Column, Condition, ObjectField};
use hindsight_filter::measure::{Calendar, Depth, Unit};

async fn connect(database: &impl Database) -> PgConnection {
    let options: PgConnectOptions = database.url().parse().unwrap();
    options.connect().await.unwrap()
}

#[tokio::test]
async fn a_new_database_is_migrated_once_by_many() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    is_migrated_once(&database.url()).await;
    database.remove().await;
}

#[tokio::test]
async fn migrating_takes_as_long_as_it_takes() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let url = database.url();
    let mut other = connect(&database).await;
    other
        .execute("SELECT pg_advisory_lock(7523377931047921512)")
        .await
        .unwrap();
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let answer = Duration::from_millis(500);
    let opening = tokio::spawn(async move { open_within(&url, &options, answer).await });
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
                 AND query LIKE 'SELECT pg_try_advisory_lock%')";
    while !sqlx::query_scalar::<_, bool>(waits)
        .fetch_one(&mut other)
        .await
        .unwrap()
    {
        tokio::task::yield_now().await;
    }
    // Longer than the database has to answer.
    tokio::time::sleep(answer * 2).await;
    assert!(!opening.is_finished(), "it was given up");
    other.close().await.unwrap();
    let (store, opened) = opening.await.unwrap().unwrap();
    assert_eq!(opened.applied.len(), MIGRATIONS.len());
    store.close().await;
    database.remove().await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_named_without_its_password() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let url = format!("postgres://me:pa55word@127.0.0.1:{port}/history");
    let error = open(&url, &Options::default()).await.unwrap_err();
    let Error::Unavailable { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(
        source.to_string(),
        format!("the PostgreSQL database `history` at 127.0.0.1:{port} does not answer")
    );
    assert!(source.source().is_some(), "the driver's word is kept");
    assert!(!format!("{error:?}").contains("pa55word"), "{error:?}");
    let why = refusal("postgres://me:pa55word@host:port/x", Schema::Require).await;
    assert!(!why.contains("pa55word"), "{why}");
}

#[tokio::test]
async fn what_cannot_be_opened_is_refused_with_the_remedy() {
    let Some(server) = postgres_server() else {
        return;
    };
    let url = |options: PgConnectOptions| options.to_url_lossy().to_string();
    let why = refusal(&url(server.clone().password("wrong")), Schema::Require).await;
    assert!(why.contains("refuses the user `"), "{why}");
    assert!(why.ends_with("check user and password"), "{why}");
    let why = refusal(&url(server.clone().database("hs_none")), Schema::Require).await;
    assert!(
        why.ends_with("does not exist; make it with `createdb`"),
        "{why}"
    );

    let database = PostgresDatabase::fresh(&server).await;
    let why = refusal(&database.url(), Schema::Require).await;
    assert!(why.ends_with("run `hindsight migrate`"), "{why}");
    let mut connection = connect(&database).await;
    connection
        .execute("CREATE TABLE wp_posts (id BIGINT)")
        .await
        .unwrap();
    for schema in [Schema::Require, Schema::Migrate] {
        let why = refusal(&database.url(), schema).await;
        assert!(
            why.contains("belongs to another program: it has the table `wp_posts`"),
            "{why}"
        );
    }
    connection.execute("DROP TABLE wp_posts").await.unwrap();
    World::open(&database.url()).await.maintenance.close().await;
    let add = "INSERT INTO hindsight_schema (version, title, sha256) VALUES (99, 'x', '')";
    connection.execute(add).await.unwrap();
    for schema in [Schema::Require, Schema::Migrate] {
        let why = refusal(&database.url(), schema).await;
        assert!(why.contains("has schema version 99"), "{why}");
    }
    database.remove().await;
}

#[tokio::test]
async fn an_encoding_that_cannot_hold_every_text_is_refused() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh_with(
        &server,
        "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    )
    .await;
    let why = refusal(&database.url(), Schema::Migrate).await;
    assert!(why.contains("has the encoding SQL_ASCII"), "{why}");
    database.remove().await;
}

/// Rows enough that reading them all would not be the cheapest plan.
const MANY: &str = "
    INSERT INTO results (parent, id, uid, etag, create_us, update_us, annotations,
                         summary_record, summary_start_us, summary_end_us)
      SELECT 'p' || i % 20, i::text::bytea, i::text::bytea, i::text, 1767225600000000 + i,
             1767225600000000 + i, '{}', 'r', CASE WHEN i % 3 > 0 THEN 1767225600000000 + i END,
             CASE WHEN i % 3 > 0 THEN 1767225600000000 + i END
      FROM generate_series(1, 20000) AS i;
    INSERT INTO records (result_row, parent, id, uid, etag, create_us, update_us,
                         data_type, object_uid, object_name)
      SELECT row_id, parent, i::text::bytea, i::text::bytea, i::text, 1767225600000000 + i,
             1767225600000000 + i,
             CASE WHEN i % 2 = 0 THEN E'\\x01\\x10' ELSE 'tekton.dev/v1.Other' END,
             i::text::bytea, i::text
      FROM generate_series(1, 20000) AS i JOIN results ON id = (i % 200 + 1)::text::bytea;
    ANALYZE;";

#[test]
fn what_is_too_old_is_refused_with_the_remedy() {
    let old = misfit("UTF8", 130_014, "13.14").unwrap();
    assert!(
        old.contains("13.14") && old.contains("14 or later"),
        "{old}"
    );
    assert_eq!(misfit("UTF8", 140_000, "14.0"), None);
    assert!(
        misfit("LATIN1", 150_000, "15.0")
            .unwrap()
            .contains("LATIN1")
    );
}

/// Pipelines, in an index that holds what is asked of them, and labels, in none. Rows are wide,
/// so that the index is read and not they.
const RUNS: &str = "
    UPDATE records SET object_creation_us = create_us + id_text(id)::bigint % 40 * 86400000000,
        object_start_us = create_us, object_completion_us = create_us + id_text(id)::bigint % 977 * 1000000,
        object_pipeline_ref = 'pipeline-' || id_text(id)::bigint % 5,
        labels = jsonb_build_object('team', 'team-' || id_text(id)::bigint % 3, 'wide', repeat('-', 1000))
    WHERE id_text(id)::bigint % 7 > 0;
    VACUUM (FULL, ANALYZE) records;
    VACUUM records;";

#[tokio::test]
async fn parts_of_a_sum_are_the_whole() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let two = World::open(&database.url()).await;
    let mut connection = connect(&database).await;
    for statements in [MANY, RUNS] {
        for statement in statements.split_inclusive(';') {
            connection.execute(statement).await.unwrap();
        }
    }
    // With one connection there is no other to divide the work with.
    let options = Options {
        max_connections: NonZeroU32::MIN,
        ..Options::default()
    };
    let one = open(&database.url(), &options).await.unwrap();
    let day = GroupKey::Bucket(
        Column::Object(ObjectField::CreationTime),
        Calendar::utc(Unit::Day),
    );
    for (keys, count) in [
        (vec![GroupKey::Column(Column::Pipeline), day.clone()], 9),
        (vec![GroupKey::Column(Column::Label("team".into())), day], 8),
    ] {
        let asked = AggregateQuery {
            scope: "-/results/-".parse().unwrap(),
            condition: Condition::All,
            keys,
            counts: Vec::new(),
            amounts: vec![Summed {
                of: Quantity::Value(Column::Duration),
                depth: Depth::Values,
            }],
            priority: Priority::Normal,
        };
        let bounds = aggregate::bounds(Dialect::Postgres, &asked).unwrap();
        let row = query(&bounds).fetch_one(&mut connection).await.unwrap();
        let plans = aggregate::plans(Dialect::Postgres, &asked, Some(&row)).unwrap();
        let (db, _) = super::open(&database.url(), &options).await.unwrap();
        let reader = db.reader(Work::Scan, Priority::Normal, "asking").await;
        let mut reader = reader.unwrap();
        let parts = parts(&mut *reader, &plans[0]).await.unwrap().unwrap();
        reader.release().await;
        assert_eq!(parts.len(), count, "{:#?}", plans[0]);
        let whole = one.store.aggregate(&asked).await.unwrap();
        assert_same_groups(&two.store.aggregate(&asked).await.unwrap(), &whole, &asked);
        let rows: u64 = whole.iter().map(|group| group.sums.rows).sum();
        assert_eq!(rows, 20_000);
    }
    one.maintenance.close().await;
    two.maintenance.close().await;
    database.remove().await;
}

#[tokio::test]
async fn a_new_database_is_told_that_it_grows() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    let results = (0..600).map(|at| Change::InsertResult(result(&format!("a/results/{at}"), at)));
    let outcomes = world.store.commit_each(&results.collect::<Vec<_>>()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    let mut connection = connect(&database).await;
    let known = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'results'::regclass";
    let row = sqlx::query(known).fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 600);
    world.maintenance.close().await;
    database.remove().await;
}

#[tokio::test]
async fn lost_connections_are_replaced() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let world = World::open(&database.url()).await;
    let writers: Vec<_> = (0..8)
        .map(|at| world.start(Change::InsertResult(result(&format!("a/results/{at}"), at))))
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let mut other = server.connect().await.unwrap();
    let kill = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = ";
    let kill = AssertSqlSafe(format!("{kill}'{}'", database.name()));
    other.execute(kill).await.unwrap();
    // Each connection that was lost may cost one call an error, and none an empty answer.
    let mut errors = 0;
    while let Err(error) = world.store.list_results(&everything()).await {
        assert_eq!(kind(&Err(error)), "unavailable");
        errors += 1;
        assert!(errors <= 8, "the pool does not recover");
    }
    assert_eq!(
        world.store.list_results(&everything()).await.unwrap().len(),
        8
    );
    world
        .given([Change::InsertResult(result("a/results/new", 9))])
        .await;
    world.maintenance.close().await;
    database.remove().await;
}

#[tokio::test]
async fn commits_are_durable_where_the_default_is_not() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let mut connection = connect(&database).await;
    let loose = format!(
        "ALTER DATABASE {} SET synchronous_commit = off",
        database.name()
    );
    connection.execute(AssertSqlSafe(loose)).await.unwrap();
    for (wanted, level, weak) in [
        (Synchronous::Durable, "on", false),
        (Synchronous::Named("remote_apply"), "remote_apply", false),
        (Synchronous::Named("off"), "off", true),
    ] {
        let options = Options {
            schema: Schema::Migrate,
            synchronous: wanted,
            ..Options::default()
        };
        let (store, opening) = super::open(&database.url(), &options).await.unwrap();
        let row = sqlx::query("SHOW synchronous_commit")
            .fetch_one(store.pool.inner())
            .await
            .unwrap();
        assert_eq!(row.get::<String, _>(0), level);
        let told = opening
            .weak
            .iter()
            .any(|text| text.contains("`off`: writes"));
        assert_eq!(told, weak, "{opening:?}");
        store.pool.close().await;
    }
    database.remove().await;
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_ends_soon() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let pool = sqlx::postgres::PgPoolOptions::new()
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(WATCHED).await.map(drop) })
        })
        .connect(&database.url())
        .await
        .unwrap();
    let pool = Pool::new(pool);
    let mut lent = PooledReader::new(pool.acquire().await.unwrap(), "waiting");
    let asked = sqlx::query("SELECT pg_sleep(600)").execute(&mut *lent);
    let short = std::time::Duration::from_millis(50);
    tokio::time::timeout(short, asked).await.unwrap_err();
    drop(lent);
    let mut other = connect(&database).await;
    let ended = async {
        let ask = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()";
        while other.fetch_one(ask).await.unwrap().get::<i64, _>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, ended).await.unwrap();
    pool.close().await;
    drop(other);
    database.remove().await;
}
