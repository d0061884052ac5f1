//! Whether a row group can have rows that pass a condition, by its statistics and Bloom filters.

use std::ops::Range;

use hindsight_filter::condition::{Column as Field, Condition, Is, Test, Value};
use parquet::{bloom_filter::Sbbf, file::statistics::Statistics};

use super::{Reader, failed, filter, guarded};
use crate::{
    Error, Source,
    columns::{pair, text_leaf, time_leaf},
};

/// What a test seeks in a leaf; rows that have none of it do not pass.
enum Sought<'t> {
    /// One of these texts.
    Texts(&'static str, Vec<String>),
    /// A text that begins so.
    Prefix(&'static str, &'t str),
    /// A number from the first to the second.
    Numbers(&'static str, i64, i64),
}

impl<S: Source> Reader<S> {
    pub(super) fn may_have(&self, group: usize, condition: &Condition) -> Result<bool, Error> {
        // Statistics are in memory.
        if !possible(condition, &mut |sought| {
            Ok(self.statistics_let(group, sought))
        })? {
            return Ok(false);
        }
        // Most row groups are excluded by filters, which are small.
        let mut filters = Vec::new();
        self.filters(group, condition, &mut filters);
        self.source.0.want(&filters).map_err(failed)?;
        possible(condition, &mut |sought| self.filter_lets(group, sought))
    }

    /// Where the filters are that a condition is tried on.
    fn filters(&self, group: usize, condition: &Condition, out: &mut Vec<Range<u64>>) {
        match condition {
            Condition::All | Condition::Nothing => {}
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| self.filters(group, part, out));
            }
            Condition::Test(test) => {
                if let Some(Sought::Texts(path, _)) = Sought::by(test)
                    && let Some(leaf) = self.column(path).leaf()
                {
                    out.extend(filter(self.metadata.row_group(group).column(leaf)));
                }
            }
        }
    }

    fn statistics_let(&self, group: usize, sought: &Sought<'_>) -> bool {
        let Some(leaf) = self.column(sought.leaf()).leaf() else {
            return true;
        };
        let column = self.metadata.row_group(group).column(leaf);
        let Some(statistics) = column.statistics() else {
            return true;
        };
        match (sought, statistics) {
            (Sought::Numbers(_, from, to), Statistics::Int64(it)) => {
                it.min_opt().is_none_or(|min| min <= to)
                    && it.max_opt().is_none_or(|max| from <= max)
            }
            (Sought::Numbers(..), _) => true,
            (Sought::Texts(_, texts), it) => {
                let (min, max) = (it.min_bytes_opt(), it.max_bytes_opt());
                texts.iter().any(|text| {
                    min.is_none_or(|min| min <= text.as_bytes())
                        && max.is_none_or(|max| text.as_bytes() <= max)
                })
            }
            (Sought::Prefix(_, prefix), it) => {
                let prefix = prefix.as_bytes();
                let (min, max) = (it.min_bytes_opt(), it.max_bytes_opt());
                min.is_none_or(|min| min <= prefix || min.starts_with(prefix))
                    && max.is_none_or(|max| prefix <= max)
            }
        }
    }

    fn filter_lets(&self, group: usize, sought: &Sought<'_>) -> Result<bool, Error> {
        let Sought::Texts(path, texts) = sought else {
            return Ok(true);
        };
        let Some(leaf) = self.column(path).leaf() else {
            return Ok(true);
        };
        let column = self.metadata.row_group(group).column(leaf);
        let filter = guarded(|| Sbbf::read_from_column_chunk(column, &self.source))?;
        Ok(filter.is_none_or(|filter| texts.iter().any(|text| filter.check(text.as_bytes()))))
    }
}

/// Whether rows can pass that have only what `has` says.
fn possible(
    condition: &Condition,
    has: &mut impl FnMut(&Sought<'_>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    match condition {
        Condition::All => Ok(true),
        Condition::Nothing => Ok(false),
        Condition::And(parts) => {
            for part in parts {
                if !possible(part, has)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Condition::Or(parts) => {
            for part in parts {
                if possible(part, has)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Condition::Test(test) => Sought::by(test).map_or(Ok(true), |sought| has(&sought)),
    }
}

impl<'t> Sought<'t> {
    fn leaf(&self) -> &'static str {
        match self {
            Self::Texts(leaf, _) | Self::Prefix(leaf, _) | Self::Numbers(leaf, ..) => leaf,
        }
    }

    /// What a test seeks, if that is in one leaf.
    fn by(test: &'t Test) -> Option<Self> {
        if test.negated {
            return None;
        }
        let is_label = |key: &String| {
            let texts = texts(&test.is)?;
            let pairs = texts.into_iter().map(|text| pair(key, text)).collect();
            Some(Self::Texts("label_pairs.list.element", pairs))
        };
        match &test.column {
            Field::Label(key) => is_label(key),
            Field::Duration => Self::numbers("duration_us", &test.is, |value| match value {
                Value::Int(number) => Some(*number),
                _ => None,
            }),
            column => {
                if let Some(leaf) = time_leaf(column) {
                    return Self::numbers(leaf, &test.is, |value| match value {
                        Value::Time(time) => Some(time.as_microsecond()),
                        _ => None,
                    });
                }
                let leaf = text_leaf(column)?;
                match &test.is {
                    Is::StartsWith(prefix) => Some(Self::Prefix(leaf, prefix)),
                    is => {
                        let texts = texts(is)?.into_iter().map(str::to_owned);
                        Some(Self::Texts(leaf, texts.collect()))
                    }
                }
            }
        }
    }

    fn numbers(
        leaf: &'static str,
        is: &Is,
        number: impl Fn(&Value) -> Option<i64>,
    ) -> Option<Self> {
        let (from, to) = match is {
            Is::Equal(value) => (number(value)?, number(value)?),
            // What is cut to microseconds may be equal to a bound.
            Is::Less(value) | Is::AtMost(value) => (i64::MIN, number(value)?),
            Is::Greater(value) | Is::AtLeast(value) => (number(value)?, i64::MAX),
            _ => return None,
        };
        Some(Self::Numbers(leaf, from, to))
    }
}

/// The texts to one of which a value must be equal.
fn texts(is: &Is) -> Option<Vec<&str>> {
    let text = |value: &'_ Value| matches!(value, Value::Text(_));
    let values = match is {
        Is::Equal(value) => std::slice::from_ref(value),
        Is::OneOf(values) => values,
        _ => return None,
    };
    if !values.iter().all(text) {
        return None;
    }
    let texts = values.iter().map(|value| match value {
        Value::Text(text) => text.as_str(),
        Value::Int(_) | Value::Time(_) => "",
    });
    Some(texts.collect())
}
