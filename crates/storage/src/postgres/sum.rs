//! Adding up, on two connections where all values of a large table are gathered: PostgreSQL does
//! that on one core for each.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use futures::TryStreamExt;
use sqlx::{Connection, Executor, PgPool, Row, pool::PoolConnection, postgres::PgConnection};

use super::{SNAPSHOT, driver, errors::classify, explain, stop::Lent};
use crate::{
    AggregateQuery, Error,
    sql::{
        aggregate::{self, Plan},
        dialect::Dialect,
        read,
        statement::Statement,
    },
};
use hindsight_filter::measure::{Group, Tally};

/// Groups are hashed in memory, and compiling a statement takes longer than it saves.
const ADDING_UP: &str = "SET LOCAL work_mem = '64MB'; SET LOCAL jit = off";

/// Each connection has a core of its own.
const ALONE: &str = "SET LOCAL max_parallel_workers_per_gather = 0";

/// What another transaction needs to see the same.
const MOMENT: &str = "SELECT pg_export_snapshot()";

const BLOCKS: &str = "SELECT pg_relation_size('records') / current_setting('block_size')::bigint";

/// Blocks of a table that are worth a second connection: half a megabyte.
const MANY: i64 = 64;

fn failed(error: sqlx::Error) -> Error {
    classify("adding up", error)
}

/// The groups of `query`, all as of one moment.
pub(super) async fn aggregate(
    first: PoolConnection<sqlx::Postgres>,
    pool: &PgPool,
    query: &AggregateQuery,
) -> Result<Vec<Group>, Error> {
    let mut first = Lent::new(first);
    let mut tx = first.begin_with(SNAPSHOT).await.map_err(failed)?;
    tx.execute(ADDING_UP).await.map_err(failed)?;
    let bounds = match aggregate::bounds(Dialect::Postgres, query) {
        None => None,
        Some(bounds) => {
            let row = driver::query(&bounds).fetch_one(&mut *tx).await;
            Some(row.map_err(failed)?)
        }
    };
    let tally = Mutex::new(Tally::new(query.shape()));
    for plan in aggregate::plans(Dialect::Postgres, query, bounds.as_ref())? {
        let next = AtomicUsize::new(0);
        let parts = parts(&mut tx, &plan).await?;
        // Never waited for: two that wait for each other's second would wait for ever.
        match parts.len().gt(&1).then(|| pool.try_acquire()).flatten() {
            None => add_up(&mut tx, &[plan], &next, &tally).await?,
            Some(second) => {
                let mut second = Lent::new(second);
                tx.execute(ALONE).await.map_err(failed)?;
                let mut beside = second.begin_with(SNAPSHOT).await.map_err(failed)?;
                same_moment(&mut tx, &mut beside).await?;
                let (one, other) = futures::join!(
                    add_up(&mut tx, &parts, &next, &tally),
                    add_up(&mut beside, &parts, &next, &tally)
                );
                one.and(other)?;
                beside.rollback().await.map_err(failed)?;
                second.done();
            }
        }
    }
    tx.rollback().await.map_err(failed)?;
    first.done();
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(tally.finish())
}

/// Answers plans, each of which one connection answers.
async fn add_up(
    connection: &mut PgConnection,
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

/// The parts of a plan that are worth a second connection: where all values of a large table
/// are gathered, along the table or along an index that holds what is asked for. None where
/// another index leads to the rows.
pub(super) async fn parts<'q>(
    connection: &mut PgConnection,
    plan: &Plan<'q>,
) -> Result<Vec<Plan<'q>>, Error> {
    if !plan.gathers() {
        return Ok(Vec::new());
    }
    let row = sqlx::query(BLOCKS).fetch_one(&mut *connection).await;
    let blocks: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    if blocks < MANY {
        return Ok(Vec::new());
    }
    let lines = explain::lines(connection, &plan.statement()).await?;
    let has = |step: &str| lines.iter().any(|line| line.contains(step));
    Ok(if has("Seq Scan on records") {
        plan.by_block(blocks)
    } else if has("Index Only Scan using records_by_creation") {
        plan.by_time().unwrap_or_default()
    } else {
        Vec::new()
    })
}

/// Lets one transaction, which has read nothing yet, see what another one sees.
async fn same_moment(first: &mut PgConnection, second: &mut PgConnection) -> Result<(), Error> {
    let row = sqlx::query(MOMENT).fetch_one(first).await;
    let moment: String = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    second.execute(same(&moment)?.sql()).await.map_err(failed)?;
    second.execute(ADDING_UP).await.map_err(failed)?;
    second.execute(ALONE).await.map(drop).map_err(failed)
}

/// What makes another transaction see the same. The name of a moment cannot be bound, so it is
/// put together of the letters that such names have.
fn same(moment: &str) -> Result<Statement, Error> {
    const LETTERS: &str = "0123456789ABCDEF-";
    let mut statement = Statement::new("SET TRANSACTION SNAPSHOT '");
    for letter in moment.chars() {
        let at = LETTERS.find(letter);
        let letter = at.and_then(|at| LETTERS.get(at..=at));
        statement.push(letter.ok_or_else(|| read::corrupt("an odd name of a snapshot"))?);
    }
    statement.push("'");
    Ok(statement)
}
