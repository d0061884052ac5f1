//! Adding up records in groups.
//!
//! Calendars are cut here, not by the databases, whose time zones may be others: a statement is
//! given where buckets begin, or groups by a grid of which every bucket is a multiple, and each
//! cell of the grid is put into its bucket afterwards.

mod groups;
mod statement;

use super::{
    access_path,
    candidate::conjuncts,
    columns::{self, Place},
    condition::{Rows, Writer, is_selective, value},
    dialect::Dialect,
    read,
    row::SqlRow,
    statement::Statement,
};
use crate::seam::{AggregateQuery, Error, GroupKey};
use hindsight_filter::condition::{Column, Condition, ObjectField, Test};
use hindsight_filter::measure::{Calendar, Depth};
use hindsight_filter::model::Resource;

/// Most buckets that are named one by one.
const MOST_BUCKETS: usize = 10_000;
/// The finest grid, one second, on which every time zone has its buckets.
const SECOND: i64 = 1_000_000;
/// Parts into which two connections divide a plan, so that neither has to wait long for the other.
const PARTS: u8 = 8;

/// How a statement tells the buckets of a calendar apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cut {
    /// It is no bucket of a calendar.
    No,
    /// By the places where buckets begin.
    At(Vec<i64>),
    /// By cells of this length.
    Grid(i64),
    /// All its rows are in this bucket, or have no time.
    One(Option<(i64, i64)>),
}

/// A query and how its calendars are cut.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'q> {
    dialect: Dialect,
    query: &'q AggregateQuery,
    cuts: Vec<Cut>,
    /// The index that is walked, on SQLite.
    index: Option<&'static str>,
    /// The part of the table that is read.
    part: Part,
}

/// A part of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    /// From this row to before that one, or to the last, on SQLite.
    Rows(i64, Option<i64>),
    /// From this block of the table to before that one, or to its end, on PostgreSQL.
    Blocks(i64, Option<i64>),
    /// From this time of a key to before that one, or without that time, on PostgreSQL.
    Times(usize, Option<(i64, i64)>),
}

/// The columns of times that are cut, in the order of the keys.
fn timed(query: &AggregateQuery) -> impl Iterator<Item = (usize, &Column, &Calendar)> {
    query
        .keys
        .iter()
        .enumerate()
        .filter_map(|(at, key)| match key {
            GroupKey::Bucket(column, calendar) => Some((at, column, calendar)),
            GroupKey::Column(_) => None,
        })
}

/// The cells into which the times of a column are put whatever times there are, so that no row is read beforehand. None
/// where the first and the last time are needed: to walk an index, or to divide the work between connections.
fn cells(
    dialect: Dialect,
    query: &AggregateQuery,
    column: &Column,
    calendar: &Calendar,
) -> Option<i64> {
    let is_divided = dialect == Dialect::Postgres && gathers(query);
    let is_walked = walkable(dialect, query, column).is_some();
    calendar.step().filter(|_| !is_divided && !is_walked)
}

/// Whether values themselves are gathered.
fn gathers(query: &AggregateQuery) -> bool {
    let mut amounts = query.amounts.iter();
    amounts.any(|amount| amount.depth == Depth::Values)
}

/// The statement that reads the first and the last time of each calendar that needs them, if there is one.
pub(crate) fn bounds(dialect: Dialect, query: &AggregateQuery) -> Option<Statement> {
    let mut out = Statement::new("SELECT ");
    let mut comma = "";
    let elsewhere = is_selective(&query.condition);
    // All of a time of storing are read for it: the index of the other time would be gone through to the first row that
    // was stored then.
    let is_stored = |test: &&Test| test.column == Column::CreateTime && !test.negated;
    let in_range = conjuncts(&query.condition).iter().any(is_stored);
    for (_, column, calendar) in timed(query) {
        if cells(dialect, query, column, calendar).is_some() {
            continue;
        }
        for end in ["min(", "max("] {
            out.push(comma)
                .push(if in_range { "" } else { "(SELECT " })
                .push(end);
            value(&mut out, dialect, place(column));
            if in_range {
                out.push(" + 0)");
            } else {
                out.push(") FROM records WHERE 1 = 1");
                rows(&mut out, dialect, query, elsewhere);
                out.push(")");
            }
            comma = ", ";
        }
    }
    if in_range {
        out.push(" FROM records WHERE 1 = 1");
        rows(&mut out, dialect, query, elsewhere);
    }
    (!comma.is_empty()).then_some(out)
}

/// The plans that together answer `query`, given the row of [`bounds`].
///
/// # Errors
/// If the row cannot be read.
pub(crate) fn plans<'q>(
    dialect: Dialect,
    query: &'q AggregateQuery,
    bounds: Option<&impl SqlRow>,
) -> Result<Vec<Plan<'q>>, Error> {
    let mut plan = Plan {
        dialect,
        query,
        cuts: vec![Cut::No; query.keys.len()],
        index: None,
        part: Part::All,
    };
    let mut walked = None;
    let mut number = 0;
    for (at, column, calendar) in timed(query) {
        if let Some(length) = cells(dialect, query, column, calendar) {
            plan.cuts[at] = Cut::Grid(length);
            continue;
        }
        let bounds = bounds.ok_or_else(|| read::corrupt("no first and last time"))?;
        let range = bounds.int(number)?.zip(bounds.int(number + 1)?);
        number += 2;
        let starts = range.map_or(Some(Vec::new()), |(first, last)| {
            calendar.starts(first, last, MOST_BUCKETS)
        });
        let index = walkable(dialect, query, column);
        plan.cuts[at] = match (starts, dialect) {
            (None, _) => Cut::Grid(SECOND),
            (Some(starts), Dialect::Postgres) => Cut::At(starts),
            (Some(starts), Dialect::Sqlite) if walked.is_none() && index.is_some() => {
                plan.index = index;
                walked = Some((at, starts));
                Cut::One(None)
            }
            (Some(starts), Dialect::Sqlite) => Cut::Grid(Calendar::grid(&starts).unwrap_or(SECOND)),
        };
    }
    let Some((at, starts)) = walked else {
        return Ok(vec![plan]);
    };
    let (_, GroupKey::Bucket(_, calendar)) = (at, &query.keys[at]) else {
        return Ok(vec![plan]);
    };
    let one = |bucket| {
        let mut cuts = plan.cuts.clone();
        cuts[at] = Cut::One(bucket);
        Plan { cuts, ..plan }
    };
    let buckets = starts.iter().map(|start| Some(calendar.bucket(*start)));
    Ok(buckets.chain([None]).map(one).collect())
}

/// The index in whose order SQLite can walk the times of `column`, one bucket after the other,
/// unless few rows are found by another one.
fn walkable(dialect: Dialect, query: &AggregateQuery, column: &Column) -> Option<&'static str> {
    if dialect != Dialect::Sqlite || is_selective(&query.condition) || query.scope.id.is_some() {
        return None;
    }
    match column {
        Column::CreateTime => Some("records_by_create"),
        Column::UpdateTime => Some("records_by_update"),
        Column::Object(ObjectField::CreationTime) => Some("records_by_creation"),
        _ => None,
    }
}

fn place(column: &Column) -> Place<'_> {
    columns::place(Resource::Records, column)
}

fn rows(out: &mut Statement, dialect: Dialect, query: &AggregateQuery, elsewhere: bool) {
    let parent = match elsewhere && dialect == Dialect::Sqlite {
        true => "+parent",
        false => "parent",
    };
    access_path::scope(out, Resource::Records, &query.scope, parent);
    if query.condition != Condition::All {
        out.push(" AND ");
        test(out, dialect, &query.condition, elsewhere);
    }
}

/// Appends a condition, of few rows where an index has those of one bucket.
fn test(out: &mut Statement, dialect: Dialect, condition: &Condition, few_rows: bool) {
    let writer = Writer::new(dialect, Resource::Records, out);
    let rows = if few_rows { Rows::Few } else { Rows::Many };
    writer.looking_at(rows).condition(condition);
}

impl Plan<'_> {
    /// Whether the values themselves are gathered, which PostgreSQL does on one core.
    pub(crate) fn gathers(&self) -> bool {
        gathers(self.query)
    }

    /// The plans that together do the same, each for a part of a table of so many blocks, or on SQLite rows.
    pub(crate) fn by_place(&self, count: i64) -> Vec<Self> {
        let length = count / i64::from(PARTS) + 1;
        let parts = (0..PARTS).map(|part| {
            let begin = length * i64::from(part);
            let end = (part + 1 < PARTS).then_some(begin + length);
            self.part(match self.dialect {
                Dialect::Sqlite => Part::Rows(begin, end),
                Dialect::Postgres => Part::Blocks(begin, end),
            })
        });
        parts.collect()
    }

    /// The plans that together do the same, each for a part of the time of creation, if that is
    /// what groups are of.
    pub(crate) fn by_time(&self) -> Option<Vec<Self>> {
        let created = Column::Object(ObjectField::CreationTime);
        let (at, ..) = timed(self.query).find(|(_, column, _)| **column == created)?;
        let Cut::At(starts) = &self.cuts[at] else {
            return None;
        };
        let each = starts.len().div_ceil(usize::from(PARTS)).max(1);
        let ends: Vec<i64> = starts.iter().copied().step_by(each).skip(1).collect();
        let from = [i64::MIN].into_iter().chain(ends.iter().copied());
        let to = ends.iter().copied().chain([i64::MAX]);
        let times = from.zip(to).map(Some).chain([None]);
        Some(times.map(|time| self.part(Part::Times(at, time))).collect())
    }

    fn part(&self, part: Part) -> Self {
        Self {
            cuts: self.cuts.clone(),
            part,
            ..*self
        }
    }
}
