//! Migrations beside servers that read and write, and after processes that were killed. The
//! migrations are of these tests alone.

use std::time::Instant;

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use super::*;
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, refusal},
        tests::postgres_server,
    },
    driver::{options::Schema, postgres::place},
};

const BASELINE: Migration = Migration {
    version: 1,
    title: "baseline",
    sqlite: "",
    postgres: MIGRATIONS[0].postgres,
};
const COLUMN: Migration = Migration {
    version: 2,
    title: "column",
    sqlite: "",
    postgres: "ALTER TABLE records ADD COLUMN extra BIGINT;",
};
const INDEXES: Migration = Migration {
    version: 3,
    title: "indexes",
    sqlite: "",
    postgres: "-- no-transaction\n\
               -- Found by what a later release asks.\n\
               CREATE INDEX CONCURRENTLY records_by_extra ON records (extra);\n\
               CREATE INDEX CONCURRENTLY results_by_uid ON results (uid);\n",
};
static WITH_COLUMN: [Migration; 2] = [BASELINE, COLUMN];
static WITH_INDEXES: [Migration; 3] = [BASELINE, COLUMN, INDEXES];

/// Waits for locks as briefly as a test likes, and for ever.
const BRIEF: Locks = Locks {
    wait: Duration::from_millis(100),
    tries: u32::MAX,
    pause: Duration::from_millis(50),
};

/// A database with the baseline, and a connection to it.
async fn given() -> Option<(PostgresDatabase, PgConnection)> {
    let database = PostgresDatabase::fresh(&postgres_server()?).await;
    World::open(&database.url()).await.maintenance.close().await;
    let connection = connect(&database).await;
    Some((database, connection))
}

async fn connect(database: &PostgresDatabase) -> PgConnection {
    let options: PgConnectOptions = database.url().parse().unwrap();
    options.connect().await.unwrap()
}

async fn apply_to(
    database: &PostgresDatabase,
    all: &'static [Migration],
    locks: Locks,
) -> Result<Vec<i64>, Error> {
    let (_, place) = place::options(&database.url()).unwrap();
    apply(&mut connect(database).await, &place, all, locks).await
}

async fn is(connection: &mut PgConnection, question: &'static str) -> bool {
    let answer = sqlx::query_scalar(question).fetch_one(connection).await;
    answer.unwrap()
}

/// Waits until the database says yes.
async fn until(connection: &mut PgConnection, question: &'static str) {
    while !is(connection, question).await {
        tokio::task::yield_now().await;
    }
}

const IS_WAITING: &str = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted \
    AND mode = 'AccessExclusiveLock' AND relation = 'records'::regclass)";
const IS_HALF_MADE: &str = "SELECT EXISTS (SELECT 1 FROM pg_index WHERE NOT indisvalid \
    AND indexrelid = to_regclass('records_by_extra'))";

#[tokio::test]
async fn a_migration_that_waits_for_a_reader_blocks_others_for_a_moment() {
    let Some((database, mut beside)) = given().await else {
        return;
    };
    let mut reader = connect(&database).await;
    let long = "BEGIN; SELECT count(*) FROM records";
    sqlx::raw_sql(long).execute(&mut reader).await.unwrap();
    let (migrating, serving) = tokio::join!(apply_to(&database, &WITH_COLUMN, BRIEF), async {
        let mut longest = Duration::ZERO;
        for _ in 0..3 {
            // The migration waits, and whoever comes queues up behind it.
            until(&mut beside, IS_WAITING).await;
            let asked = Instant::now();
            beside
                .execute("SELECT 1 FROM records LIMIT 1")
                .await
                .unwrap();
            longest = longest.max(asked.elapsed());
        }
        reader.execute("COMMIT").await.unwrap();
        longest
    });
    assert_eq!(migrating.unwrap(), [2]);
    assert!(serving < Duration::from_secs(1), "{serving:?}");
    assert!(LOCKS.wait <= Duration::from_secs(1));
    database.remove().await;
}

#[tokio::test]
async fn a_migration_gives_up_in_the_end_and_is_done_the_next_time() {
    let Some((database, mut reader)) = given().await else {
        return;
    };
    let long = "BEGIN; SELECT count(*) FROM records";
    sqlx::raw_sql(long).execute(&mut reader).await.unwrap();
    let twice = Locks { tries: 2, ..BRIEF };
    let error = apply_to(&database, &WITH_COLUMN, twice).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("pg_locks"), "{error}");
    reader.execute("COMMIT").await.unwrap();
    assert_eq!(apply_to(&database, &WITH_COLUMN, twice).await.unwrap(), [2]);
    database.remove().await;
}

#[tokio::test]
async fn indexes_are_made_while_others_write_and_again_after_the_process_was_killed() {
    let Some((database, mut writer)) = given().await else {
        return;
    };
    let mut beside = connect(&database).await;
    apply_to(&database, &WITH_COLUMN, BRIEF).await.unwrap();
    // The index waits for this transaction; nobody waits for the index.
    let open = "BEGIN; INSERT INTO results (parent, id, uid, etag, create_us, update_us, \
                annotations) VALUES ('p', 'r', 'u', '', 1, 1, '{}'); LOCK TABLE records IN ROW \
                EXCLUSIVE MODE";
    sqlx::raw_sql(open).execute(&mut writer).await.unwrap();
    let kill = async {
        until(&mut beside, IS_HALF_MADE).await;
        let write = "INSERT INTO secrets VALUES ('s', ''); UPDATE records SET extra = 1";
        sqlx::raw_sql(write).execute(&mut beside).await.unwrap();
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                    datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%'";
        beside.execute(kill).await.unwrap();
    };
    let (killed, ()) = tokio::join!(apply_to(&database, &WITH_INDEXES, BRIEF), kill);
    assert!(matches!(killed.unwrap_err(), Error::Unavailable { .. }));
    assert!(is(&mut beside, IS_HALF_MADE).await);
    writer.execute("COMMIT").await.unwrap();

    let applied = apply_to(&database, &WITH_INDEXES, BRIEF).await.unwrap();
    assert_eq!(applied, [3]);
    let valid = "SELECT count(*) = 2 FROM pg_index WHERE indisvalid AND indexrelid IN \
                 ('records_by_extra'::regclass, 'results_by_uid'::regclass)";
    assert!(is(&mut beside, valid).await);
    let none = apply_to(&database, &WITH_INDEXES, BRIEF).await.unwrap();
    assert_eq!(none, [0_i64; 0]);
    database.remove().await;
}

#[tokio::test]
async fn what_belongs_to_extensions_and_views_is_no_other_program() {
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let mut connection = connect(&database).await;
    // As `CREATE EXTENSION` leaves it, without one that must be installed.
    let make = "CREATE VIEW answers AS SELECT 42; CREATE TABLE of_extension (x BIGINT); \
                INSERT INTO pg_depend SELECT 'pg_class'::regclass, 'of_extension'::regclass, 0, \
                'pg_extension'::regclass, oid, 0, 'e' FROM pg_extension LIMIT 1";
    sqlx::raw_sql(make).execute(&mut connection).await.unwrap();
    World::open(&database.url()).await.maintenance.close().await;
    database.remove().await;

    let database = PostgresDatabase::fresh(&server).await;
    let mut connection = connect(&database).await;
    let make = "CREATE TABLE parts (x BIGINT) PARTITION BY RANGE (x)";
    connection.execute(make).await.unwrap();
    let why = refusal(&database.url(), Schema::Migrate).await;
    assert!(why.contains("it has the table `parts`"), "{why}");
    database.remove().await;
}
