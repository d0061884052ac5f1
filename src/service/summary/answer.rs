//! From groups to the values of a reply.

use std::{cmp::Ordering, sync::Arc};

use hindsight_run::keys;

use super::{
    Measure,
    interval::Interval,
    parse::{GroupBy, Moment, Plan},
};
use crate::query::{Aggregate, Grouping};
use hindsight_filter::measure::{self, Calendar, Depth, Key, Shape, Sums, Tally, TooManyGroups};
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{
    CostBudget, Filter, FilterError, Term,
    condition::{Column, Condition, Is, ObjectField, Test, Value as Asked},
};
use hindsight_storage::{GroupKey, Quantity, Summed};

const REPOSITORY: &str = r#"data.metadata.annotations["pipelinesascode.tekton.dev/repository"]"#;

/// The reasons that are counted by themselves: of success, failure, cancelling and going on.
const REASONS: [&[&str]; 4] = [
    &["Succeeded", "Completed"],
    &["Failed"],
    &["Cancelled"],
    &["Running"],
];

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
    Ok(Aggregate {
        scope,
        filter,
        keys,
        counts: counts(plan).map(|(_, test)| test).collect(),
        amounts: amounts(&plan.measures),
    })
}

/// The measures that are how many records pass a test, each with its test.
fn counts(plan: &Plan) -> impl Iterator<Item = (Measure, Condition)> {
    let measures = plan.measures.iter();
    measures.filter_map(|&measure| Some((measure, counted(measure)?)))
}

/// The test that the records pass of which a measure is the number.
fn counted(measure: Measure) -> Option<Condition> {
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
    let [succeeded, failed, cancelled, running] = REASONS;
    let running = test(running, false);
    Some(match measure {
        Measure::Succeeded => test(succeeded, false),
        Measure::Failed => test(failed, false),
        Measure::Cancelled => test(cancelled, false),
        // Of one that left the cluster unfinished, it is the last reason that is known.
        Measure::Running => Condition::And(vec![running, has_ended(false)]),
        Measure::Others => Condition::Or(vec![
            test(&REASONS.concat(), true),
            Condition::And(vec![running, has_ended(true)]),
        ]),
        _ => return None,
    })
}

/// What is added up of the numbers of records: how long they took, and after that when they began, if it is asked for.
fn amounts(measures: &[Measure]) -> Vec<Summed> {
    let (start, completion) = (moment(Moment::Start), moment(Moment::Completion));
    let depth = |measure: &Measure| match measure {
        Measure::MaxDuration => Some(Depth::Most),
        Measure::AvgDuration | Measure::MinDuration | Measure::TotalDuration => Some(Depth::Sums),
        _ => None,
    };
    let took = measures.iter().filter_map(depth).max().map(|depth| Summed {
        of: Quantity::Between(start.clone(), completion),
        depth,
    });
    let began = Summed {
        of: Quantity::Value(start),
        depth: Depth::Most,
    };
    let began = measures.contains(&Measure::LastRuntime).then_some(began);
    took.into_iter().chain(began).collect()
}

/// The reply to a plan, given the groups.
pub(super) fn reply(plan: Plan, groups: Vec<measure::Group>) -> Result<Vec<Group>, TooManyGroups> {
    let counted: Vec<Measure> = counts(&plan).map(|(measure, _)| measure).collect();
    let shape = Shape {
        counts: counted.len(),
        amounts: amounts(&plan.measures).len(),
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
            let order = compare(&counted, [&a.sums, &b.sums], measure);
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
            .map(|&measure| (measure, value(&counted, &group.sums, measure)))
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

/// What a measure is of sums, which have the counts of `counted`.
fn value(counted: &[Measure], sums: &Sums, measure: Measure) -> Value {
    let count = |count: u64| Value::Number(i64::try_from(count).unwrap_or(i64::MAX));
    let text = |interval: Option<Interval>| {
        interval.map_or(Value::Null, |interval| Value::Text(interval.to_string()))
    };
    match measure {
        Measure::Total => count(sums.rows),
        Measure::LastRuntime => {
            let last = sums.amounts.last().and_then(|began| began.most);
            last.map_or(Value::Null, |us| Value::Number(us.div_euclid(1_000_000)))
        }
        _ => match counted.iter().position(|one| *one == measure) {
            Some(at) => count(sums.counts[at]),
            None => text(interval(sums, measure)),
        },
    }
}

/// A measure that is a duration.
fn interval(sums: &Sums, measure: Measure) -> Option<Interval> {
    let took = sums.amounts.first()?;
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
fn compare(counted: &[Measure], groups: [&Sums; 2], measure: Measure) -> Ordering {
    let key = |sums: &Sums| match value(counted, sums, measure) {
        Value::Number(number) => Some(number),
        Value::Null | Value::Text(_) => interval(sums, measure).map(Interval::length),
    };
    let [a, b] = groups.map(key);
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}
