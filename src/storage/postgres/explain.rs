//! What PostgreSQL says of how it would answer a list.

use sqlx::{Row, postgres::PgConnection};

use super::{driver, errors::classify};
use crate::{
    model::Resource,
    storage::{
        Error, Estimate, ListQuery, Plan,
        sql::{dialect::Dialect, explain, list, statement::Statement},
    },
};

/// The plan of a list, with the planner's estimates.
pub(super) async fn plan(
    connection: &mut PgConnection,
    resource: Resource,
    query: &ListQuery,
) -> Result<Plan, Error> {
    let mut steps = Vec::new();
    for part in list::parts(resource, query) {
        let limit = query.limit.get().into();
        let statement = list::list(Dialect::Postgres, resource, query, part, limit)?;
        steps.extend(lines(connection, &statement).await?);
    }
    let mut indexes: Vec<_> = steps
        .iter()
        .filter_map(|line| explain::index_of(line))
        .collect();
    indexes.sort();
    indexes.dedup();
    let cost = steps.iter().find_map(|line| explain::estimates(line));
    let all = explain::rows(Dialect::Postgres, resource, query, None);
    let all = lines(connection, &all).await?;
    let rows = all.iter().find_map(|line| explain::estimates(line));
    Ok(Plan {
        steps,
        indexes,
        rows: Estimate::About(rows.map_or(0, |(_, rows)| rows)),
        cost: cost.map(|(cost, _)| cost),
    })
}

async fn lines(connection: &mut PgConnection, statement: &Statement) -> Result<Vec<String>, Error> {
    let asking = |e| classify("asking for a plan", e);
    let statement = statement.prefixed("EXPLAIN ");
    let rows = driver::query(&statement).fetch_all(connection).await;
    let rows = rows.map_err(asking)?;
    rows.iter()
        .map(|row| row.try_get(0).map_err(asking))
        .collect()
}
