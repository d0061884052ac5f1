//! What is compared with: the same payloads in plain tables, written as fast as the databases
//! take them.

use std::{path::Path, sync::Arc, time::Instant};

use sqlx::{
    ConnectOptions, Executor, Row,
    postgres::{PgConnectOptions, PgPoolCopyExt, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{BATCH, WRITERS, corpus::Corpus, per_second};

pub(crate) async fn sqlite(path: &Path, corpus: &Corpus) {
    let file = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .page_size(8192)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut plain = file.connect().await.unwrap();
    plain
        .execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, data TEXT)")
        .await
        .unwrap();
    let payloads = corpus.payloads();
    let began = Instant::now();
    for batch in payloads.chunks(BATCH) {
        plain.execute("BEGIN").await.unwrap();
        for payload in batch {
            let insert = sqlx::query("INSERT INTO plain (data) VALUES ($1)").bind(*payload);
            insert.execute(&mut plain).await.unwrap();
        }
        plain.execute("COMMIT").await.unwrap();
    }
    let rate = per_second(payloads.len(), began);
    println!("SQLite, plain text, no index but the key: {rate:.0} records/s in batches of {BATCH}");
    plain
        .execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    let size = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    println!("SQLite, plain text: {} bytes a run", size / corpus.runs);
}

pub(crate) async fn postgres(options: &PgConnectOptions, corpus: &Corpus) {
    let pool = PgPoolOptions::new()
        .min_connections(16)
        .max_connections(16)
        .connect_with(options.clone())
        .await
        .unwrap();
    for table in ["copied", "single"] {
        let make = format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, data JSONB)");
        pool.execute(sqlx::AssertSqlSafe(make)).await.unwrap();
    }
    let payloads: Arc<Vec<String>> =
        Arc::new(corpus.payloads().into_iter().map(str::to_owned).collect());

    let began = Instant::now();
    for (number, batch) in payloads.chunks(BATCH).enumerate() {
        let mut text = String::new();
        for (at, payload) in batch.iter().enumerate() {
            let escaped = payload.replace('\\', "\\\\");
            text.push_str(&format!("{}\t{escaped}\n", number * BATCH + at));
        }
        let mut copy = pool.copy_in_raw("COPY copied FROM STDIN").await.unwrap();
        copy.send(text.as_bytes()).await.unwrap();
        copy.finish().await.unwrap();
    }
    let rate = per_second(payloads.len(), began);
    println!("PostgreSQL, COPY into jsonb: {rate:.0} records/s in batches of {BATCH}");

    let began = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (pool, payloads) = (pool.clone(), Arc::clone(&payloads));
            tokio::spawn(async move {
                let mut connection = pool.acquire().await.unwrap();
                for at in (writer..payloads.len()).step_by(WRITERS) {
                    let insert = sqlx::query("INSERT INTO single VALUES ($1, $2::jsonb)")
                        .bind(i64::try_from(at).unwrap())
                        .bind(&payloads[at]);
                    insert.execute(&mut *connection).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let rate = per_second(payloads.len(), began);
    println!("PostgreSQL, plain jsonb: {rate:.0} commits/s of one record by {WRITERS} connections");
    pool.execute("VACUUM").await.unwrap();
    let size = sqlx::query("SELECT pg_total_relation_size('copied'), count(*) FROM copied");
    let row = size.fetch_one(&pool).await.unwrap();
    assert_eq!(row.get::<i64, _>(1), i64::try_from(payloads.len()).unwrap());
    let size = row.get::<i64, _>(0) / i64::try_from(corpus.runs).unwrap();
    println!("PostgreSQL, plain jsonb: {size} bytes a run");
    pool.close().await;
}
