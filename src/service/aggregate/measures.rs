//! What is measured of a group.

use hindsight_run::Outcome;

use super::{Error, groups, invalid};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::measure::Depth;
use hindsight_storage::{Quantity, Summed};

/// What is asked of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Measure {
    /// How many records it has.
    Count,
    /// How many of its runs ended so.
    Ended(Outcome),
    /// How many of its runs did not end, and stand so.
    Open(Open),
    /// Which part of the runs that succeeded, failed or ran out of time succeeded.
    SuccessRate,
    /// Something of a number.
    Of(Function, Subject),
}

/// How a run stands that has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// It did not begin yet.
    Waiting,
    /// It began and did not end.
    Running,
    /// It left the cluster before it was seen to finish.
    Vanished,
}

/// Something of many numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Avg,
    Min,
    Max,
    Sum,
    /// By how many of a thousand.
    Percentile(u16),
}

/// A number of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// How long the run took.
    Duration,
    /// How long it waited to begin.
    Queue,
    /// A time, by its word.
    Time(String),
}

const OUTCOMES: [(&str, Outcome); 5] = [
    ("succeeded", Outcome::Success),
    ("failed", Outcome::Failure),
    ("timed_out", Outcome::Timeout),
    ("cancelled", Outcome::Cancelled),
    ("unfinished", Outcome::Unknown),
];

const OPEN: [(&str, Open); 3] = [
    ("running", Open::Running),
    ("waiting", Open::Waiting),
    ("vanished", Open::Vanished),
];

impl Measure {
    /// Measures of a request that names none.
    pub(super) const COUNT: Self = Self::Count;

    /// Its name in answers.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Count => "count".to_owned(),
            Self::SuccessRate => "success_rate".to_owned(),
            Self::Ended(outcome) => {
                let found = OUTCOMES.iter().find(|(_, known)| known == outcome);
                found.map_or("unfinished", |(name, _)| name).to_owned()
            }
            Self::Open(open) => {
                let found = OPEN.iter().find(|(_, known)| known == open);
                found.map_or("running", |(name, _)| name).to_owned()
            }
            Self::Of(function, Subject::Time(word)) => match function {
                Function::Min => format!("first({word})"),
                _ => format!("last({word})"),
            },
            Self::Of(function, subject) => {
                let subject = match subject {
                    Subject::Duration => "duration",
                    _ => "queue",
                };
                let function = match function {
                    Function::Avg => "avg".to_owned(),
                    Function::Min => "min".to_owned(),
                    Function::Max => "max".to_owned(),
                    Function::Sum => "sum".to_owned(),
                    Function::Percentile(n) if n % 10 == 0 => format!("p{}", n / 10),
                    Function::Percentile(n) => format!("p{}.{}", n / 10, n % 10),
                };
                format!("{function}({subject})")
            }
        }
    }

    /// Parses `count`, `success_rate`, an outcome or `function(subject)`; others are errors.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        if let Some((_, outcome)) = OUTCOMES.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Ended(*outcome));
        }
        if let Some((_, open)) = OPEN.iter().find(|(name, _)| *name == text) {
            return Ok(Self::Open(*open));
        }
        match text {
            "count" => return Ok(Self::Count),
            "success_rate" => return Ok(Self::SuccessRate),
            _ => {}
        }
        let inside = text
            .split_once('(')
            .and_then(|(function, rest)| Some((function.trim(), rest.strip_suffix(')')?.trim())));
        let Some((function, subject)) = inside else {
            return Err(unknown(text));
        };
        let function = match function {
            "avg" => Function::Avg,
            "min" => Function::Min,
            "max" => Function::Max,
            "sum" => Function::Sum,
            "first" | "last" => {
                if groups::time(subject).is_none() {
                    let times = groups::times();
                    return Err(invalid(format!(
                        "measures `{text}`: `{subject}` is no time of a record; want one of {times}"
                    )));
                }
                let end = if function == "first" {
                    Function::Min
                } else {
                    Function::Max
                };
                return Ok(Self::Of(end, Subject::Time(subject.to_owned())));
            }
            other => Function::Percentile(percentile(other).ok_or_else(|| unknown(text))?),
        };
        match subject {
            "duration" => Ok(Self::Of(function, Subject::Duration)),
            "queue" => Ok(Self::Of(function, Subject::Queue)),
            _ => Err(invalid(format!(
                "measures `{text}`: `{subject}` is no length of time; want duration or queue"
            ))),
        }
    }
}

/// Parts of a thousand: 950 for `p95`, 999 for `p99.9`; `None` if malformed.
fn percentile(text: &str) -> Option<u16> {
    let number = text.strip_prefix('p')?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 2 || tenth.len() != 1 || !digits(whole) || !digits(tenth) {
        return None;
    }
    let of_thousand = whole.parse::<u16>().ok()? * 10 + tenth.parse::<u16>().ok()?;
    (of_thousand > 0).then_some(of_thousand)
}

fn unknown(text: &str) -> Error {
    let outcomes = OUTCOMES.map(|(name, _)| name).join(", ");
    let open = OPEN.map(|(name, _)| name).join(", ");
    invalid(format!(
        "measures `{text}` is not known: want count, success_rate, {outcomes}, {open}, avg, min, max, sum \
         or a percentile such as p50, p95 or p99.9 of duration or queue, as in `p95(duration)`, or \
         first or last of {}, as in `last(started)`",
        groups::times()
    ))
}

/// What is added up for some measures.
#[derive(Debug, Default)]
pub(super) struct Tallied {
    pub(super) counts: Vec<Condition>,
    pub(super) amounts: Vec<Summed>,
}

/// What must be added up for these.
pub(super) fn tally<'m>(measures: impl Iterator<Item = &'m Measure>) -> Tallied {
    let mut tally = Tallied::default();
    for measure in measures {
        match measure {
            Measure::Count => {}
            Measure::Ended(outcome) => tally.count(ended(&[*outcome])),
            Measure::Open(open) => tally.count(standing(*open)),
            Measure::SuccessRate => {
                tally.count(ended(&[Outcome::Success]));
                tally.count(ended(&JUDGED));
            }
            Measure::Of(function, subject) => {
                let depth = match function {
                    Function::Percentile(_) => Depth::Values,
                    Function::Max => Depth::Most,
                    Function::Min | Function::Avg | Function::Sum => Depth::Sums,
                };
                let of = quantity(subject);
                match tally.amounts.iter_mut().find(|known| known.of == of) {
                    Some(known) => known.depth = known.depth.max(depth),
                    None => tally.amounts.push(Summed { of, depth }),
                }
            }
        }
    }
    tally
}

/// Ends that say whether a run did what it should.
pub(super) const JUDGED: [Outcome; 3] = [Outcome::Success, Outcome::Failure, Outcome::Timeout];

impl Tallied {
    fn count(&mut self, test: Condition) {
        if !self.counts.contains(&test) {
            self.counts.push(test);
        }
    }

    /// Where the count of these is.
    pub(super) fn count_of(&self, outcomes: &[Outcome]) -> Option<usize> {
        let test = ended(outcomes);
        self.counts.iter().position(|known| *known == test)
    }

    /// Where the count of those that stand so is.
    pub(super) fn count_of_open(&self, open: Open) -> Option<usize> {
        let test = standing(open);
        self.counts.iter().position(|known| *known == test)
    }

    /// Where that number is.
    pub(super) fn amount_of(&self, subject: &Subject) -> Option<usize> {
        let of = quantity(subject);
        self.amounts.iter().position(|known| known.of == of)
    }
}

fn ended(outcomes: &[Outcome]) -> Condition {
    let values = outcomes.iter().map(|outcome| Value::Int(*outcome as i64));
    Condition::Test(Test {
        column: Column::Outcome,
        is: Is::OneOf(values.collect()),
        negated: false,
    })
}

fn standing(open: Open) -> Condition {
    let has = |column, is_there: bool| {
        Condition::Test(Test {
            column,
            is: Is::Present,
            negated: !is_there,
        })
    };
    let unknown = ended(&[Outcome::Unknown]);
    Condition::And(match open {
        Open::Waiting => vec![
            unknown,
            has(Column::Began, false),
            has(Column::Ended, false),
        ],
        Open::Running => vec![unknown, has(Column::Began, true), has(Column::Ended, false)],
        Open::Vanished => vec![unknown, has(Column::Ended, true)],
    })
}

fn quantity(subject: &Subject) -> Quantity {
    match subject {
        Subject::Duration => Quantity::Value(Column::Duration),
        Subject::Queue => {
            let created = Column::Object(ObjectField::CreationTime);
            Quantity::Between(created, Column::Began)
        }
        Subject::Time(word) => Quantity::Value(groups::time(word).unwrap_or(Column::CreateTime)),
    }
}
