//! From groups to the values of a reply.

use std::{cmp::Ordering, sync::Arc};

use hindsight_run::keys;

use super::{
    Measure,
    interval::Interval,
    parse::{GroupBy, Moment, Plan},
};
use crate::query::{Aggregate, Grouping};
use hindsight_filter::measure::{self, Calendar, Key, Shape, Sums, Tally, TooManyGroups};
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{
    CostBudget, Filter, FilterError, Term,
    condition::{Column, Condition, Is, ObjectField, Test, Value as Asked},
};
use hindsight_storage::{GroupKey, Quantity, Summed};

const REPOSITORY: &str = r#"data.metadata.annotations["pipelinesascode.tekton.dev/repository"]"#;

/// The reasons that are counted by themselves, in the order of the counts.
const REASONS: [&[&str]; 4] = [
    &["Succeeded", "Completed"],
    &["Failed"],
    &["Cancelled"],
    &["Running"],
];
/// The place of the count of runs that go on.
const RUNNING: usize = 3;
/// The place of the count of all others.
const OTHERS: usize = REASONS.len();

/// A value in a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Absent value: the records of the group lack what is measured.
    Null,
    /// A count, or seconds since 1970.
    Number(i64),
    /// A name or a duration.
    Text(String),
}

/// One group of a reply, in the order in which it is given out.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What the records of the group share, if groups were asked for.
    pub group: Option<Value>,
    /// Requested measures with their values, in the order of the request.
    pub measures: Vec<(Measure, Value)>,
}

fn object(field: ObjectField) -> Column {
    Column::Object(field)
}

fn moment(moment: Moment) -> Column {
    object(match moment {
        Moment::Creation => ObjectField::CreationTime,
        Moment::Start => ObjectField::StartTime,
        Moment::Completion => ObjectField::CompletionTime,
    })
}

/// What is to be added up for a plan.
pub(super) fn question(
    plan: &Plan,
    scope: ResultPattern,
    filter: Arc<Filter>,
) -> Result<Aggregate, FilterError> {
    let stored = |column| Grouping::Stored(GroupKey::Column(column));
    let namespace = || stored(object(ObjectField::Namespace));
    let keys = match plan.group_by {
        None => Vec::new(),
        Some(GroupBy::Time(unit, at)) => {
            let calendar = Calendar::utc(unit);
            vec![Grouping::Stored(GroupKey::Bucket(moment(at), calendar))]
        }
        Some(GroupBy::Namespace) => vec![namespace()],
        Some(GroupBy::Pipeline) => {
            let label = Column::Label(keys::PIPELINE.to_owned());
            vec![namespace(), stored(label)]
        }
        Some(GroupBy::Repository) => {
            let term = Term::compile(REPOSITORY, Resource::Records, &mut CostBudget::small())?;
            vec![namespace(), Grouping::by(term)]
        }
    };
    let test = |reasons: &[&str], negated| {
        let values = reasons.iter().map(|&reason| Asked::Text(reason.to_owned()));
        Condition::Test(Test {
            column: object(ObjectField::Reason),
            is: Is::OneOf(values.collect()),
            negated,
        })
    };
    let has_ended = |is_so: bool| {
        Condition::Test(Test {
            column: Column::Ended,
            is: Is::Present,
            negated: !is_so,
        })
    };
    let mut counts: Vec<_> = REASONS.iter().map(|reasons| test(reasons, false)).collect();
    // Of one that left the cluster unfinished, it is the last reason that is known.
    let running = counts[RUNNING].clone();
    counts[RUNNING] = Condition::And(vec![running.clone(), has_ended(false)]);
    let others = test(&REASONS.concat(), true);
    counts.push(Condition::Or(vec![
        others,
        Condition::And(vec![running, has_ended(true)]),
    ]));
    let summed = |of| Summed { of, sampled: false };
    Ok(Aggregate {
        scope,
        filter,
        keys,
        counts,
        amounts: vec![
            summed(Quantity::Between(
                moment(Moment::Start),
                moment(Moment::Completion),
            )),
            summed(Quantity::Value(moment(Moment::Start))),
        ],
    })
}

/// The reply to a plan, given the groups.
pub(super) fn reply(plan: Plan, groups: Vec<measure::Group>) -> Result<Vec<Group>, TooManyGroups> {
    let shape = Shape {
        counts: OTHERS + 1,
        amounts: 2,
    };
    let mut named = Tally::new(shape);
    if plan.group_by.is_none() && groups.is_empty() {
        // One group is there even when nothing matches.
        named.merge(vec![Key::Missing], Sums::empty(shape))?;
    }
    for group in groups {
        // What is missing and what is empty is named the same.
        named.merge(vec![name(plan.group_by, &group.keys)], group.sums)?;
    }
    let mut groups = named.finish();
    if let Some((measure, descending)) = plan.order {
        groups.sort_by(|a, b| {
            let order = compare(&a.sums, &b.sums, measure);
            if descending { order.reverse() } else { order }
        });
    }
    let reply = groups.into_iter().map(|group| Group {
        group: plan.group_by.map(|_| match group.keys.into_iter().next() {
            Some(Key::Time(us)) => Value::Number(us.div_euclid(1_000_000)),
            Some(Key::Text(text)) => Value::Text(text),
            _ => Value::Null,
        }),
        measures: plan
            .measures
            .iter()
            .map(|&measure| (measure, value(&group.sums, measure)))
            .collect(),
    });
    Ok(reply.collect())
}

fn name(by: Option<GroupBy>, keys: &[Key]) -> Key {
    let text = |at: usize| match keys.get(at) {
        Some(Key::Text(text)) => text.as_str(),
        _ => "",
    };
    match by {
        Some(GroupBy::Pipeline | GroupBy::Repository) => {
            Key::Text(format!("{}/{}", text(0), text(1)))
        }
        _ => keys.first().cloned().unwrap_or(Key::Missing),
    }
}

fn value(sums: &Sums, measure: Measure) -> Value {
    let count = |count: u64| Value::Number(i64::try_from(count).unwrap_or(i64::MAX));
    let text = |interval: Option<Interval>| {
        interval.map_or(Value::Null, |interval| Value::Text(interval.to_string()))
    };
    match measure {
        Measure::Total => count(sums.rows),
        Measure::Succeeded => count(sums.counts[0]),
        Measure::Failed => count(sums.counts[1]),
        Measure::Cancelled => count(sums.counts[2]),
        Measure::Running => count(sums.counts[RUNNING]),
        Measure::Others => count(sums.counts[OTHERS]),
        Measure::LastRuntime => sums.amounts[1]
            .most
            .map_or(Value::Null, |us| Value::Number(us.div_euclid(1_000_000))),
        _ => text(interval(sums, measure)),
    }
}

/// A measure that is a duration.
fn interval(sums: &Sums, measure: Measure) -> Option<Interval> {
    let took = &sums.amounts[0];
    let sum = || (took.count > 0).then(|| Interval::of(took.days, took.rest));
    match measure {
        Measure::AvgDuration => Some(sum()?.over(i64::try_from(took.count).ok()?)),
        Measure::TotalDuration => sum(),
        Measure::MaxDuration => took.most.map(Interval::between),
        Measure::MinDuration => took.least.map(Interval::between),
        _ => None,
    }
}

/// Groups without the measure come last ascending, as PostgreSQL sorts NULL.
fn compare(a: &Sums, b: &Sums, measure: Measure) -> Ordering {
    let key = |sums: &Sums| match value(sums, measure) {
        Value::Number(number) => Some(number),
        Value::Null | Value::Text(_) => interval(sums, measure).map(Interval::length),
    };
    match (key(a), key(b)) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}
