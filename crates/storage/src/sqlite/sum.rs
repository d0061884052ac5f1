//! Adding up, on two connections where there is much to add up: SQLite works on one core for each.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use futures::TryStreamExt;
use sqlx::{Connection, Row, SqlitePool, sqlite::SqliteConnection};

use super::{driver, errors::classify, stop::Lent};
use crate::{
    AggregateQuery, Error,
    sql::{
        aggregate::{self, Plan},
        dialect::Dialect,
    },
};
use hindsight_filter::measure::{Group, Tally};

/// Statements that are worth a second connection.
const MANY: usize = 8;

/// How often two connections are tried to be brought to the same moment, while others write.
const TRIES: usize = 3;

fn failed(error: sqlx::Error) -> Error {
    classify("adding up", error)
}

/// The groups of `query`, all as of one moment.
pub(super) async fn aggregate(
    readers: &SqlitePool,
    query: &AggregateQuery,
) -> Result<Vec<Group>, Error> {
    let connection = readers.acquire().await.map_err(failed)?;
    let mut first = Lent::new(connection).await?;
    // Never waited for: two that wait for each other's second would wait for ever.
    let mut second = match readers.try_acquire() {
        Some(connection) => Some(Lent::new(connection).await?),
        None => None,
    };
    let tally = Mutex::new(Tally::new(query.shape()));
    let mut tries = 0;
    loop {
        let before = match second.as_deref_mut() {
            Some(second) => Some(version(second).await?),
            None => None,
        };
        let mut tx = first.begin().await.map_err(failed)?;
        let bounds = match aggregate::bounds(Dialect::Sqlite, query) {
            None => None,
            Some(bounds) => {
                let row = driver::query(&bounds).fetch_one(&mut *tx).await;
                Some(row.map_err(failed)?)
            }
        };
        let plans = aggregate::plans(Dialect::Sqlite, query, bounds.as_ref())?;
        let next = AtomicUsize::new(0);
        if let (Some(second), Some(before), true) =
            (second.as_deref_mut(), before, plans.len() >= MANY)
        {
            let mut beside = second.begin().await.map_err(failed)?;
            if version(&mut beside).await? == before {
                let (one, other) = futures::join!(
                    add_up(&mut tx, &plans, &next, &tally),
                    add_up(&mut beside, &plans, &next, &tally)
                );
                one.and(other)?;
                beside.rollback().await.map_err(failed)?;
                tx.rollback().await.map_err(failed)?;
                break;
            }
            // Somebody wrote in between, so that they do not see the same.
            beside.rollback().await.map_err(failed)?;
            tries += 1;
            if tries < TRIES {
                tx.rollback().await.map_err(failed)?;
                continue;
            }
        }
        add_up(&mut tx, &plans, &next, &tally).await?;
        tx.rollback().await.map_err(failed)?;
        break;
    }
    first.done();
    if let Some(second) = second {
        second.done();
    }
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(tally.finish())
}

/// A number that is another one once somebody else has written; in a transaction it is that of
/// the moment which the transaction sees, from now on.
async fn version(connection: &mut SqliteConnection) -> Result<i64, Error> {
    // A transaction sees the moment of its first look at a table.
    let look = sqlx::query("SELECT 1 FROM hindsight_schema LIMIT 1");
    look.fetch_optional(&mut *connection)
        .await
        .map_err(failed)?;
    let row = sqlx::query("PRAGMA data_version")
        .fetch_one(connection)
        .await;
    row.and_then(|row| row.try_get(0)).map_err(failed)
}

/// Answers plans, each of which one connection answers.
async fn add_up(
    connection: &mut SqliteConnection,
    plans: &[Plan<'_>],
    next: &AtomicUsize,
    tally: &Mutex<Tally>,
) -> Result<(), Error> {
    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
        let statement = plan.statement();
        let mut rows = driver::query(&statement).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            plan.add(&row, &mut tally)?;
        }
    }
    Ok(())
}
