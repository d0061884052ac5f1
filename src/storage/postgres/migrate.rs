//! Looking at a database, bringing its schema up to date, and its secrets.

use sqlx::{Connection, Executor, Row, postgres::PgConnection};

use super::{errors::classify, open::Place};
use crate::storage::{
    Error,
    migrations::{Applied, Found, needed},
    sql::dialect::Dialect,
};

/// Looks at what is in the database, in the schema where new tables would be made, and changes
/// nothing.
pub(super) async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let tables: Vec<String> = sqlx::query(
        "SELECT table_name::text FROM information_schema.tables \
         WHERE table_schema = current_schema() ORDER BY table_name",
    )
    .fetch_all(&mut *connection)
    .await?
    .iter()
    .map(|row| row.try_get(0))
    .collect::<Result<_, _>>()?;
    if !tables.iter().any(|table| table == "hindsight_schema") {
        return Ok(tables
            .into_iter()
            .next()
            .map_or(Found::Empty, Found::Foreign));
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

/// Applies what is missing, in one transaction, under a lock that other migrations wait for.
pub(super) async fn migrate(
    connection: &mut PgConnection,
    place: &Place,
) -> Result<Vec<i64>, Error> {
    // The lock's number is "hindsigh" in ASCII.
    const LOCK: &str = "SELECT pg_advisory_xact_lock(7523377931047921512)";
    let failed = |error| classify("migrating", error);
    let mut tx = connection.begin().await.map_err(failed)?;
    tx.execute(LOCK).await.map_err(failed)?;
    let found = look(&mut tx).await.map_err(failed)?;
    let mut versions = Vec::new();
    for migration in needed(&found, Dialect::Postgres, &place.to_string())? {
        let sql = sqlx::raw_sql(migration.sql(Dialect::Postgres));
        sql.execute(&mut *tx).await.map_err(failed)?;
        sqlx::query("INSERT INTO hindsight_schema (version, title, sha256) VALUES ($1, $2, $3)")
            .bind(migration.version)
            .bind(migration.title)
            .bind(migration.sha256(Dialect::Postgres))
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        versions.push(migration.version);
    }
    tx.commit().await.map_err(failed)?;
    Ok(versions)
}

/// The secret of this name; `candidate` if there was none.
pub(super) async fn secret(
    connection: &mut PgConnection,
    name: &str,
    candidate: &[u8],
) -> Result<Vec<u8>, Error> {
    let failed = |error| classify("reading a secret", error);
    sqlx::query("INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(name)
        .bind(candidate)
        .execute(&mut *connection)
        .await
        .map_err(failed)?;
    sqlx::query("SELECT value FROM secrets WHERE name = $1")
        .bind(name)
        .fetch_one(connection)
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)
}
