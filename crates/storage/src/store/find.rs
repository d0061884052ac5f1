//! Finding the rows of a list.

use std::ops::ControlFlow;

use super::planner::choose;
use crate::{
    driver::{Purpose, Reader},
    seam::{Error, ListQuery},
    sql::{
        access_path::{self, AccessPath},
        dialect::Dialect,
        labels,
        list::{self, Part},
        read::ListRow,
        row::{Row, SqlRow as _},
        statement::Statement,
        stored_time,
        time_window::{TimeWindow, Windows},
    },
};
use hindsight_filter::model::Resource;
use hindsight_filter::order::{KeyValue, Position};

/// Rows for which there is room before they come, so that a long list is not moved while it grows.
const MOST_ROOM: usize = 16_000;

/// Finds rows of one list.
pub(super) struct Finder<'f, T> {
    pub(super) reader: &'f mut dyn Reader,
    pub(super) dialect: Dialect,
    pub(super) resource: Resource,
    pub(super) query: &'f ListQuery,
    /// Whether all is read as of one moment already.
    pub(super) in_transaction: bool,
    /// Whether records are read with the columns of their payloads.
    pub(super) columns: bool,
    pub(super) read: &'f (dyn Fn(&Row) -> Result<T, Error> + Sync),
}

impl<'f, T: Send + ListRow> Finder<'f, T> {
    /// Adds rows of one part until the page is full.
    pub(super) async fn fill(&mut self, part: Part, page: &mut Vec<T>) -> Result<(), Error> {
        let Some(limit) = self.left(page) else {
            return Ok(());
        };
        let mut near = None;
        if let Some(prefix) = access_path::prefix_scan(self.dialect, self.resource, self.query) {
            let found = self.rows(self.query, part, prefix, limit).await?;
            if self.is_enough(&found, limit) {
                add(page, found);
                return Ok(());
            }
            near = Some((prefix, i64::try_from(found.len()).unwrap_or(limit)));
            if let Some(all) = self.whole_prefix(part, prefix, limit, found).await? {
                add(page, all);
                return Ok(());
            }
        }
        let choice = choose(self.reader, self.dialect, self.resource, self.query).await?;
        let farther = near.and_then(|(prefix, found)| {
            let paths = (prefix, choice.path);
            access_path::farther_prefix_scan(self.dialect, self.query, paths, (found, limit))
        });
        let mut before = None;
        for first in farther.into_iter().chain(choice.first) {
            let next = |found| access_path::next_after(first, (found, limit), choice.combines);
            let Some(first) = before.map_or(Some(first), next) else {
                break;
            };
            let found = self.rows(self.query, part, first, limit).await?;
            if self.is_enough(&found, limit) {
                add(page, found);
                return Ok(());
            }
            before = i64::try_from(found.len()).ok();
        }
        if let (AccessPath::LabelIndex(None), Some(descending)) =
            (choice.path, stored_time::by_time(self.query))
        {
            return self.by_windows(descending, page).await;
        }
        add(page, self.rows(self.query, part, choice.path, limit).await?);
        Ok(())
    }

    /// The same with what was stored late or early.
    pub(super) async fn fill_late(&mut self, part: Part, page: &mut Vec<T>) -> Result<(), Error> {
        if let Some(limit) = self.left(page) {
            let late = self.rows(self.query, part, AccessPath::Late, limit);
            add(page, late.await?);
        }
        Ok(())
    }

    /// How many rows the page still takes.
    fn left(&self, page: &[T]) -> Option<i64> {
        let taken = i64::try_from(page.len()).expect("a page is smaller than an i64");
        Some(i64::from(self.query.limit.get()) - taken).filter(|left| *left > 0)
    }

    fn is_enough(&self, found: &[T], limit: i64) -> bool {
        let bytes: usize = found.iter().map(ListRow::bytes).sum();
        i64::try_from(found.len()).is_ok_and(|rows| rows >= limit)
            || self.query.max_bytes.is_some_and(|most| bytes >= most)
    }

    /// Adds rows with labels until the page is full, those of one window of time after the other.
    async fn by_windows(&mut self, descending: bool, page: &mut Vec<T>) -> Result<(), Error> {
        let Some(span) = self.reader.row(&labels::span(self.query)).await? else {
            return Ok(());
        };
        let (Some(mut first), Some(mut last)) = (span.int(0)?, span.int(1)?) else {
            return Ok(());
        };
        if let Some(after) = self.query.after.as_ref().and_then(first_key) {
            match descending {
                true => last = last.min(after),
                false => first = first.max(after),
            }
        }
        let before = page.len();
        let mut windows = Windows::new(TimeWindow::new(first, last), descending);
        let mut seek = Seek::NotYet;
        while let Some(part) = windows.next() {
            let units = |within: TimeWindow| Some((within, within.sought(descending)?));
            let sought = match seek {
                // In all that is left, if that is not too long to ask for.
                Seek::Weeks => units(windows.with_rest(part)).or_else(|| units(part)),
                Seek::Days => units(part),
                Seek::NotYet | Seek::Done => None,
            };
            if let Some((within, units)) = sought {
                let first = labels::first_stored(self.query, &units);
                let first = self.reader.row(&first).await?;
                let first = first.map(|row| row.int(0)).transpose()?.flatten();
                let unit = units.into_iter().find(|unit| Some(unit.first) == first);
                match unit {
                    Some(unit) => {
                        seek = match unit.is_day() {
                            true => Seek::Done,
                            false => Seek::Days,
                        };
                        windows.skip_to(within, unit);
                    }
                    None if within != part => break,
                    None => windows.found(part, None, 0, 1),
                }
                continue;
            }
            let bytes = page[before..].iter().map(ListRow::bytes).sum();
            let (Some(limit), Some(rest)) = (self.left(page), list::rest(self.query, bytes)) else {
                break;
            };
            let path = AccessPath::LabelIndex(Some(part));
            let rows = self.rows(&rest, Part::With, path, limit).await?;
            let found = i64::try_from(rows.len()).unwrap_or(limit);
            let first = rows.first().and_then(|row| first_key(row.position()));
            windows.found(part, first, found, limit - found);
            seek = match (seek, found) {
                (Seek::Done, _) | (_, 1..) => Seek::Done,
                _ => Seek::Weeks,
            };
            add(page, rows);
        }
        Ok(())
    }

    /// The rows that were `found` by a prefix scan if none are beyond; as of one moment, because
    /// rows that go meanwhile would bring others into the prefix that were not looked at.
    async fn whole_prefix(
        &mut self,
        part: Part,
        prefix: AccessPath<'_>,
        limit: i64,
        found: Vec<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        let beyond = list::beyond_prefix(self.dialect, self.resource, self.query, part, prefix);
        if self.exists(&beyond).await? {
            return Ok(None);
        }
        if self.in_transaction {
            return Ok(Some(found));
        }
        self.reader.begin(Purpose::List).await?;
        let all = match self.exists(&beyond).await? {
            true => None,
            false => Some(self.rows(self.query, part, prefix, limit).await?),
        };
        self.reader.end().await?;
        Ok(all)
    }

    /// Whether a statement gives a row.
    async fn exists(&mut self, statement: &Statement) -> Result<bool, Error> {
        Ok(self.reader.row(statement).await?.is_some())
    }

    /// The rows of a list.
    async fn rows(
        &mut self,
        query: &ListQuery,
        part: Part,
        path: AccessPath<'_>,
        limit: i64,
    ) -> Result<Vec<T>, Error> {
        let statement = match self.columns {
            true => list::list_columns(self.dialect, query, part, path, limit)?,
            false => list::list(self.dialect, self.resource, query, part, path, limit)?,
        };
        let most = query.max_bytes.filter(|_| !T::CUT_BY_STATEMENT);
        let mut rest = most.unwrap_or(usize::MAX);
        // What is not used of it takes no memory.
        let room = usize::try_from(limit).unwrap_or(MOST_ROOM);
        let mut rows = Vec::with_capacity(room.min(MOST_ROOM));
        let read = self.read;
        let mut take = |row: Row| {
            let row = read(&row)?;
            rest = rest.saturating_sub(row.bytes());
            rows.push(row);
            Ok(match rest {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        self.reader.each(&statement, &mut take).await?;
        Ok(rows)
    }
}

/// Adds rows to a page, of which most have all rows at once.
fn add<T>(page: &mut Vec<T>, rows: Vec<T>) {
    match page.is_empty() {
        true => *page = rows,
        false => page.extend(rows),
    }
}

/// How it is found out where the first rows of a label are.
#[derive(Debug, Clone, Copy)]
enum Seek {
    /// The newest day may have them.
    NotYet,
    /// It has none: by weeks, and days that are no whole week.
    Weeks,
    /// By the days of the week that was found.
    Days,
    /// They are found, or their day is.
    Done,
}

/// When the row of a list by time was stored.
fn first_key(position: &Position) -> Option<i64> {
    match position.keys.first()? {
        Some(KeyValue::Int(time)) => Some(*time),
        _ => None,
    }
}
