//! A split, told to people.

use std::fmt::{self, Write as _};

use super::{
    condition::{Column, Condition, Is, Test, Value},
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
        match (is, negated) {
            (Is::Present, false) => write!(f, "{column} is set"),
            (Is::Present, true) => write!(f, "{column} is not set"),
            (is, false) => write!(f, "{column} {is}"),
            (is, true) => write!(f, "{column} is set and not {is}"),
        }
    }
}

impl fmt::Display for Is {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("set"),
            Self::Equal(value) => write!(f, "= {value}"),
            Self::OneOf(values) => {
                f.write_str("one of [")?;
                for (number, value) in values.iter().enumerate() {
                    if number > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Less(value) => write!(f, "< {value}"),
            Self::AtMost(value) => write!(f, "<= {value}"),
            Self::Greater(value) => write!(f, "> {value}"),
            Self::AtLeast(value) => write!(f, ">= {value}"),
            Self::StartsWith(text) => write!(f, "starts with {text:?}"),
            Self::EndsWith(text) => write!(f, "ends with {text:?}"),
            Self::Contains(text) => write!(f, "contains {text:?}"),
        }
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
            Self::ResultId => "result id",
            Self::Uid => "uid",
            Self::CreateTime => "create_time",
            Self::UpdateTime => "update_time",
            Self::Duration => "duration",
            Self::SummaryRecord => "summary.record",
            Self::SummaryType => "summary.type",
            Self::SummaryStartTime => "summary.start_time",
            Self::SummaryEndTime => "summary.end_time",
            Self::SummaryStatus => "summary.status",
            Self::Outcome => "outcome",
            Self::Began => "started",
            Self::Ended => "ended",
            Self::Pipeline => "pipeline",
            Self::RecordId => "record id",
            Self::RecordName => "name",
            Self::DataType => "data_type",
            Self::Annotation(key) => return write!(f, "annotations[{key:?}]"),
            Self::SummaryAnnotation(key) => return write!(f, "summary.annotations[{key:?}]"),
            Self::Label(key) => return write!(f, "data.metadata.labels[{key:?}]"),
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
