//! Adding up, on two connections where there is much to add up: a database works on one
//! core for each.

use std::{
    ops::ControlFlow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::explain;
use crate::{
    driver::{Database, Purpose, Reader, Work},
    seam::{AggregateQuery, Error},
    sql::{
        aggregate::{self, Plan},
        cost,
        dialect::Dialect,
        row::{Row, SqlRow as _},
        statement::Statement,
    },
};
use hindsight_filter::measure::{Group, Tally};

const ROWS: &str = "SELECT max(row_id) FROM records";
const BLOCKS: &str = "SELECT pg_relation_size('records') / current_setting('block_size')::bigint";

/// The groups of `query`, and the rows of statements beside it, all as of one moment.
pub(super) async fn aggregate<D: Database>(
    db: &D,
    query: &AggregateQuery,
    beside: &[Statement],
) -> Result<(Vec<Group>, Vec<Vec<Row>>), Error> {
    let mut first = db.reader(Work::Scan, query.priority, "adding up").await?;
    first.begin(Purpose::Aggregate).await?;
    let mut plans = plans(&mut *first, D::DIALECT, query).await?;
    let mut divided = divided(&mut *first, D::DIALECT, &plans).await?;
    let mut second = None;
    if divided.is_some() {
        let beside = db.reader_beside(&mut *first, query.priority).await?;
        second = beside.reader;
        if beside.is_later {
            plans = self::plans(&mut *first, D::DIALECT, query).await?;
            divided = self::divided(&mut *first, D::DIALECT, &plans).await?;
        }
    }
    let tally = Mutex::new(Tally::new(query.shape()));
    let next = AtomicUsize::new(0);
    match (&mut second, divided) {
        (Some(second), Some(parts)) => {
            let (one, other) = futures::join!(
                add_up(&mut *first, &parts, &next, &tally),
                add_up(&mut **second, &parts, &next, &tally)
            );
            one.and(other)?;
        }
        _ => add_up(&mut *first, &plans, &next, &tally).await?,
    }
    let mut rows = Vec::new();
    for statement in beside {
        rows.push(first.rows(statement).await?);
    }
    for mut reader in [first].into_iter().chain(second) {
        reader.end().await?;
        reader.release().await;
    }
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((tally.finish(), rows))
}

/// The plans that together answer `query` as of this moment.
async fn plans<'q>(
    reader: &mut dyn Reader,
    dialect: Dialect,
    query: &'q AggregateQuery,
) -> Result<Vec<Plan<'q>>, Error> {
    let bounds = match aggregate::bounds(dialect, query) {
        None => None,
        Some(bounds) => reader.row(&bounds).await?,
    };
    aggregate::plans(dialect, query, bounds.as_ref())
}

/// The same as parts that are worth a second connection, if they are.
async fn divided<'q>(
    reader: &mut dyn Reader,
    dialect: Dialect,
    plans: &[Plan<'q>],
) -> Result<Option<Vec<Plan<'q>>>, Error> {
    match (dialect, plans) {
        (Dialect::Sqlite, [plan]) => parts_of_table(reader, plan).await,
        (Dialect::Sqlite, plans) => {
            Ok((plans.len() >= cost::model(dialect).shared_statements).then(|| plans.to_vec()))
        }
        (Dialect::Postgres, [plan]) => parts(reader, plan).await,
        (Dialect::Postgres, _) => Ok(None),
    }
}

/// The parts of a plan on SQLite where all of a large table is read.
pub(crate) async fn parts_of_table<'q>(
    reader: &mut dyn Reader,
    plan: &Plan<'q>,
) -> Result<Option<Vec<Plan<'q>>>, Error> {
    let rows = number(reader, ROWS).await?.unwrap_or(0);
    if rows < cost::model(Dialect::Sqlite).shared_rows {
        return Ok(None);
    }
    let lines = explain::lines(reader, Dialect::Sqlite, &plan.statement()).await?;
    let is_scan = lines.iter().any(|line| line == "SCAN records");
    Ok(is_scan.then(|| plan.by_place(rows)))
}

async fn number(reader: &mut dyn Reader, question: &'static str) -> Result<Option<i64>, Error> {
    let row = reader.row(&Statement::new(question)).await?;
    Ok(row.map(|row| row.int(0)).transpose()?.flatten())
}

/// The parts of a plan on PostgreSQL, where all values of a large table are gathered, along
/// the table or along an index that holds what is asked for. None where another index leads
/// to the rows.
pub(crate) async fn parts<'q>(
    reader: &mut dyn Reader,
    plan: &Plan<'q>,
) -> Result<Option<Vec<Plan<'q>>>, Error> {
    if !plan.gathers() {
        return Ok(None);
    }
    let blocks = number(reader, BLOCKS).await?.unwrap_or(0);
    if blocks < cost::model(Dialect::Postgres).shared_blocks {
        return Ok(None);
    }
    let lines = explain::lines(reader, Dialect::Postgres, &plan.statement()).await?;
    let has = |step: &str| lines.iter().any(|line| line.contains(step));
    Ok(if has("Seq Scan on records") {
        Some(plan.by_place(blocks))
    } else if has("Index Only Scan using records_by_creation") {
        plan.by_time()
    } else {
        None
    })
}

/// Answers plans, each of which one connection answers.
async fn add_up(
    reader: &mut dyn Reader,
    plans: &[Plan<'_>],
    next: &AtomicUsize,
    tally: &Mutex<Tally>,
) -> Result<(), Error> {
    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut add = |row: Row| {
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            plan.add(&row, &mut tally)?;
            Ok(ControlFlow::Continue(()))
        };
        reader.each(&plan.statement(), &mut add).await?;
    }
    Ok(())
}
