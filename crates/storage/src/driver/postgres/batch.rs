//! Batches, which happen whole or not at all.

use std::collections::BTreeSet;

use sqlx::{Connection, Row, postgres::PgConnection};

use super::{
    bind::query,
    errors::{self, classify},
    pool::Pool,
};
use crate::{
    codec::{
        prepare,
        row::{PreparedChange, RecordRow},
    },
    seam::Error,
    sql::{dialect::Dialect, expire, many, write},
};
use hindsight_filter::model::Etag;

/// How often a batch is begun again after a deadlock, before the caller is told.
pub(super) const RETRIES: usize = 5;

/// Records that one statement inserts.
pub(super) const MOST_ROWS: usize = 500;

/// Bytes after which such a statement ends.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// What the numbers of the queues of writers go with, so that no other lock has the same pair.
const QUEUES: i32 = 0x6873_7772;

/// Does a batch, again where it lost against others.
pub(super) async fn commit(pool: &Pool, changes: &[PreparedChange]) -> Result<(), Error> {
    let mut left = RETRIES;
    loop {
        match attempt(pool, changes).await {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(error)) => return Err(error),
            Err(Failure::Driver(_, error)) if errors::is_conflict(&error) && left > 0 => {
                left -= 1;
            }
            Err(Failure::Driver(what, error)) => return Err(classify(what, error)),
        }
    }
}

/// Tries a batch once.
async fn attempt(pool: &Pool, changes: &[PreparedChange]) -> Result<(), Failure> {
    let failed = |what| move |error| Failure::Driver(what, error);
    let mut connection = pool.acquire().await.map_err(failed("connecting"))?;
    match changes {
        // It locks the records of its result one after the other.
        [
            PreparedChange::DeleteResult(..)
            | PreparedChange::ExpireResult(..)
            | PreparedChange::ArchiveResult(..),
        ] => {}
        [ready] => {
            let outcome = change(&mut connection, ready).await;
            if !matches!(outcome, Err(Failure::Driver(..))) {
                connection.give_back();
            }
            return outcome;
        }
        _ => {}
    }
    let mut tx = connection
        .begin()
        .await
        .map_err(failed("beginning to write"))?;
    sqlx::query("SELECT pg_advisory_xact_lock($1, queue) FROM unnest($2::int[]) AS queue")
        .bind(QUEUES)
        .bind(queues(changes))
        .execute(&mut *tx)
        .await
        .map_err(failed("queueing up to write"))?;
    match all(&mut tx, changes).await {
        Ok(()) => {
            tx.commit().await.map_err(failed("committing"))?;
            connection.give_back();
            Ok(())
        }
        Err(failure) => {
            // Before the answer, so that nothing is locked any more when it arrives.
            if let Err(error) = tx.rollback().await {
                tracing::debug!(%error, "batch not rolled back cleanly");
            }
            Err(failure)
        }
    }
}
/// Does the changes of a batch, up to the first that is refused.
async fn all(tx: &mut PgConnection, changes: &[PreparedChange]) -> Result<(), Failure> {
    let mut rest = changes;
    while !rest.is_empty() {
        let run = first_inserts(rest);
        if run.len() > 1 && insert(tx, &run).await? {
            rest = &rest[run.len()..];
            continue;
        }
        // One of the run is refused: one by one it will be found out which.
        let count = run.len().max(1);
        for ready in &rest[..count] {
            change(tx, ready).await?;
        }
        rest = &rest[count..];
    }
    Ok(())
}

/// The queues of the results that a batch touches, in the order in which they are entered.
fn queues(changes: &[PreparedChange]) -> Vec<i32> {
    let of = |ready: &PreparedChange| {
        // FNV-1a, because all replicas must agree on it, whatever their version.
        let hash = ready
            .result()
            .to_string()
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
        i32::try_from(hash % 256).expect("256 queues have small numbers")
    };
    let queues: BTreeSet<i32> = changes.iter().map(of).collect();
    queues.into_iter().collect()
}

/// Why a batch did not happen.
#[derive(Debug)]
pub(super) enum Failure {
    /// A precondition does not hold.
    Refused(Error),
    /// The database said so.
    Driver(&'static str, sqlx::Error),
}

/// The records that a batch begins by inserting, as many as one statement takes.
fn first_inserts(changes: &[PreparedChange]) -> Vec<&RecordRow> {
    let mut bytes = 0;
    changes
        .iter()
        .take(MOST_ROWS)
        .map_while(|ready| match ready {
            PreparedChange::InsertRecord(row) if bytes < MOST_BYTES && row.number.is_none() => {
                bytes += ready.weight();
                Some(&**row)
            }
            _ => None,
        })
        .collect()
}

/// Inserts many records by one statement, all or none, and says which.
async fn insert(tx: &mut PgConnection, rows: &[&RecordRow]) -> Result<bool, Failure> {
    let failed = |error| Failure::Driver("writing", error);
    let statement = many::insert_records(rows);
    let mut inner = tx.begin().await.map_err(failed)?;
    let made = query(&statement).fetch_all(&mut *inner).await;
    match made {
        Ok(made) if made.len() == rows.len() => {
            inner.commit().await.map_err(failed)?;
            Ok(true)
        }
        Err(error) if !errors::is_about_a_row(&error) => Err(failed(error)),
        _ => {
            inner.rollback().await.map_err(failed)?;
            Ok(false)
        }
    }
}

/// Does one change. The statement holds its precondition; what is read after it changed nothing
/// only tells the caller which one failed.
pub(super) async fn change(
    connection: &mut PgConnection,
    ready: &PreparedChange,
) -> Result<(), Failure> {
    let failed = |error| Failure::Driver("writing", error);
    for lock in expire::locks(ready) {
        let locked = query(&lock).execute(&mut *connection).await;
        locked.map_err(failed)?;
    }
    let statement = write::write(Dialect::Postgres, ready);
    match query(&statement).execute(&mut *connection).await {
        Ok(done) if done.rows_affected() > 0 => Ok(()),
        Ok(_) => {
            for statement in write::prepared_from(ready) {
                let there = query(&statement).fetch_optional(&mut *connection).await;
                if there.map_err(failed)?.is_none() {
                    return Err(Failure::Refused(prepare::outdated()));
                }
            }
            let statement = write::etag_of(Dialect::Postgres, ready);
            let row = query(&statement)
                .fetch_optional(connection)
                .await
                .map_err(failed)?;
            let found = row
                .map(|row| row.try_get::<String, _>(0))
                .transpose()
                .map_err(failed)?;
            Err(Failure::Refused(ready.refusal(found.map(Etag::from_text))))
        }
        Err(error) if errors::is_taken(&error) => {
            Err(Failure::Refused(Error::Exists(ready.name())))
        }
        // What a body refers to was deleted while that was on its way.
        Err(error) if errors::is_referring_to_nothing(&error) => {
            Err(Failure::Refused(prepare::outdated()))
        }
        // The result was deleted while its record was inserted.
        Err(error) if errors::is_orphan(&error) => Err(Failure::Refused(ready.refusal(None))),
        Err(error) => Err(failed(error)),
    }
}
