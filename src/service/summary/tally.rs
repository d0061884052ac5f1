//! Adding records up.

use std::{cmp::Ordering, collections::BTreeMap};

use hindsight_proto::run::{View, keys};
use jiff::{Timestamp, civil, tz::TimeZone};

use super::{
    Measure,
    interval::Interval,
    parse::{GroupBy, Moment, Plan, Unit},
};
use crate::{filter::Body, model::Record};

const REPOSITORY: &str = "pipelinesascode.tekton.dev/repository";

/// A value in a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing to measure.
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
    /// What was measured.
    pub measures: Vec<(Measure, Value)>,
}

/// Group keys, ordered so that a reply without `order_by` is stable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    None,
    Number(i64),
    Text(String),
}

#[derive(Debug, Clone, Default)]
struct Sums {
    total: i64,
    succeeded: i64,
    failed: i64,
    cancelled: i64,
    running: i64,
    others: i64,
    timed: i64,
    sum: Interval,
    least: Option<Interval>,
    most: Option<Interval>,
    last_start: Option<Timestamp>,
}

/// The running totals of a summary.
#[derive(Debug)]
pub(super) struct Tally {
    plan: Plan,
    groups: BTreeMap<Key, Sums>,
}

impl Tally {
    pub(super) fn new(plan: Plan) -> Self {
        let mut groups = BTreeMap::new();
        if plan.group_by.is_none() {
            // One group is there even when nothing matches.
            groups.insert(Key::None, Sums::default());
        }
        Self { plan, groups }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let body = Body::of(record);
        let null = serde_json::Value::Null;
        let view = View::new(body.json().unwrap_or(&null));
        let key = self.plan.group_by.map_or(Key::None, |by| key(by, &view));
        self.groups.entry(key).or_default().add(&view);
    }

    pub(super) fn finish(self) -> Vec<Group> {
        let Plan {
            measures,
            group_by,
            order,
        } = self.plan;
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        if let Some((measure, descending)) = order {
            groups.sort_by(|(_, a), (_, b)| {
                let order = a.compare(b, measure);
                if descending { order.reverse() } else { order }
            });
        }
        groups
            .into_iter()
            .map(|(key, sums)| Group {
                group: group_by.map(|_| match key {
                    Key::None => Value::Null,
                    Key::Number(number) => Value::Number(number),
                    Key::Text(text) => Value::Text(text),
                }),
                measures: measures.iter().map(|&m| (m, sums.value(m))).collect(),
            })
            .collect()
    }
}

impl Sums {
    fn add(&mut self, view: &View<'_>) {
        self.total += 1;
        let reason = view.object().pointer("/status/conditions/0/reason");
        match reason.and_then(serde_json::Value::as_str) {
            Some("Succeeded" | "Completed") => self.succeeded += 1,
            Some("Failed") => self.failed += 1,
            Some("Cancelled") => self.cancelled += 1,
            Some("Running") => self.running += 1,
            Some(_) => self.others += 1,
            None => {}
        }
        let started = time(view, "/status/startTime");
        self.last_start = self.last_start.max(started);
        if let (Some(start), Some(end)) = (started, time(view, "/status/completionTime")) {
            let took = Interval::between(end.as_microsecond() - start.as_microsecond());
            self.timed += 1;
            self.sum = self.sum.plus(took);
            let shorter = |than: Interval| took.length() < than.length();
            if self.least.is_none_or(shorter) {
                self.least = Some(took);
            }
            if self.most.is_none_or(|most| most.length() < took.length()) {
                self.most = Some(took);
            }
        }
    }

    fn mean(&self) -> Option<Interval> {
        (self.timed > 0).then(|| self.sum.over(self.timed))
    }

    fn value(&self, measure: Measure) -> Value {
        let text = |interval: Option<Interval>| {
            interval.map_or(Value::Null, |interval| Value::Text(interval.to_string()))
        };
        match measure {
            Measure::Total => Value::Number(self.total),
            Measure::Succeeded => Value::Number(self.succeeded),
            Measure::Failed => Value::Number(self.failed),
            Measure::Cancelled => Value::Number(self.cancelled),
            Measure::Running => Value::Number(self.running),
            Measure::Others => Value::Number(self.others),
            Measure::AvgDuration => text(self.mean()),
            Measure::MaxDuration => text(self.most),
            Measure::MinDuration => text(self.least),
            Measure::TotalDuration => text((self.timed > 0).then_some(self.sum)),
            Measure::LastRuntime => self
                .last_start
                .map_or(Value::Null, |start| Value::Number(start.as_second())),
        }
    }

    /// Groups without the measure come last ascending, as PostgreSQL sorts NULL.
    fn compare(&self, other: &Self, measure: Measure) -> Ordering {
        let key = |sums: &Self| -> Option<i64> {
            match measure {
                Measure::AvgDuration => sums.mean().map(Interval::length),
                Measure::MaxDuration => sums.most.map(Interval::length),
                Measure::MinDuration => sums.least.map(Interval::length),
                Measure::TotalDuration => (sums.timed > 0).then(|| sums.sum.length()),
                _ => match sums.value(measure) {
                    Value::Number(number) => Some(number),
                    Value::Null | Value::Text(_) => None,
                },
            }
        };
        match (key(self), key(other)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.cmp(&b),
        }
    }
}

fn time(view: &View<'_>, pointer: &str) -> Option<Timestamp> {
    view.object().pointer(pointer)?.as_str()?.parse().ok()
}

fn key(by: GroupBy, view: &View<'_>) -> Key {
    let below = |tail: Option<&str>| {
        format!(
            "{}/{}",
            view.namespace().unwrap_or_default(),
            tail.unwrap_or_default()
        )
    };
    match by {
        GroupBy::Namespace => view
            .namespace()
            .map_or(Key::None, |namespace| Key::Text(namespace.to_owned())),
        GroupBy::Pipeline => Key::Text(below(view.label(keys::PIPELINE))),
        GroupBy::Repository => Key::Text(below(view.annotation(REPOSITORY))),
        GroupBy::Time(unit, moment) => {
            let time = match moment {
                Moment::Creation => view.created(),
                Moment::Start => time(view, "/status/startTime"),
                Moment::Completion => time(view, "/status/completionTime"),
            };
            time.and_then(|time| cut(time, unit))
                .map_or(Key::None, Key::Number)
        }
    }
}

/// The start of the unit that `time` is in, in seconds since 1970, UTC. Weeks begin on Monday.
fn cut(time: Timestamp, unit: Unit) -> Option<i64> {
    let at = time.to_zoned(TimeZone::UTC).datetime();
    let (date, hour, minute) = (at.date(), at.hour(), at.minute());
    let midnight = civil::Time::midnight();
    let start = match unit {
        Unit::Year => date.first_of_year().to_datetime(midnight),
        Unit::Month => date.first_of_month().to_datetime(midnight),
        Unit::Week => {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            date.checked_sub(jiff::Span::new().days(back))
                .ok()?
                .to_datetime(midnight)
        }
        Unit::Day => date.to_datetime(midnight),
        Unit::Hour => date.at(hour, 0, 0, 0),
        Unit::Minute => date.at(hour, minute, 0, 0),
    };
    Some(start.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}
