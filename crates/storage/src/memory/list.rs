//! Lists of maps: every row is looked at, those that pass are sorted, and a page is cut out.

use super::{Numbered, Rows};
use crate::seam::{ListQuery, Listed, RecordColumns};
use hindsight_filter::Position;
use hindsight_filter::columns::of_result;
use hindsight_filter::condition::{Column, Value};
use hindsight_filter::model::{ParentPattern, Record, ResultName, ResultPattern, RunResult, Tier};

/// Whether a result is of a scope.
pub(super) fn in_scope(scope: &ResultPattern, name: &ResultName) -> bool {
    let of_parent = match &scope.parent {
        ParentPattern::Any => true,
        ParentPattern::Exact(parent) => name.parent() == parent,
    };
    of_parent && scope.id.as_deref().is_none_or(|id| id == name.id())
}

pub(super) fn results(rows: &Rows, query: &ListQuery) -> Vec<Listed<RunResult>> {
    let rows = rows.results.values();
    let rows = rows.filter(|row| in_scope(&query.scope, &row.row.name));
    let places = rows.filter_map(|row| {
        let column = |column: &Column| of_result(&row.row, column);
        Some((position(row.id, query, &column)?, row))
    });
    let size = |row: &&Numbered<RunResult>| row.row.weight();
    let page = page(places.collect(), query, query.max_bytes, size).into_iter();
    page.map(|(position, row)| Listed {
        item: row.row.clone(),
        position,
        tier: Tier::Hot,
    })
    .collect()
}

pub(super) fn records(rows: &Rows, query: &ListQuery) -> Vec<Listed<Record>> {
    let size = |row: &RecordColumns| row.record.data.as_ref().map_or(0, |data| data.value.len());
    let most = query.max_bytes.filter(|_| query.bodies);
    let page = page(with_columns(rows, query), query, most, size).into_iter();
    page.map(|(position, row)| Listed {
        item: row.record,
        position,
        tier: Tier::Hot,
    })
    .collect()
}

pub(super) fn columns(rows: &Rows, query: &ListQuery) -> Vec<Listed<RecordColumns>> {
    let query = ListQuery {
        bodies: false,
        ..query.clone()
    };
    let rows = with_columns(rows, &query);
    let page = page(rows, &query, query.max_bytes, RecordColumns::weight).into_iter();
    page.map(|(position, item)| Listed {
        item,
        position,
        tier: Tier::Hot,
    })
    .collect()
}

/// Records that pass with their columns, and with their payloads if those are asked for.
fn with_columns(rows: &Rows, query: &ListQuery) -> Vec<(Position, RecordColumns)> {
    let rows = rows.records.values();
    let rows = rows.filter(|row| in_scope(&query.scope, row.row.record.name.result()));
    let rows = rows.filter_map(|row| {
        let column = |column: &Column| row.row.column(column);
        let position = position(row.id, query, &column)?;
        let mut record = row.row.record.clone();
        if let Some(data) = record.data.as_mut().filter(|_| !query.bodies) {
            data.value.clear();
        }
        let object = row.row.object.clone();
        Some((position, RecordColumns { record, object }))
    });
    rows.collect()
}

/// The place of a row, if it passes.
fn position(
    id: i64,
    query: &ListQuery,
    column: &dyn Fn(&Column) -> Option<Value>,
) -> Option<Position> {
    let passes = query.condition.passes(column);
    passes.then(|| query.order.position(id, column))
}

fn page<T>(
    mut rows: Vec<(Position, T)>,
    query: &ListQuery,
    most: Option<usize>,
    size: impl Fn(&T) -> usize,
) -> Vec<(Position, T)> {
    rows.sort_by(|(a, _), (b, _)| query.order.compare(a, b));
    if let Some(after) = &query.after {
        rows.retain(|(place, _)| query.order.compare(place, after).is_gt());
    }
    rows.truncate(usize::try_from(query.limit.get()).unwrap_or(usize::MAX));
    let Some(most) = most else {
        return rows;
    };
    let mut before = 0;
    let end = rows.iter().position(|(_, row)| {
        let is_beyond = before >= most.max(1);
        before += size(row);
        is_beyond
    });
    rows.truncate(end.unwrap_or(rows.len()));
    rows
}
