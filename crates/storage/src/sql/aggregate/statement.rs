//! The statement of a plan.

use hindsight_filter::condition::Column;
use hindsight_filter::measure::{DAY, Depth};

use super::{Cut, Part, Plan, place, rows, test};
use crate::{
    seam::{GroupKey, MAX_KEYS, Quantity, Summed},
    sql::{
        condition::{is_selective, value},
        dialect::Dialect,
        statement::{Bind, Statement},
    },
};

/// Values that are kept come in parts: on SQLite of at most so many rows, and on PostgreSQL of the
/// objects that were created in so many microseconds, a day, which its index has.
const SLICE: i64 = 1 << 16;
const SLICE_US: i64 = DAY;

impl Plan<'_> {
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
}

/// Keeps the length of a day in SQL and in sums the same.
const _: () = assert!(DAY == 86_400_000_000);
