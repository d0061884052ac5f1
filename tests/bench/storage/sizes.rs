//! Bytes on disk for each run, everything but the log included.

use std::path::Path;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, Row,
    postgres::{PgConnectOptions, PgConnection},
    sqlite::SqliteConnectOptions,
};

use crate::corpus::Corpus;

/// A line for machines; fails where a run takes more bytes than it may.
fn judge(database: &str, corpus: &Corpus, bytes: i64, most: i64) {
    let records = corpus.shape.tasks + 1;
    println!(
        "{}",
        serde_json::json!({"bench": "storage", "database": database, "records_per_run": records,
            "runs": corpus.runs, "bytes_per_run": bytes, "most": most})
    );
    // Below so many runs what a database has when it is empty counts for much.
    assert!(
        bytes <= most || corpus.runs < 1_000,
        "{database}: a run of {records} records takes {bytes} bytes, more than {most}"
    );
}

pub(crate) async fn sqlite(path: &Path, corpus: &Corpus) {
    let file = SqliteConnectOptions::new().filename(path);
    let mut store = file.connect().await.unwrap();
    let runs = i64::try_from(corpus.runs).unwrap();
    store
        .execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    let parts = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC";
    for row in sqlx::query(parts).fetch_all(&mut store).await.unwrap() {
        let (name, bytes): (String, i64) = (row.get(0), row.get(1));
        println!("    {name}: {} bytes a run", bytes / runs);
    }
    let size = || i64::try_from(std::fs::metadata(path).unwrap().len()).unwrap() / runs;
    let before = size();
    store.execute("VACUUM").await.unwrap();
    store
        .execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    println!(
        "SQLite: {before} bytes a run as written, {} after VACUUM",
        size()
    );
    judge("SQLite", corpus, before, corpus.shape.most[1]);
}

/// Bytes of all tables with their indexes, but for the changes that followers may ask for, which are
/// those of the last day however many runs there are. They are printed by themselves.
async fn all(connection: &mut PgConnection) -> i64 {
    let sum = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
               WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
                   AND relname NOT LIKE 'changes%'";
    let row = sqlx::query(sum).fetch_one(connection).await.unwrap();
    row.get(0)
}

pub(crate) async fn postgres(options: &PgConnectOptions, corpus: &Corpus) {
    let mut connection = options.connect().await.unwrap();
    let runs = i64::try_from(corpus.runs).unwrap();
    let before = all(&mut connection).await / runs;
    connection.execute("VACUUM ANALYZE").await.unwrap();
    let parts = "SELECT relname::text, pg_relation_size(oid) FROM pg_class
                 WHERE relkind IN ('r', 't', 'i') AND relnamespace <> 'pg_catalog'::regnamespace
                   AND pg_relation_size(oid) > 65536 ORDER BY 2 DESC";
    for row in sqlx::query(parts).fetch_all(&mut connection).await.unwrap() {
        let (name, bytes): (String, i64) = (row.get(0), row.get(1));
        println!("    {name}: {} bytes a run", bytes / runs);
    }
    let after = all(&mut connection).await / runs;
    println!("PostgreSQL: {before} bytes a run as written, {after} after VACUUM");
    let name = options.get_database().unwrap();
    let reindex = format!("REINDEX DATABASE {name}");
    connection.execute(AssertSqlSafe(reindex)).await.unwrap();
    let packed = all(&mut connection).await / runs;
    println!("PostgreSQL: {packed} bytes a run after REINDEX");
    judge("PostgreSQL", corpus, after, corpus.shape.most[0]);
}
