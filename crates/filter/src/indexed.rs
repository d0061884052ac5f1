//! Indexed paths: parts of payloads that operators chose to have indexed.
//!
//! An index of such a field answers with every row that passes a test, and perhaps with others:
//! it holds the beginning of a text, a number as a double, and several values of one row. So what
//! it gives is judged by the whole filter, and nothing here needs to be exact, only complete.

mod path;

use std::{collections::BTreeSet, fmt, str::FromStr};

use hindsight_proto::time;
use hindsight_run::json;
use jiff::Timestamp;
use serde_json::Value as Json;

pub use self::path::{Path, PathError, Step};
use super::{prune::prune, reads::Reads, value::Value};

/// How many characters of a text an index holds.
pub const KEY_CHARS: usize = 128;

/// Doubles below this are told apart from every other number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Which values of a payload an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// JSON strings, by their first [`KEY_CHARS`] characters.
    Text,
    /// JSON numbers, whole or not.
    Number,
    /// The JSON values `true` and `false`.
    Bool,
    /// JSON strings that are RFC 3339 times.
    Time,
}

impl Kind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 4] = [Self::Text, Self::Number, Self::Bool, Self::Time];

    /// The word for it in commands and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Bool => "bool",
            Self::Time => "time",
        }
    }

    /// What an index holds for a value; nothing for values of other types. Keys are in the order
    /// of the values, though not all values have keys of their own.
    pub fn key(self, value: &Json) -> Option<String> {
        Some(match (self, value) {
            (Self::Text, Json::String(text)) => cut(text).to_owned(),
            (Self::Number, Json::Number(number)) => number_key(number.as_f64()?)?,
            (Self::Bool, Json::Bool(truth)) => bool_key(*truth),
            (Self::Time, Json::String(text)) => time_key(time::parse(text)?),
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No kind is called so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no type of an indexed path; want text, number, bool or time")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// An indexed path as a column of a condition. A row has as many values as the path finds in
/// its payload; it passes a test if one of them does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Indexed {
    /// Which part of the payload.
    pub path: Path,
    /// Which values of it.
    pub kind: Kind,
    /// The store's own number of it, once that is known.
    pub field: Option<i64>,
}

/// Fields whose keys are read from payloads together.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    fields: Vec<(i64, Path, Kind)>,
    reads: Reads,
}

impl Fields {
    /// These fields, each with a number.
    pub fn new(fields: Vec<(i64, Path, Kind)>) -> Self {
        let mut reads = Reads::default();
        for (_, path, _) in &fields {
            path.read(&mut reads);
        }
        Self { fields, reads }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The numbers of the fields.
    pub fn numbers(&self) -> impl Iterator<Item = i64> + '_ {
        self.fields.iter().map(|(number, _, _)| *number)
    }

    /// What indexes hold of a payload: numbers of fields and keys, each pair once, in order.
    pub fn keys(&self, payload: &[u8]) -> Vec<(i64, String)> {
        if self.fields.is_empty() {
            return Vec::new();
        }
        let cut = prune(payload, &self.reads).or_else(|| json::parse(payload).ok());
        let Some(body) = cut else { return Vec::new() };
        let mut keys = BTreeSet::new();
        for (number, path, kind) in &self.fields {
            let values = path.values(&body).into_iter();
            keys.extend(values.filter_map(|value| Some((*number, kind.key(value)?))));
        }
        keys.into_iter().collect()
    }
}

/// What an index is asked for instead of a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) key: String,
    /// No other value has the key.
    pub(super) is_alone: bool,
}

impl Asked {
    /// What is asked for a constant, if indexes hold such values.
    pub(super) fn of(constant: &Value<'_>) -> Option<Self> {
        let (kind, key, is_alone) = match constant {
            // The beginning of a text is enough to tell it from a shorter one.
            Value::Text(text) if text.chars().nth(KEY_CHARS - 1).is_none() => {
                (Kind::Text, text.to_string(), true)
            }
            Value::Bool(truth) => (Kind::Bool, bool_key(*truth), true),
            Value::Int(number) => number_asked(*number as f64)?,
            Value::Uint(number) => number_asked(*number as f64)?,
            Value::Double(number) => number_asked(*number)?,
            Value::Time(time) => (Kind::Time, time_key(*time), true),
            _ => return None,
        };
        Some(Self {
            kind,
            key,
            is_alone,
        })
    }
}

fn number_asked(number: f64) -> Option<(Kind, String, bool)> {
    Some((Kind::Number, number_key(number)?, number.abs() < EXACT))
}

fn cut(text: &str) -> &str {
    match text.char_indices().nth(KEY_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn bool_key(truth: bool) -> String {
    u8::from(truth).to_string()
}

/// The bits of a double so that their order is that of the numbers.
fn number_key(number: f64) -> Option<String> {
    if number.is_nan() {
        return None;
    }
    let bits = (number + 0.0).to_bits();
    let negative = bits >> 63 == 1;
    let ordered = if negative { !bits } else { bits | 1 << 63 };
    Some(format!("{ordered:016x}"))
}

fn time_key(time: Timestamp) -> String {
    let ordered = time.as_microsecond().cast_unsigned() ^ 1 << 63;
    format!("{ordered:016x}")
}

/// A key as people read it.
pub(super) fn shown(kind: Kind, key: &str) -> String {
    let bits = || u64::from_str_radix(key, 16).ok();
    let shown = match kind {
        Kind::Text => None,
        Kind::Bool => Some((key == "1").to_string()),
        Kind::Number => bits().map(|bits| {
            let negative = bits >> 63 == 0;
            f64::from_bits(if negative { !bits } else { bits ^ 1 << 63 }).to_string()
        }),
        Kind::Time => bits()
            .and_then(|bits| Timestamp::from_microsecond((bits ^ 1 << 63).cast_signed()).ok())
            .map(|time| time.to_string()),
    };
    shown.unwrap_or_else(|| format!("{key:?}"))
}

#[cfg(test)]
mod tests;
