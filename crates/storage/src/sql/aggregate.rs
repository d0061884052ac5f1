//! Adding up records in groups.
//!
//! Calendars are cut here, not by the databases, whose time zones may be others: a statement is
//! given where buckets begin, or groups by a grid of which every bucket is a multiple, and each
//! cell of the grid is put into its bucket afterwards.

use super::{
    access_path,
    candidate::conjuncts,
    columns::{self, Holds, Place},
    condition::{Rows, Writer, is_selective, value},
    dialect::Dialect,
    read,
    row::SqlRow,
    statement::{Bind, Statement},
};
use crate::seam::{AggregateQuery, Error, GroupKey, MAX_KEYS, Quantity, Summed};
use hindsight_filter::condition::{Column, Condition, ObjectField, Test};
use hindsight_filter::measure::{Amount, Calendar, DAY, Depth, Key, Sums, Tally};
use hindsight_filter::model::Resource;

/// Most buckets that are named one by one.
const MOST_BUCKETS: usize = 10_000;
/// The finest grid, one second, on which every time zone has its buckets.
const SECOND: i64 = 1_000_000;
/// Values that are kept come in parts: on SQLite of at most so many rows, and on PostgreSQL of the
/// objects that were created in so many microseconds, a day, which its index has.
const SLICE: i64 = 1 << 16;
const SLICE_US: i64 = DAY;
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

    /// The statement. Each row of it is a part of a group.
    pub(crate) fn statement(&self) -> Statement {
        let mut out = Statement::new("SELECT ");
        for at in 0..self.query.keys.len() {
            self.key(&mut out, at);
            out.push(", ");
        }
        let sliced = self.gathers();
        if sliced {
            self.slice(&mut out);
        }
        out.push("count(*)");
        for condition in &self.query.counts {
            out.push(", count(*) FILTER (WHERE ");
            test(&mut out, self.dialect, condition, self.index.is_some());
            out.push(")");
        }
        for amount in &self.query.amounts {
            self.amount(&mut out, amount);
        }
        out.push(" FROM records");
        if let Some(index) = self.index {
            out.push(" INDEXED BY ").push(index);
        }
        out.push(" WHERE 1 = 1");
        let elsewhere = self.index.is_some() || is_selective(&self.query.condition);
        rows(&mut out, self.dialect, self.query, elsewhere);
        self.one_bucket(&mut out);
        self.rows_of_part(&mut out);
        // By place, so that an expression that binds a value is one and the same.
        const PLACES: [&str; MAX_KEYS + 1] =
            ["1", ", 2", ", 3", ", 4", ", 5", ", 6", ", 7", ", 8", ", 9"];
        let grouped = self.query.keys.len() + usize::from(sliced);
        for (at, place) in PLACES.iter().take(grouped).enumerate() {
            out.push(if at == 0 { " GROUP BY " } else { "" })
                .push(place);
        }
        out
    }

    /// Appends in which part of the values a row is.
    fn slice(&self, out: &mut Statement) {
        match self.dialect {
            Dialect::Sqlite => out.push("row_id / ").bind(SLICE),
            Dialect::Postgres => out.push("object_creation_us / ").bind(SLICE_US),
        };
        out.push(", ");
    }

    fn key(&self, out: &mut Statement, at: usize) {
        let (GroupKey::Column(column) | GroupKey::Bucket(column, _)) = &self.query.keys[at];
        match &self.cuts[at] {
            Cut::No => value(out, self.dialect, place(column)),
            Cut::At(starts) => {
                out.push("width_bucket(");
                value(out, self.dialect, place(column));
                out.push(", ")
                    .bind(Bind::Ints(starts.clone()))
                    .push(")::bigint");
            }
            Cut::Grid(length) => {
                // Rounded down, also before 1970.
                out.push("(");
                value(out, self.dialect, place(column));
                out.push(" - ((");
                value(out, self.dialect, place(column));
                out.push(" % ").bind(*length).push(") + ").bind(*length);
                out.push(") % ").bind(*length).push(")");
            }
            Cut::One(_) => {
                out.push("0");
            }
        }
    }

    fn amount(&self, out: &mut Statement, Summed { of, depth }: &Summed) {
        let plain = |out: &mut Statement| match of {
            Quantity::Value(column) => value(out, self.dialect, place(column)),
            Quantity::Between(from, to) => {
                out.push("(");
                value(out, self.dialect, place(to));
                out.push(" - ");
                value(out, self.dialect, place(from));
                out.push(")");
            }
        };
        let quantity = |out: &mut Statement| {
            if !of.is_duration() {
                return plain(out);
            }
            out.push("CASE WHEN ");
            plain(out);
            out.push(" >= 0 THEN ");
            plain(out);
            out.push(" END");
        };
        if *depth == Depth::Values {
            // The rest is known from the values.
            let (before, between, after) = self.dialect.gather();
            out.push(", ").push(before);
            quantity(out);
            out.push(between);
            if !after.is_empty() {
                quantity(out);
                out.push(after);
            }
            return;
        }
        // Of a row below 86,400 seconds and 3,652,060 days: no sum overflows before 10^12 rows.
        let columns = [
            (", max(", ")"),
            (", count(", ")"),
            (", CAST(sum((", ") / 86400000000) AS BIGINT)"),
            (", CAST(sum((", ") % 86400000000 / 1000000) AS BIGINT)"),
            (", CAST(sum((", ") % 1000000) AS BIGINT)"),
            (", min(", ")"),
        ];
        let wanted = if *depth == Depth::Most {
            1
        } else {
            columns.len()
        };
        for (before, after) in columns.into_iter().take(wanted) {
            out.push(before);
            quantity(out);
            out.push(after);
        }
    }

    /// Appends that rows are in the bucket that is walked.
    fn one_bucket(&self, out: &mut Statement) {
        for (key, cut) in self.query.keys.iter().zip(&self.cuts) {
            let (GroupKey::Bucket(column, _), Cut::One(bucket)) = (key, cut) else {
                continue;
            };
            self.within(out, column, *bucket);
        }
    }

    /// Appends that rows are in the part that is read.
    fn rows_of_part(&self, out: &mut Statement) {
        match self.part {
            Part::All => {}
            Part::Rows(from, to) => {
                out.push(" AND row_id >= ").bind(from);
                if let Some(to) = to {
                    out.push(" AND row_id < ").bind(to);
                }
            }
            Part::Blocks(from, to) => {
                out.push(" AND ctid >= ('(' || ").bind(from);
                out.push(" || ',0)')::tid");
                if let Some(to) = to {
                    out.push(" AND ctid < ('(' || ").bind(to);
                    out.push(" || ',0)')::tid");
                }
            }
            Part::Times(at, times) => {
                if let GroupKey::Bucket(column, _) = &self.query.keys[at] {
                    self.within(out, column, times);
                }
            }
        }
    }

    /// Appends that a time is in a range, or that there is none.
    fn within(&self, out: &mut Statement, column: &Column, times: Option<(i64, i64)>) {
        out.push(" AND ");
        value(out, self.dialect, place(column));
        match times {
            None => {
                out.push(" IS NULL");
            }
            Some((from, to)) => {
                out.push(" >= ").bind(from).push(" AND ");
                value(out, self.dialect, place(column));
                out.push(" < ").bind(to);
            }
        }
    }

    /// Adds a row of the statement to the groups.
    ///
    /// # Errors
    /// If it cannot be read, or there are too many groups.
    pub(crate) fn add(&self, row: &impl SqlRow, tally: &mut Tally) -> Result<(), Error> {
        let mut at = self.query.keys.len();
        let mut keys = Vec::with_capacity(at);
        for number in 0..at {
            keys.push(self.read_key(row, number)?);
        }
        at += usize::from(self.gathers());
        let mut next = || {
            at += 1;
            at - 1
        };
        let rows = count(row, next())?;
        if rows == 0 {
            // Of no rows at all there is a row when nothing is grouped.
            return Ok(());
        }
        let mut sums = Sums {
            rows,
            counts: Vec::with_capacity(self.query.counts.len()),
            amounts: Vec::with_capacity(self.query.amounts.len()),
        };
        for _ in &self.query.counts {
            sums.counts.push(count(row, next())?);
        }
        for summed in &self.query.amounts {
            let mut amount = Amount::default();
            if summed.depth == Depth::Values {
                for value in row.ints(next())? {
                    amount.add(value, Depth::Values);
                }
            } else {
                amount.most = row.int(next())?;
            }
            if summed.depth == Depth::Sums {
                amount.count = count(row, next())?;
                amount.days = row.int(next())?.unwrap_or(0);
                let seconds = i128::from(row.int(next())?.unwrap_or(0));
                amount.rest = seconds * 1_000_000 + i128::from(row.int(next())?.unwrap_or(0));
                amount.least = row.int(next())?;
            }
            sums.amounts.push(amount);
        }
        Ok(tally.merge(keys, sums)?)
    }

    fn read_key(&self, row: &impl SqlRow, at: usize) -> Result<Key, Error> {
        Ok(match (&self.query.keys[at], &self.cuts[at]) {
            (GroupKey::Column(column), _) => match columns::holds(column) {
                Holds::Text => read::text(row, at)?.map_or(Key::Missing, Key::Text),
                Holds::Int => row.int(at)?.map_or(Key::Missing, Key::Int),
                Holds::Time => row.int(at)?.map_or(Key::Missing, Key::Time),
            },
            (GroupKey::Bucket(..), Cut::One(bucket)) => {
                bucket.map_or(Key::Missing, |(start, _)| Key::Time(start))
            }
            (GroupKey::Bucket(..), Cut::At(starts)) => match row.int(at)? {
                None => Key::Missing,
                Some(number) => {
                    let start = usize::try_from(number - 1).ok();
                    let start = start.and_then(|number| starts.get(number));
                    Key::Time(*start.ok_or_else(|| read::corrupt("a time before the first"))?)
                }
            },
            (GroupKey::Bucket(_, calendar), _) => row
                .int(at)?
                .map_or(Key::Missing, |cell| Key::Time(calendar.bucket(cell).0)),
        })
    }
}

fn count(row: &impl SqlRow, at: usize) -> Result<u64, Error> {
    u64::try_from(row.int(at)?.unwrap_or(0)).map_err(read::corrupt)
}

/// Keeps the length of a day in SQL and in sums the same.
const _: () = assert!(DAY == 86_400_000_000);
