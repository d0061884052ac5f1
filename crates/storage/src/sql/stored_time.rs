//! Which times the rows of a list can have been stored at, by what a condition says of them.

use super::{
    candidate::conjuncts,
    statement::{Bind, Statement},
};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::model::Resource;

/// Appends what the condition says of the time at which rows were stored, which is in `column`:
/// the tests of `create_time` themselves, and what follows from when an object or a run began or ended,
/// because none was stored earlier or later after that than `lags` says. Each
/// begins with ` AND `.
pub(super) fn times(
    out: &mut Statement,
    resource: Resource,
    condition: &Condition,
    column: &'static str,
) {
    for end in [End::First, End::Last] {
        for bound in bounds(resource, condition, end) {
            out.push(" AND ").push(column);
            out.push(if end == End::First { " >= " } else { " <= " });
            bound.value(out);
        }
    }
}

/// Appends, each after a comma, the bounds of when the last records were stored, or the first ones.
pub(super) fn ends(out: &mut Statement, condition: &Condition, is_last: bool) {
    let end = if is_last { End::Last } else { End::First };
    for bound in bounds(Resource::Records, condition, end) {
        out.push(", ");
        bound.value(out);
    }
}

/// An end of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// When rows were stored, at one end.
struct Bound {
    time: Bind,
    lag: Option<&'static str>,
    end: End,
}

impl Bound {
    fn value(self, out: &mut Statement) {
        out.bind(self.time);
        let Some(lag) = self.lag else { return };
        out.push(match self.end {
            End::First => " + (SELECT least FROM lags WHERE of = '",
            End::Last => " + (SELECT most FROM lags WHERE of = '",
        });
        out.push(lag).push("')");
    }
}

fn bounds(
    resource: Resource,
    condition: &Condition,
    end: End,
) -> impl Iterator<Item = Bound> + use<> {
    let tests = conjuncts(condition).into_iter();
    let bounds = tests.filter_map(|test| {
        let lag = lag(resource, test)?;
        let (above, below) = between(test);
        let time = match end {
            End::First => above?,
            End::Last => below?,
        };
        Some(Bound { time, lag, end })
    });
    bounds.collect::<Vec<_>>().into_iter()
}

/// Whether a condition says when rows were stored.
pub(super) fn has_times(resource: Resource, condition: &Condition) -> bool {
    let tests = conjuncts(condition);
    let mut timed = tests
        .into_iter()
        .filter(|test| lag(resource, test).is_some());
    timed.any(|test| between(test) != (None, None))
}

/// For a test that bounds when a row was stored: how long before that the tested time may be.
fn lag(resource: Resource, test: &Test) -> Option<Option<&'static str>> {
    match (resource, &test.column) {
        (_, Column::CreateTime) => Some(None),
        (Resource::Records, Column::Began | Column::Object(ObjectField::StartTime)) => {
            Some(Some("start"))
        }
        (Resource::Records, Column::Ended | Column::Object(ObjectField::CompletionTime)) => {
            Some(Some("completion"))
        }
        _ => None,
    }
}

/// The times between which a test leaves rows.
fn between(test: &Test) -> (Option<Bind>, Option<Bind>) {
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
    let time = Some(Bind::from(*time));
    match (&test.is, test.negated) {
        (Is::Equal(_), false) => (time.clone(), time),
        (Is::Less(_) | Is::AtMost(_), false) | (Is::Greater(_) | Is::AtLeast(_), true) => {
            (None, time)
        }
        (Is::Greater(_) | Is::AtLeast(_), false) | (Is::Less(_) | Is::AtMost(_), true) => {
            (time, None)
        }
        _ => (None, None),
    }
}
