//! Which files can have rows of a list.

use hindsight_filter::{
    Order, Position,
    condition::{Column, Condition, Is, Test, Value},
    model::{ParentPattern, ResultPattern, Tier},
    order::KeyValue,
};
use jiff::Timestamp;

use crate::seam::ArchiveFile;

/// Whether a file can have rows in a scope that pass a condition, by what its index says.
pub(super) fn may_have(file: &ArchiveFile, scope: &ResultPattern, condition: &Condition) -> bool {
    let of_parent = match &scope.parent {
        ParentPattern::Any => true,
        ParentPattern::Exact(parent) => file.parent == *parent,
    };
    of_parent && may_pass(file, condition)
}

fn may_pass(file: &ArchiveFile, condition: &Condition) -> bool {
    match condition {
        Condition::All => true,
        Condition::Nothing => false,
        Condition::And(parts) => parts.iter().all(|part| may_pass(file, part)),
        Condition::Or(parts) => parts.iter().any(|part| may_pass(file, part)),
        Condition::Test(test) => may_pass_test(file, test),
    }
}

fn may_pass_test(file: &ArchiveFile, test: &Test) -> bool {
    if test.column == Column::Parent {
        let parent = Value::Text(file.parent.as_str().to_owned());
        return test.passes(Some(&parent));
    }
    if test.column == Column::Tier {
        return test.passes(Some(&Value::Text(Tier::Cold.as_str().to_owned())));
    }
    if test.column != Column::CreateTime || test.negated {
        return true;
    }
    match &test.is {
        Is::Equal(Value::Time(time)) => (file.begin..=file.end).contains(time),
        Is::Less(Value::Time(time)) => file.begin < *time,
        Is::AtMost(Value::Time(time)) => file.begin <= *time,
        Is::Greater(Value::Time(time)) => *time < file.end,
        Is::AtLeast(Value::Time(time)) => *time <= file.end,
        _ => true,
    }
}

/// What rows of a list pass that come after one row and before another: bounds of their time of storing, if that is
/// the first key of the order.
pub(super) fn between(
    order: &Order,
    after: Option<&Position>,
    until: Option<&Position>,
) -> Condition {
    let Some(key) = order
        .keys()
        .first()
        .filter(|key| key.column == Column::CreateTime)
    else {
        return Condition::All;
    };
    let (earliest, latest) = match key.descending {
        true => (until, after),
        false => (after, until),
    };
    let bound = |place: Option<&Position>, is: fn(Value) -> Is| {
        let time = Timestamp::from_microsecond(created(place?)?).ok()?;
        Some(Condition::Test(Test {
            column: Column::CreateTime,
            is: is(Value::Time(time)),
            negated: false,
        }))
    };
    let bounds = [bound(earliest, Is::AtLeast), bound(latest, Is::AtMost)];
    Condition::And(bounds.into_iter().flatten().collect())
}

/// The time of storing in a position of an order of which it is the first key, in microseconds.
pub(super) fn created(position: &Position) -> Option<i64> {
    match position.keys.first()? {
        Some(KeyValue::Int(us)) => Some(*us),
        _ => None,
    }
}

/// Where the first row of a file can be in an order: its time of storing, if that is the first key.
pub(super) fn first(file: &ArchiveFile, order: &Order) -> Option<Timestamp> {
    let key = order.keys().first()?;
    (key.column == Column::CreateTime).then_some(match key.descending {
        true => file.end,
        false => file.begin,
    })
}

/// Whether all rows of a file come after a row that was stored first at this time.
pub(super) fn is_beyond(file: &ArchiveFile, order: &Order, last_us: i64) -> bool {
    let descends = order.keys().first().is_some_and(|key| key.descending);
    first(file, order).is_some_and(|first| match descends {
        true => first.as_microsecond() < last_us,
        false => last_us < first.as_microsecond(),
    })
}
