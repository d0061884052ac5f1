//! What SQLite says of how it would answer a list.

use sqlx::{Row, sqlite::SqliteConnection};

use super::{driver, errors::classify, find};
use crate::{
    Error, Estimate, ListQuery, Plan,
    sql::{dialect::Dialect, explain, list, way},
};
use hindsight_filter::model::Resource;

/// The plan of a list. SQLite keeps no estimates, so rows are counted, to `most` at most.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    resource: Resource,
    query: &ListQuery,
    most: u64,
) -> Result<Plan, Error> {
    let asking = |e| classify("asking for a plan", e);
    let (mut steps, mut indexes) = (Vec::new(), Vec::new());
    for part in list::parts(resource, query) {
        let limit = query.limit.get().into();
        let far = find::way(connection, resource, query).await?;
        let near = way::near(Dialect::Sqlite, resource, query)
            .into_iter()
            .chain(far.before);
        for way in near.chain([far.way]) {
            let statement = list::list(Dialect::Sqlite, resource, query, part, way, limit)?;
            let statement = statement.prefixed("EXPLAIN QUERY PLAN ");
            let rows = driver::query(&statement).fetch_all(&mut *connection).await;
            for row in rows.map_err(asking)? {
                let line: String = row.try_get("detail").map_err(asking)?;
                indexes.extend(explain::index_of(&line));
                steps.push(line);
            }
        }
    }
    indexes.sort();
    indexes.dedup();
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let counting = explain::rows(Dialect::Sqlite, resource, query, Some(most));
    let counted = driver::query(&counting).fetch_one(connection).await;
    let counted: i64 = counted.and_then(|row| row.try_get(0)).map_err(asking)?;
    let rows = counted.unsigned_abs();
    Ok(Plan {
        steps,
        indexes,
        rows: match counted < most {
            true => Estimate::Exactly(rows),
            false => Estimate::AtLeast(rows),
        },
        cost: None,
    })
}
