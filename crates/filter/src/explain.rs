//! A split, told to people.

use std::fmt::{self, Write as _};

use jiff::SignedDuration;

use super::{
    condition::{Column, Condition, Is, Test, Value},
    indexed,
    split::Split,
};

pub(super) fn explain(split: &Split, needs_body: bool) -> String {
    let rest = match (split.residual, needs_body) {
        (false, _) => "nothing",
        (true, false) => "the whole filter, on each row that the engine returns",
        (true, true) => "the whole filter, on the payload of each row that the engine returns",
    };
    format!("engine: {}\nleft over: {rest}", split.condition)
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every row"),
            Self::Nothing => f.write_str("no row"),
            Self::And(parts) => joined(f, parts, " and "),
            Self::Or(parts) => joined(f, parts, " or "),
            Self::Test(test) => test.fmt(f),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Condition], word: &str) -> fmt::Result {
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            f.write_str(word)?;
        }
        match part {
            Condition::And(_) | Condition::Or(_) => write!(f, "({part})")?,
            part => write!(f, "{part}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            column,
            is,
            negated,
        } = self;
        let is = Asked(column, is);
        match (is.1, negated) {
            (Is::Present, false) => write!(f, "{column} is set"),
            (Is::Present, true) => write!(f, "{column} is not set"),
            (_, false) => write!(f, "{column} {is}"),
            (_, true) => write!(f, "{column} is set and not {is}"),
        }
    }
}

/// What is asked of a column.
struct Asked<'a>(&'a Column, &'a Is);

impl Asked<'_> {
    fn value(&self, f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
        match (self.0, value) {
            (Column::ObjectDuration | Column::Duration, Value::Int(us)) => {
                write!(f, "{:#}", SignedDuration::from_micros(*us))
            }
            (Column::Indexed(of), Value::Text(key)) => f.write_str(&indexed::shown(of.kind, key)),
            (_, value) => write!(f, "{value}"),
        }
    }
}

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, value) = match self.1 {
            Is::Present => return f.write_str("set"),
            Is::OneOf(values) => {
                f.write_str("one of [")?;
                for (number, value) in values.iter().enumerate() {
                    if number > 0 {
                        f.write_str(", ")?;
                    }
                    self.value(f, value)?;
                }
                return f.write_char(']');
            }
            Is::StartsWith(text) => return write!(f, "starts with {text:?}"),
            Is::EndsWith(text) => return write!(f, "ends with {text:?}"),
            Is::Contains(text) => return write!(f, "contains {text:?}"),
            Is::Equal(value) => ("= ", value),
            Is::Less(value) => ("< ", value),
            Is::AtMost(value) => ("<= ", value),
            Is::Greater(value) => ("> ", value),
            Is::AtLeast(value) => (">= ", value),
        };
        f.write_str(before)?;
        self.value(f, value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Int(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parent => "parent",
            Self::Cluster => "cluster",
            Self::Tier => "tier",
            Self::ResultId => "result id",
            Self::Uid => "uid",
            Self::CreateTime => "create_time",
            Self::UpdateTime => "update_time",
            Self::Duration => "duration",
            Self::ObjectDuration => "data.status.completionTime - data.status.startTime",
            Self::SummaryRecord => "summary.record",
            Self::SummaryType => "summary.type",
            Self::SummaryStartTime => "summary.start_time",
            Self::SummaryEndTime => "summary.end_time",
            Self::SummaryStatus => "summary.status",
            Self::Outcome => "outcome",
            Self::Began => "started",
            Self::Ended => "ended",
            Self::Pipeline => "pipeline",
            Self::Reason => "reason",
            Self::Signature => "signature",
            Self::RecordId => "record id",
            Self::RecordName => "name",
            Self::DataType => "data_type",
            Self::Annotation(key) => return write!(f, "annotations[{key:?}]"),
            Self::SummaryAnnotation(key) => return write!(f, "summary.annotations[{key:?}]"),
            Self::Labels => "data.metadata.labels",
            Self::Label(key) => return write!(f, "data.metadata.labels[{key:?}]"),
            Self::Indexed(of) => return write!(f, "{} (indexed)", of.path),
            Self::Object(field) => {
                f.write_str("data")?;
                for part in field.pointer().split('/').skip(1) {
                    match part.parse::<usize>() {
                        Ok(index) => write!(f, "[{index}]")?,
                        Err(_not_a_number) => write!(f, ".{part}")?,
                    }
                }
                return Ok(());
            }
        })
    }
}
