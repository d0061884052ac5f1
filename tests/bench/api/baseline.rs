//! What is compared with: one row, one commit, without a server between.

use std::time::Instant;

use futures::{StreamExt as _, stream};
use sqlx::{
    Connection as _, Executor as _, PgConnection, postgres::PgPoolOptions,
    sqlite::SqlitePoolOptions,
};

use crate::{
    corpus::Run,
    measure::{Figures, Timed},
    server::Database,
};

const TABLE: &str = "CREATE TABLE baseline (name TEXT PRIMARY KEY, data JSONB NOT NULL)";
const INSERT: &str = "INSERT INTO baseline (name, data) VALUES ($1, $2)";

/// Inserts every run by itself, `callers` at once, into a plain table of the same database.
pub async fn inserts(
    database: &Database,
    runs: &[Run],
    callers: usize,
    label: &str,
    figures: &mut Figures,
) {
    let most = u32::try_from(callers).unwrap();
    let mut timed;
    macro_rules! run {
        ($pool:expr, $insert:expr) => {{
            let pool = $pool;
            pool.execute(TABLE).await.unwrap();
            timed = Timed::start(runs.len());
            let mut calls = stream::iter(runs)
                .map(|run| {
                    let pool = pool.clone();
                    let data = String::from_utf8(run.value.clone()).unwrap();
                    async move {
                        let began = Instant::now();
                        sqlx::query($insert)
                            .bind(run.name())
                            .bind(data)
                            .execute(&pool)
                            .await
                            .unwrap();
                        began.elapsed()
                    }
                })
                .buffer_unordered(callers);
            while let Some(took) = calls.next().await {
                timed.add(took);
            }
            drop(calls);
            timed.finish();
            let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM baseline")
                .fetch_one(&pool)
                .await
                .unwrap();
            assert_eq!(usize::try_from(rows).unwrap(), runs.len());
            pool.close().await;
        }};
    }
    match database {
        Database::Sqlite(_) => {
            let options: sqlx::sqlite::SqliteConnectOptions = database.url().parse().unwrap();
            let options = options
                .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
                .synchronous(sqlx::sqlite::SqliteSynchronous::Full);
            run!(
                SqlitePoolOptions::new()
                    .max_connections(1)
                    .connect_with(options)
                    .await
                    .unwrap(),
                INSERT
            );
        }
        Database::Postgres { .. } => run!(
            PgPoolOptions::new()
                .max_connections(most)
                .connect(&database.url())
                .await
                .unwrap(),
            "INSERT INTO baseline (name, data) VALUES ($1, $2::jsonb)"
        ),
    }
    figures.timed(label, "baseline_one_row_commit", &timed, callers);
}

/// Rows of one COPY.
const COPIED: usize = 500;

/// Copies every run, many rows at a time, into a plain table of the same PostgreSQL: nothing that
/// keeps the payloads in tables can be faster.
pub async fn copies(database: &Database, runs: &[Run], figures: &mut Figures) {
    if !matches!(database, Database::Postgres { .. }) {
        return;
    }
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let table = "CREATE TABLE copied (name TEXT PRIMARY KEY, data JSONB NOT NULL)";
    connection.execute(table).await.unwrap();
    let mut timed = Timed::start(runs.len());
    for batch in runs.chunks(COPIED) {
        let mut text = Vec::new();
        for run in batch {
            text.extend_from_slice(run.name().as_bytes());
            text.push(b'\t');
            for byte in &run.value {
                match byte {
                    b'\\' => text.extend_from_slice(b"\\\\"),
                    byte => text.push(*byte),
                }
            }
            text.push(b'\n');
        }
        let mut copy = connection
            .copy_in_raw("COPY copied FROM STDIN")
            .await
            .unwrap();
        copy.send(text).await.unwrap();
        copy.finish().await.unwrap();
    }
    timed.finish();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM copied")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(usize::try_from(rows).unwrap(), runs.len());
    figures.timed(database.label(), "limit_copy", &timed, 1);
}
