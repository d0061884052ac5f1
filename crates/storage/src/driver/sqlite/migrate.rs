//! Looking at a file, bringing its schema up to date, and what else is written rarely: each on
//! a connection of its own.

use std::time::Duration;

use sqlx::{
    ConnectOptions, Connection, Executor, Row,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode},
};

use super::{
    errors::{classify, is_broken, is_busy},
    file::{BUSY, File},
};
use crate::{
    driver::migrations::{Applied, Found, needed},
    seam::Error,
    sql::dialect::Dialect,
};

/// Bytes in a page. Bodies have some 2 KiB; with pages of 4 KiB half of them would overflow.
const PAGE: u32 = 8192;

/// Connects. Turning WAL on is not covered by SQLite's own waiting, so that is done here.
pub(super) async fn connect(
    options: SqliteConnectOptions,
) -> Result<SqliteConnection, sqlx::Error> {
    const STEP: Duration = Duration::from_millis(50);
    let mut left = BUSY.as_millis() / STEP.as_millis();
    loop {
        match options.clone().disable_statement_logging().connect().await {
            Err(error) if is_busy(&error) && left > 0 => left -= 1,
            other => return other,
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Options for a connection that may write.
pub(super) fn writing(file: &File) -> SqliteConnectOptions {
    file.options()
        .page_size(PAGE)
        .journal_mode(SqliteJournalMode::Wal)
}

/// Looks at what is in the file and changes nothing.
pub(super) async fn look(file: &File) -> Result<Found, Error> {
    let unfit = |error: sqlx::Error| {
        if is_broken(&error) {
            Error::Incompatible(format!(
                "{file} is not a SQLite database, or is damaged ({error}); give another file or \
                 restore a backup"
            ))
        } else {
            classify("looking at the file", error)
        }
    };
    let mut connection = connect(file.options()).await.map_err(unfit)?;
    let found = found(&mut connection).await.map_err(unfit)?;
    if matches!(found, Found::Ours(_)) {
        // The first and last pages of each tree: a file that was cut short has lost some.
        let ends = "SELECT 1 FROM (SELECT min(row_id), max(row_id) FROM results) \
                    UNION ALL SELECT 1 FROM (SELECT min(row_id), max(row_id) FROM records) \
                    UNION ALL SELECT 1 FROM (SELECT min(record_row), max(record_row) FROM bodies)";
        connection.execute(ends).await.map_err(unfit)?;
    }
    connection.close().await.map_err(unfit)?;
    Ok(found)
}

pub(super) async fn found(connection: &mut SqliteConnection) -> Result<Found, sqlx::Error> {
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let tables: Vec<String> = sqlx::query(tables)
        .fetch_all(&mut *connection)
        .await?
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?;
    if !tables.iter().any(|table| table == "hindsight_schema") {
        let first = tables
            .into_iter()
            .find(|table| !table.starts_with("sqlite_"));
        return Ok(first.map_or(Found::Empty, Found::Foreign));
    }
    let applied = sqlx::query("SELECT version, sha256 FROM hindsight_schema ORDER BY version")
        .fetch_all(connection)
        .await?;
    let applied = applied
        .iter()
        .map(|row| {
            Ok(Applied {
                version: row.try_get(0)?,
                sha256: row.try_get(1)?,
            })
        })
        .collect::<Result<_, sqlx::Error>>()?;
    Ok(Found::Ours(applied))
}

/// Applies what is missing, in one transaction that begins by locking out other writers.
pub(super) async fn migrate(file: &File) -> Result<Vec<i64>, Error> {
    const WHAT: &str = "migrating";
    let failed = |error| classify(WHAT, error);
    let mut connection = connect(writing(file).create_if_missing(true))
        .await
        .map_err(failed)?;
    let mut tx = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(failed)?;
    let found = found(&mut tx).await.map_err(failed)?;
    let mut versions = Vec::new();
    for migration in needed(&found, Dialect::Sqlite, &file.to_string())? {
        tx.execute(migration.sql(Dialect::Sqlite))
            .await
            .map_err(failed)?;
        sqlx::query("INSERT INTO hindsight_schema (version, title, sha256) VALUES ($1, $2, $3)")
            .bind(migration.version)
            .bind(migration.title)
            .bind(migration.sha256(Dialect::Sqlite))
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        versions.push(migration.version);
    }
    tx.commit().await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    Ok(versions)
}

/// The secret of this name; `candidate` if there was none.
pub(super) async fn secret(file: &File, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error| classify("reading a secret", error);
    let mut connection = connect(file.options()).await.map_err(failed)?;
    sqlx::query("INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(name)
        .bind(candidate)
        .execute(&mut connection)
        .await
        .map_err(failed)?;
    let secret = sqlx::query("SELECT value FROM secrets WHERE name = $1")
        .bind(name)
        .fetch_one(&mut connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    connection.close().await.map_err(failed)?;
    Ok(secret)
}

/// Writes the file anew, so that nothing of what was deleted is left in it or in its log; says
/// what is left, if others use the file.
pub(super) async fn rewrite(file: &File) -> Result<Option<String>, Error> {
    let failed = |error| classify("writing the file anew", error);
    let in_use = || {
        format!(
            "{file} is in use: bytes of what was deleted stay in its free pages or its log until \
             `hindsight purge` is run again, best while no server uses the file"
        )
    };
    let mut connection = connect(writing(file)).await.map_err(failed)?;
    // FTS5 keeps what was deleted until it merges the parts of an index.
    let merge = "INSERT INTO record_names (record_names) VALUES ('optimize')";
    // A write that was refused leaves the labels that it came with.
    let labels = "DELETE FROM labels WHERE NOT EXISTS \
                  (SELECT 1 FROM record_labels AS r WHERE r.label = labels.row_id)";
    for statement in [merge, labels, "VACUUM"] {
        match connection.execute(statement).await {
            Err(error) if is_busy(&error) => return Ok(Some(in_use())),
            outcome => outcome.map_err(failed)?,
        };
    }
    let checkpoint = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
    let row = checkpoint.fetch_one(&mut connection).await;
    let is_busy: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    connection.close().await.map_err(failed)?;
    Ok((is_busy != 0).then(in_use))
}
