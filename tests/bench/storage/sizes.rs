//! Bytes on disk for each run, everything but the log included.

use std::path::Path;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Executor, Row,
    postgres::{PgConnectOptions, PgConnection},
    sqlite::SqliteConnectOptions,
};

use crate::corpus::Corpus;

/// Prints a line for machines, and says where a run takes more bytes than it may. `changes` are the bytes of the changes
/// that followers may ask for, which are those of the last day however many runs there are.
fn judge(
    database: &str,
    corpus: &Corpus,
    (bytes, changes): (i64, i64),
    most: i64,
) -> Option<String> {
    let records = corpus.shape.tasks + 1;
    println!(
        "{}",
        serde_json::json!({"bench": "storage", "database": database, "records_per_run": records,
            "runs": corpus.runs, "bytes_per_run": bytes, "changes_per_run": changes, "most": most})
    );
    // Below so many runs what a database has when it is empty counts for much.
    (bytes > most && corpus.runs >= 1_000).then(|| {
        format!("{database}: a run of {records} records takes {bytes} bytes, more than {most}")
    })
}

pub(crate) async fn sqlite(path: &Path, corpus: &Corpus) -> Option<String> {
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
    let kept = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = 'changes'";
    let kept: i64 = sqlx::query_scalar(kept)
        .fetch_one(&mut store)
        .await
        .unwrap();
    let size = || i64::try_from(std::fs::metadata(path).unwrap().len()).unwrap() / runs;
    let before = size();
    store.execute("VACUUM").await.unwrap();
    store
        .execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    println!(
        "SQLite: {before} bytes a run as written, {} after VACUUM; {} of them are changes of the last day",
        size(),
        kept / runs
    );
    judge(
        "SQLite",
        corpus,
        (before, kept / runs),
        corpus.shape.most[1],
    )
}

/// Bytes of all tables with their indexes but for the changes that followers may ask for, and bytes of these.
async fn all(connection: &mut PgConnection) -> (i64, i64) {
    let sum =
        "SELECT sum(size) FILTER (WHERE NOT kept)::bigint, sum(size) FILTER (WHERE kept)::bigint
               FROM (SELECT pg_total_relation_size(oid) AS size,
                         relname IN ('changes', 'changes_floor') AS kept
                     FROM pg_class
                     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace) AS tables";
    let row = sqlx::query(sum).fetch_one(connection).await.unwrap();
    (row.get(0), row.get(1))
}

pub(crate) async fn postgres(options: &PgConnectOptions, corpus: &Corpus) -> Option<String> {
    let mut connection = options.connect().await.unwrap();
    let runs = i64::try_from(corpus.runs).unwrap();
    let before = all(&mut connection).await.0 / runs;
    connection.execute("VACUUM ANALYZE").await.unwrap();
    let parts = "SELECT relname::text, pg_relation_size(oid) FROM pg_class
                 WHERE relkind IN ('r', 't', 'i') AND relnamespace <> 'pg_catalog'::regnamespace
                   AND pg_relation_size(oid) > 65536 ORDER BY 2 DESC";
    for row in sqlx::query(parts).fetch_all(&mut connection).await.unwrap() {
        let (name, bytes): (String, i64) = (row.get(0), row.get(1));
        println!("    {name}: {} bytes a run", bytes / runs);
    }
    let (after, kept) = all(&mut connection).await;
    let (after, kept) = (after / runs, kept / runs);
    println!(
        "PostgreSQL: {before} bytes a run as written, {after} after VACUUM; beside them {kept} of changes of \
         the last day"
    );
    let name = options.get_database().unwrap();
    let reindex = format!("REINDEX DATABASE {name}");
    connection.execute(AssertSqlSafe(reindex)).await.unwrap();
    let packed = all(&mut connection).await.0 / runs;
    println!("PostgreSQL: {packed} bytes a run after REINDEX");
    judge("PostgreSQL", corpus, (after, kept), corpus.shape.most[0])
}
