//! Looking at a database, bringing its schema up to date, and its secrets.
//!
//! A migration runs beside servers that read and write. One that changes tables waits for its
//! locks for a second at most, because everybody else queues up behind it, and is tried again;
//! one that makes indexes makes them concurrently, outside of a transaction, and what a killed
//! process left half made is made anew.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, Executor, Row, postgres::PgConnection};

use super::{
    errors::{self, classify},
    place::Place,
};
use crate::{
    driver::migrations::{Applied, Concurrent, Found, MIGRATIONS, Migration, Steps, needed_of},
    seam::Error,
    sql::dialect::Dialect,
};

/// How often it is looked whether another process has finished migrating. Waiting in the database
/// would hold a snapshot, for which the other one's concurrent indexes wait in turn.
const POLL: Duration = Duration::from_millis(200);

/// How a migration waits for locks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locks {
    /// For how long; everybody else waits as long at most.
    pub(super) wait: Duration,
    /// How often it is tried.
    pub(super) tries: u32,
    /// How long the others go first before it is tried again.
    pub(super) pause: Duration,
}

const LOCKS: Locks = Locks {
    wait: Duration::from_secs(1),
    tries: 60,
    pause: Duration::from_secs(1),
};

/// Looks at what is in the database, in the schema where new tables would be made, and changes
/// nothing. Views and what belongs to extensions are in nobody's way.
pub(super) async fn look(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    const TABLES: &str = "SELECT relname::text FROM pg_class AS c \
        WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) \
        AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT 1 FROM pg_depend \
        WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e') \
        ORDER BY relname";
    let tables: Vec<String> = sqlx::query(TABLES)
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

/// Applies what is missing, one migration after the other, under a lock that other processes wait
/// for. What was applied stays so, whatever becomes of the next. The connection should be closed
/// afterwards.
pub(super) async fn migrate(
    connection: &mut PgConnection,
    place: &Place,
) -> Result<Vec<i64>, Error> {
    apply(connection, place, MIGRATIONS, LOCKS).await
}

/// Applies what is missing of `all`.
pub(super) async fn apply(
    connection: &mut PgConnection,
    place: &Place,
    all: &'static [Migration],
    locks: Locks,
) -> Result<Vec<i64>, Error> {
    // The lock's number is "hindsigh" in ASCII.
    const LOCK: &str = "SELECT pg_try_advisory_lock(7523377931047921512)";
    const UNLOCK: &str = "SELECT pg_advisory_unlock(7523377931047921512)";
    let failed = |error| classify("migrating", error);
    let all_the_time = connection.execute("SET statement_timeout = 0; SET lock_timeout = 0");
    all_the_time.await.map_err(failed)?;
    loop {
        let locked = sqlx::query(LOCK).fetch_one(&mut *connection).await;
        if locked.and_then(|row| row.try_get(0)).map_err(failed)? {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    let found = look(connection).await.map_err(failed)?;
    let mut versions = Vec::new();
    for migration in needed_of(all, &found, Dialect::Postgres, &place.to_string())? {
        let version = migration.version;
        match migration.steps() {
            Ok(Steps::Together(sql)) => together(connection, migration, sql, locks).await?,
            Ok(Steps::Concurrently(made)) => {
                for index in &made {
                    concurrently(connection, index).await.map_err(failed)?;
                }
                note(connection, migration).await.map_err(failed)?;
            }
            Err(sql) => {
                return Err(Error::Incompatible(format!(
                    "migration {version} cannot run outside of a transaction: `{sql}`"
                )));
            }
        }
        versions.push(version);
    }
    connection.execute(UNLOCK).await.map_err(failed)?;
    Ok(versions)
}

/// Runs a migration in one transaction, again where somebody else holds a lock.
async fn together(
    connection: &mut PgConnection,
    migration: &Migration,
    sql: &'static str,
    locks: Locks,
) -> Result<(), Error> {
    let Migration { version, title, .. } = migration;
    let mut left = locks.tries;
    loop {
        left = left.saturating_sub(1);
        match in_one(connection, migration, sql, locks.wait).await {
            Err(error) if errors::is_locked(&error) && left > 0 => {
                tracing::info!(
                    "migration {version} (`{title}`) waits for another session's lock; it is \
                     tried again up to {left} times"
                );
                tokio::time::sleep(locks.pause).await;
            }
            Err(error) if errors::is_locked(&error) => {
                return Err(Error::Unavailable {
                    what: "migrating: another session holds a lock on a table, see pg_locks; end \
                           its transaction and try again",
                    source: error.into(),
                });
            }
            outcome => return outcome.map_err(|error| classify("migrating", error)),
        }
    }
}

async fn in_one(
    connection: &mut PgConnection,
    migration: &Migration,
    sql: &'static str,
    wait: Duration,
) -> Result<(), sqlx::Error> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT set_config('lock_timeout', $1, true)")
        .bind(format!("{}ms", wait.as_millis()))
        .execute(&mut *tx)
        .await?;
    let outcome = sqlx::raw_sql(sql).execute(&mut *tx).await;
    match outcome {
        Ok(_) => {
            note(&mut tx, migration).await?;
            tx.commit().await
        }
        Err(error) => {
            // Before the others go first, so that nothing is locked meanwhile.
            tx.rollback().await?;
            Err(error)
        }
    }
}

/// Makes an index, unless it is there. Reading and writing go on meanwhile. One that is there and
/// not valid was left by a process that was killed.
async fn concurrently(connection: &mut PgConnection, made: &Concurrent) -> Result<(), sqlx::Error> {
    const VALID: &str = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)";
    let index = made.index;
    let valid = sqlx::query(VALID).bind(index);
    let valid = valid.fetch_optional(&mut *connection).await?;
    match valid.map(|row| row.try_get::<bool, _>(0)).transpose()? {
        Some(true) => return Ok(()),
        Some(false) => {
            tracing::info!("index {index} is invalid; creating it again");
            let remove = AssertSqlSafe(format!("DROP INDEX CONCURRENTLY {index}"));
            sqlx::raw_sql(remove).execute(&mut *connection).await?;
        }
        None => {}
    }
    tracing::info!("creating index {index}; servers keep running");
    sqlx::raw_sql(made.sql).execute(connection).await.map(drop)
}

/// Writes down that a migration was applied.
async fn note(connection: &mut PgConnection, migration: &Migration) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO hindsight_schema (version, title, sha256) VALUES ($1, $2, $3)")
        .bind(migration.version)
        .bind(migration.title)
        .bind(migration.sha256(Dialect::Postgres))
        .execute(connection)
        .await
        .map(drop)
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

#[cfg(test)]
mod tests;
