//! From sums to an answer.

use std::cmp::Ordering;

use hindsight_run::Outcome;
use jiff::{Timestamp, tz::TimeZone};

use super::{
    By, Plan,
    groups::GroupBy,
    measures::{Function, JUDGED, Measure, Subject, Tallied},
};
use hindsight_filter::measure::{Group, Key, RELATIVE_ERROR, Sums};

/// A value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// There is nothing to measure, or the records lack it.
    Null,
    /// A boolean group key; measures are never boolean.
    Bool(bool),
    /// A number, or a length of time in seconds.
    Number(f64),
    /// A group key that is text, or the name of an outcome.
    Text(String),
    /// A time, and how it is said in the time zone of the question.
    Time(i64, String),
}

impl Value {
    /// As a number; a time in seconds since 1970.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of centuries fit")]
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Time(us, _) => Some(*us as f64 / 1e6),
            _ => None,
        }
    }

    fn time(us: i64, zone: &TimeZone) -> Self {
        let text = Timestamp::from_microsecond(us).map_or_else(
            |_out_of_range| us.to_string(),
            |time| {
                let zoned = time.to_zoned(zone.clone());
                if *zone == TimeZone::UTC {
                    time.to_string()
                } else {
                    zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
                }
            },
        );
        Self::Time(us, text)
    }
}

/// One group of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredGroup {
    /// What its records share, by what was asked for.
    pub keys: Vec<(String, Value)>,
    /// Values by the name of their measure, in the order asked for.
    pub measures: Vec<(String, Value)>,
    /// Which of that is sketched.
    pub approximate: Vec<String>,
}

/// Answer to an `AggregateAsk`, after `having`, order and limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The groups, in order.
    pub groups: Vec<AnsweredGroup>,
    /// How many more there are.
    pub left_out: u64,
    /// How many records were measured, in all groups.
    pub records: u64,
    /// How far what is approximate may be off, as a part of its value; 0 if nothing is.
    pub relative_error: f64,
}

/// What was asked of the groups.
pub(super) fn answer(plan: &Plan, tally: &Tallied, mut groups: Vec<Group>) -> Answered {
    let records = groups.iter().map(|group| group.sums.rows).sum();
    groups.retain_mut(|group| {
        plan.having
            .holds(&mut |measure| value(measure, tally, &mut group.sums, &plan.zone))
    });
    if !plan.order.is_empty() {
        let keyed = groups.into_iter().map(|mut group| {
            let order = plan.order.iter().map(|order| match order.by {
                By::Key(at) => Sorted::Key(group.keys[at].clone()),
                By::Measure(at) => {
                    let value = value(&plan.measures[at], tally, &mut group.sums, &plan.zone);
                    Sorted::Number(value.number())
                }
            });
            (order.collect::<Vec<_>>(), group)
        });
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, plan));
        groups = keyed.into_iter().map(|(_, group)| group).collect();
    }
    let limit = plan.limit.get() as usize;
    let left_out = groups.len().saturating_sub(limit) as u64;
    groups.truncate(limit);
    let groups: Vec<_> = groups
        .into_iter()
        .map(|group| told(plan, tally, group))
        .collect();
    let approximate = groups.iter().any(|group| !group.approximate.is_empty());
    Answered {
        groups,
        left_out,
        records,
        relative_error: if approximate { RELATIVE_ERROR } else { 0.0 },
    }
}

/// What a group is sorted by.
enum Sorted {
    Key(Key),
    Number(Option<f64>),
}

/// What is missing comes last, in both directions.
fn compare(a: &[Sorted], b: &[Sorted], plan: &Plan) -> Ordering {
    let pairs = a.iter().zip(b).zip(&plan.order);
    pairs
        .map(|((a, b), order)| {
            let turned = |ordering: Ordering| match order.descending {
                true => ordering.reverse(),
                false => ordering,
            };
            match (a, b) {
                (Sorted::Key(Key::Missing), Sorted::Key(Key::Missing))
                | (Sorted::Number(None), Sorted::Number(None)) => Ordering::Equal,
                (Sorted::Key(Key::Missing), _) | (Sorted::Number(None), _) => Ordering::Greater,
                (_, Sorted::Key(Key::Missing) | Sorted::Number(None)) => Ordering::Less,
                (Sorted::Key(a), Sorted::Key(b)) => turned(a.cmp(b)),
                (Sorted::Number(Some(a)), Sorted::Number(Some(b))) => turned(a.total_cmp(b)),
                _ => Ordering::Equal,
            }
        })
        .fold(Ordering::Equal, Ordering::then)
}

fn told(plan: &Plan, tally: &Tallied, mut group: Group) -> AnsweredGroup {
    let keys = plan.keys.iter().zip(group.keys);
    let keys = keys.map(|(by, key)| (by.name.clone(), shown(by, key, &plan.zone)));
    let mut approximate = Vec::new();
    let mut measures = Vec::new();
    for measure in &plan.measures {
        let name = measure.name();
        let value = value(measure, tally, &mut group.sums, &plan.zone);
        if let Measure::Of(Function::Percentile(_), subject) = measure
            && let Some(at) = tally.amount_of(subject)
            && !group.sums.amounts[at].samples.is_exact()
        {
            approximate.push(name.clone());
        }
        measures.push((name, value));
    }
    AnsweredGroup {
        keys: keys.collect(),
        measures,
        approximate,
    }
}

fn shown(by: &GroupBy, key: Key, zone: &TimeZone) -> Value {
    match key {
        Key::Missing => Value::Null,
        Key::Bool(truth) => Value::Bool(truth),
        Key::Int(number) if by.is_outcome => Value::Text(outcome(number).to_owned()),
        #[expect(clippy::cast_precision_loss, reason = "numbers of JSON are doubles")]
        Key::Int(number) => Value::Number(number as f64),
        Key::Decimal(text) => text.parse().map_or(Value::Null, Value::Number),
        Key::Text(text) => Value::Text(text),
        Key::Time(us) => Value::time(us, zone),
    }
}

/// The name that filters use.
fn outcome(number: i64) -> &'static str {
    const NAMES: [&str; 5] = ["UNKNOWN", "SUCCESS", "FAILURE", "TIMEOUT", "CANCELLED"];
    usize::try_from(number)
        .ok()
        .and_then(|at| NAMES.get(at).copied())
        .unwrap_or("UNKNOWN")
}

#[expect(clippy::cast_precision_loss, reason = "counts and microseconds fit")]
fn value(measure: &Measure, tally: &Tallied, sums: &mut Sums, zone: &TimeZone) -> Value {
    let count = |sums: &Sums, outcomes: &[Outcome]| {
        tally.count_of(outcomes).map_or(0, |at| sums.counts[at]) as f64
    };
    match measure {
        Measure::Count => Value::Number(sums.rows as f64),
        Measure::Ended(outcome) => Value::Number(count(sums, &[*outcome])),
        Measure::Open(open) => {
            let at = tally.count_of_open(*open);
            Value::Number(at.map_or(0, |at| sums.counts[at]) as f64)
        }
        Measure::SuccessRate => match count(sums, &JUDGED) {
            0.0 => Value::Null,
            judged => Value::Number(count(sums, &[Outcome::Success]) / judged),
        },
        Measure::Of(function, subject) => {
            let Some(amount) = tally.amount_of(subject).map(|at| &mut sums.amounts[at]) else {
                return Value::Null;
            };
            let us = match function {
                Function::Min => amount.least.map(|us| us as f64),
                Function::Max => amount.most.map(|us| us as f64),
                Function::Sum => (amount.count > 0).then(|| amount.sum() as f64),
                Function::Avg => {
                    (amount.count > 0).then(|| amount.sum() as f64 / amount.count as f64)
                }
                Function::Percentile(of_thousand) => {
                    amount.samples.percentile(*of_thousand).map(|us| us as f64)
                }
            };
            match (us, subject, function) {
                (None, ..) => Value::Null,
                (Some(_), Subject::Time(_), Function::Min) => {
                    amount.least.map_or(Value::Null, |us| Value::time(us, zone))
                }
                (Some(_), Subject::Time(_), _) => {
                    amount.most.map_or(Value::Null, |us| Value::time(us, zone))
                }
                // Averages to the microsecond; more would be noise.
                (Some(us), ..) => Value::Number(us.round() / 1e6),
            }
        }
    }
}
