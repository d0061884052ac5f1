//! What a database says of how it would answer a list.

use super::{
    list::resolved,
    planner::{choose, counted},
};
use crate::{
    driver::{Database, Reader, Work},
    seam::{Error, Estimate, ListQuery, Plan},
    sql::{
        access_path::{self, AccessPath},
        candidate::IndexCandidate,
        dialect::Dialect,
        explain, list,
        row::SqlRow as _,
        statement::Statement,
        stored_time::{Stretch, stretches},
    },
};
use hindsight_filter::model::Resource;

/// The plan of a list. Where the database keeps no estimates, rows are counted, to `most` at most.
pub(super) async fn plan<D: Database>(
    db: &D,
    resource: Resource,
    query: &ListQuery,
    most: u64,
) -> Result<Plan, Error> {
    let mut reader = db
        .reader(Work::Scan, query.priority, "asking for a plan")
        .await?;
    let query = resolved(&mut *reader, D::DIALECT, query).await?;
    let (mut paths, mut steps, mut cost) = (Vec::new(), Vec::new(), None);
    let all = stretches(resource, query.clone());
    let all = all.iter().flat_map(|stretch| {
        let parts = list::parts(resource, &stretch.query).into_iter();
        parts.map(move |part| (stretch, part))
    });
    for (Stretch { query, is_late }, part) in all {
        let limit = query.limit.get().into();
        if *is_late {
            let late = list::list(D::DIALECT, resource, query, part, AccessPath::Late, limit)?;
            steps.extend(lines(&mut *reader, D::DIALECT, &late).await?);
            continue;
        }
        let choice = choose(&mut *reader, D::DIALECT, resource, query).await?;
        let prefix = access_path::prefix_scan(D::DIALECT, resource, query);
        // Where the first one holds some of the page.
        let farther = prefix.and_then(|prefix| {
            access_path::farther_prefix_scan(
                D::DIALECT,
                query,
                (prefix, choice.path),
                (limit, limit),
            )
        });
        let tried = prefix.into_iter().chain(farther);
        let tried = tried.chain(choice.first.clone());
        let tried = tried.chain([choice.path]);
        for path in tried.clone() {
            let statement = list::list(D::DIALECT, resource, query, part, path, limit)?;
            let lines = lines(&mut *reader, D::DIALECT, &statement).await?;
            // A prefix scan costs little; the path to all rows comes last.
            cost = lines.iter().find_map(|line| explain::estimates(line));
            steps.extend(lines);
        }
        if paths.is_empty() {
            let considered = match (D::DIALECT, choice.considered.is_empty()) {
                (Dialect::Sqlite, true) => {
                    counted(&mut *reader, D::DIALECT, resource, query).await?
                }
                _ => choice.considered,
            };
            paths = described(tried, &considered);
        }
    }
    let indexes = steps.iter().filter_map(|line| explain::index_of(line));
    let mut indexes: Vec<_> = indexes.collect();
    indexes.sort();
    indexes.dedup();
    let rows = rows(&mut *reader, D::DIALECT, resource, &query, most).await?;
    reader.release().await;
    paths.extend(steps);
    Ok(Plan {
        steps: paths,
        indexes,
        rows,
        cost: cost.map(|(cost, _)| cost),
    })
}

/// The paths that are tried, in order, and those that were considered and rejected.
fn described<'q>(
    tried: impl Iterator<Item = AccessPath<'q>> + Clone,
    considered: &[(IndexCandidate<'q>, i64)],
) -> Vec<String> {
    let rows = |path| {
        let of = considered
            .iter()
            .find(|(one, _)| AccessPath::Index(*one) == path);
        of.map_or(String::new(), |(_, rows)| format!(" ({rows} rows)"))
    };
    let chosen = tried.clone().map(|path| format!("{path}{}", rows(path)));
    let chosen: Vec<String> = chosen.collect();
    let rejected = considered.iter().map(|(one, _)| AccessPath::Index(*one));
    let rejected = rejected.filter(|path| !tried.clone().any(|tried| tried == *path));
    let rejected: Vec<_> = rejected
        .map(|path| format!("{path}{}", rows(path)))
        .collect();
    let mut lines = vec![format!("access path: {}", chosen.join(", then "))];
    if !rejected.is_empty() {
        lines.push(format!("rejected: {}", rejected.join(", ")));
    }
    lines
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
    let line = |row: &crate::sql::row::Row| Ok(row.text(column)?.unwrap_or_default());
    rows.iter().map(line).collect()
}
