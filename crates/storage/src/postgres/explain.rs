//! What PostgreSQL says of how it would answer a list.

use sqlx::{Row, postgres::PgConnection};

use super::{driver, errors::classify, find};
use crate::{
    Error, Estimate, ListQuery, Plan,
    sql::{dialect::Dialect, explain, list, statement::Statement, way},
};
use hindsight_filter::model::Resource;

/// The plan of a list, with the planner's estimates.
pub(super) async fn plan(
    connection: &mut PgConnection,
    resource: Resource,
    query: &ListQuery,
) -> Result<Plan, Error> {
    let (mut steps, mut cost) = (Vec::new(), None);
    for part in list::parts(resource, query) {
        let limit = query.limit.get().into();
        let far = find::way(connection, resource, query).await?;
        for way in way::near(Dialect::Postgres, resource, query)
            .into_iter()
            .chain([far])
        {
            let statement = list::list(Dialect::Postgres, resource, query, part, way, limit)?;
            let lines = lines(connection, &statement).await?;
            // What is near costs little; the way to what is far is said last.
            cost = lines.iter().find_map(|line| explain::estimates(line));
            steps.extend(lines);
        }
    }
    let mut indexes: Vec<_> = steps
        .iter()
        .filter_map(|line| explain::index_of(line))
        .collect();
    indexes.sort();
    indexes.dedup();
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

/// The lines of the plan of a statement.
pub(super) async fn lines(
    connection: &mut PgConnection,
    statement: &Statement,
) -> Result<Vec<String>, Error> {
    let asking = |e| classify("asking for a plan", e);
    let statement = statement.prefixed("EXPLAIN ");
    let rows = driver::query(&statement).fetch_all(connection).await;
    let rows = rows.map_err(asking)?;
    rows.iter()
        .map(|row| row.try_get(0).map_err(asking))
        .collect()
}
