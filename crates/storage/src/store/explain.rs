//! What a database says of how it would answer a list.

use super::{find, list::resolved};
use crate::{
    driver::{Database, Reader, Work},
    seam::{Error, Estimate, ListQuery, Plan},
    sql::{cells::Cells as _, dialect::Dialect, explain, list, statement::Statement, way},
};
use hindsight_filter::model::Resource;

/// The plan of a list. Where the database keeps no estimates, rows are counted, to `most` at most.
pub(super) async fn plan<D: Database>(
    db: &D,
    resource: Resource,
    query: &ListQuery,
    most: u64,
) -> Result<Plan, Error> {
    let mut reader = db.reader(Work::Scan, "asking for a plan").await?;
    let query = resolved(&mut *reader, query).await?;
    let (mut steps, mut cost) = (Vec::new(), None);
    for part in list::parts(resource, &query) {
        let limit = query.limit.get().into();
        let far = find::choose(&mut *reader, D::DIALECT, resource, &query).await?;
        let near = way::near(D::DIALECT, resource, &query);
        for way in near.into_iter().chain(far.before).chain([far.way]) {
            let statement = list::list(D::DIALECT, resource, &query, part, way, limit)?;
            let lines = lines(&mut *reader, D::DIALECT, &statement).await?;
            // What is near costs little; the way to what is far is said last.
            cost = lines.iter().find_map(|line| explain::estimates(line));
            steps.extend(lines);
        }
    }
    let indexes = steps.iter().filter_map(|line| explain::index_of(line));
    let mut indexes: Vec<_> = indexes.collect();
    indexes.sort();
    indexes.dedup();
    let rows = rows(&mut *reader, D::DIALECT, resource, &query, most).await?;
    reader.release().await;
    Ok(Plan {
        steps,
        indexes,
        rows,
        cost: cost.map(|(cost, _)| cost),
    })
}

async fn rows(
    reader: &mut dyn Reader,
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    most: u64,
) -> Result<Estimate, Error> {
    if dialect == Dialect::Postgres {
        let all = explain::rows(dialect, resource, query, None);
        let all = lines(reader, dialect, &all).await?;
        let rows = all.iter().find_map(|line| explain::estimates(line));
        return Ok(Estimate::About(rows.map_or(0, |(_, rows)| rows)));
    }
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let counting = explain::rows(dialect, resource, query, Some(most));
    let counted = reader.row(&counting).await?;
    let counted = counted.map(|row| row.int(0)).transpose()?.flatten();
    let counted = counted.unwrap_or(0);
    let rows = counted.unsigned_abs();
    Ok(match counted < most {
        true => Estimate::Exactly(rows),
        false => Estimate::AtLeast(rows),
    })
}

/// The lines of the plan of a statement.
pub(super) async fn lines(
    reader: &mut dyn Reader,
    dialect: Dialect,
    statement: &Statement,
) -> Result<Vec<String>, Error> {
    let (explain, column) = dialect.explain();
    let rows = reader.rows(&statement.prefixed(explain)).await?;
    let line = |row: &crate::sql::cells::Row| Ok(row.text(column)?.unwrap_or_default());
    rows.iter().map(line).collect()
}
