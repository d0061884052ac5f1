//! When the rows of a list can have been stored, by what a condition says of them.
//!
//! Nearly every object, and every run, is stored about when it began and completed. What was stored
//! much later or earlier is in an index of its own. A list in the order of storing that says when runs
//! began or ended is up to three, one after the other: what was stored at those times, and before
//! and after that only what is in that index.

use super::{
    candidate::conjuncts,
    condition::is_selective,
    statement::{Bind, Statement},
};
use crate::seam::ListQuery;
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::model::Resource;
use jiff::Timestamp;

/// How long after it began an object or a run is stored, in microseconds: at least and at most.
const AFTER_START: (i64, i64) = (-21_600_000_000, 21_600_000_000);
/// The same after it completed: it may have been stored when it began.
const AFTER_COMPLETION: (i64, i64) = (-21_600_000_000, 3_600_000_000);

/// What was stored at another time than these say, in the words of the index `records_late`.
pub(super) const LATE: &str = "(create_us - object_start_us NOT BETWEEN -21600000000 AND 21600000000 \
     OR create_us - nullif(run_began_us, -9223372036854775807) \
     NOT BETWEEN -21600000000 AND 21600000000 \
     OR create_us - object_completion_us NOT BETWEEN -21600000000 AND 3600000000 \
     OR create_us - nullif(run_ended_us, -9223372036854775807) \
     NOT BETWEEN -21600000000 AND 3600000000)";

/// Whether the list is in the order of when rows were stored, alone, and if so in which.
pub(crate) fn by_time(query: &ListQuery) -> Option<bool> {
    match query.order.keys() {
        [key] if key.column == Column::CreateTime => Some(key.descending),
        _ => None,
    }
}

/// A part of a list: the rows that were stored in a stretch of time.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    /// The list, with the time of storing in its condition.
    pub(crate) query: ListQuery,
    /// Whether all its rows are in the index of what was stored late or early.
    pub(crate) is_late: bool,
}

/// The stretches of a list, in its order; mostly it is one.
pub(crate) fn stretches(resource: Resource, query: ListQuery) -> Vec<Stretch> {
    let whole = |query| Stretch {
        query,
        is_late: false,
    };
    let (first, last) = timely(resource, &query.condition);
    let is_small = query.scope.id.is_some() || is_selective(&query.condition);
    let Some(descending) = by_time(&query).filter(|_| !is_small && (first, last) != (None, None))
    else {
        return vec![whole(query)];
    };
    let between = |first: Option<Is>, last: Option<Is>, is_late| {
        let bounds = [first, last].into_iter().flatten().map(|is| {
            Condition::Test(Test {
                column: Column::CreateTime,
                is,
                negated: false,
            })
        });
        let all = [query.condition.clone()].into_iter().chain(bounds);
        let query = ListQuery {
            condition: Condition::And(all.collect()),
            ..query.clone()
        };
        Stretch { query, is_late }
    };
    let time = |us| {
        Value::Time(Timestamp::from_microsecond(us).unwrap_or(match us < 0 {
            true => Timestamp::MIN,
            false => Timestamp::MAX,
        }))
    };
    if first.zip(last).is_some_and(|(first, last)| first > last) {
        return vec![between(None, None, true)];
    }
    let before = first.map(|first| between(None, Some(Is::Less(time(first))), true));
    let after = last.map(|last| between(Some(Is::Greater(time(last))), None, true));
    let (first, last) = (
        first.map(time).map(Is::AtLeast),
        last.map(time).map(Is::AtMost),
    );
    let mut all: Vec<_> = before
        .into_iter()
        .chain([between(first, last, false)])
        .chain(after)
        .collect();
    if descending {
        all.reverse();
    }
    all
}

/// The first and the last time at which rows were stored that are neither late nor early.
fn timely(resource: Resource, condition: &Condition) -> (Option<i64>, Option<i64>) {
    let (mut first, mut last) = (None, None);
    if resource == Resource::Results {
        return (first, last);
    }
    for test in conjuncts(condition) {
        let (least, most) = match &test.column {
            Column::Began | Column::Object(ObjectField::StartTime) => AFTER_START,
            Column::Ended | Column::Object(ObjectField::CompletionTime) => AFTER_COMPLETION,
            _ => continue,
        };
        let (above, below) = between(test);
        if let Some(above) = above {
            let bound = above.as_microsecond().saturating_add(least);
            first = Some(first.map_or(bound, |first: i64| first.max(bound)));
        }
        if let Some(below) = below {
            let bound = below.as_microsecond().saturating_add(most);
            last = Some(last.map_or(bound, |last: i64| last.min(bound)));
        }
    }
    (first, last)
}

/// Appends what the condition says of the time at which rows were stored, which is in `column`. Each
/// begins with ` AND `.
pub(super) fn times(out: &mut Statement, condition: &Condition, column: &'static str) {
    for is_last in [false, true] {
        for bound in bounds(condition, is_last) {
            out.push(" AND ").push(column);
            out.push(if is_last { " <= " } else { " >= " }).bind(bound);
        }
    }
}

/// Appends, each after a comma, the bounds of when the last records were stored, or the first ones.
pub(super) fn ends(out: &mut Statement, condition: &Condition, is_last: bool) {
    for bound in bounds(condition, is_last) {
        out.push(", ").bind(bound);
    }
}

fn bounds(condition: &Condition, is_last: bool) -> Vec<Bind> {
    let tests = conjuncts(condition).into_iter();
    let tests = tests.filter(|test| test.column == Column::CreateTime);
    let ends = tests.map(between);
    let bounds = ends.filter_map(|(above, below)| if is_last { below } else { above });
    bounds.map(Bind::from).collect()
}

/// Whether a condition says when rows were stored.
pub(super) fn has_times(condition: &Condition) -> bool {
    [false, true]
        .into_iter()
        .any(|is_last| !bounds(condition, is_last).is_empty())
}

/// The times between which a test leaves rows.
fn between(test: &Test) -> (Option<Timestamp>, Option<Timestamp>) {
    let (Is::Equal(value)
    | Is::Less(value)
    | Is::AtMost(value)
    | Is::Greater(value)
    | Is::AtLeast(value)) = &test.is
    else {
        return (None, None);
    };
    let Value::Time(time) = value else {
        return (None, None);
    };
    let time = Some(*time);
    match (&test.is, test.negated) {
        (Is::Equal(_), false) => (time, time),
        (Is::Less(_) | Is::AtMost(_), false) | (Is::Greater(_) | Is::AtLeast(_), true) => {
            (None, time)
        }
        (Is::Greater(_) | Is::AtLeast(_), false) | (Is::Less(_) | Is::AtMost(_), true) => {
            (time, None)
        }
        _ => (None, None),
    }
}
