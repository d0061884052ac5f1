//! A value against a table of fields: the message in its normal form, or which field is not as the table says.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::schema::{Field, Kind};

/// Longest part of a value that an error shows.
const LONGEST_SHOWN: usize = 60;

/// Most seconds of a duration.
const MAX_SECONDS: u64 = 315_576_000_000;

/// Where in a document a value is.
pub(super) struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Document(&'a str),
    Member(&'a str),
    Item(usize),
}

impl<'a> Path<'a> {
    pub(super) fn root(document: &'a str) -> Self {
        Self {
            above: None,
            step: Step::Document(document),
        }
    }

    fn member(&'a self, name: &'a str) -> Self {
        Self {
            above: Some(self),
            step: Step::Member(name),
        }
    }

    fn item(&'a self, index: usize) -> Self {
        Self {
            above: Some(self),
            step: Step::Item(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_first = match self.above {
            Some(above) => {
                above.fmt(f)?;
                matches!(above.step, Step::Document(_))
            }
            None => false,
        };
        match self.step {
            Step::Document(name) => write!(f, "{name}: "),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Member(name) if is_plain(name) => {
                write!(f, "{}{name}", if is_first { "" } else { "." })
            }
            Step::Member(name) => write!(f, "[{}]", shown(&Value::from(name))),
        }
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= LONGEST_SHOWN && name.chars().all(plain)
}

/// A value in an error: its JSON, cut where it is long.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > LONGEST_SHOWN => {
            let text: String = text.chars().take(LONGEST_SHOWN).collect();
            format!("`{text:?}…`")
        }
        Value::String(text) => format!("`{text:?}`"),
        other => format!("`{other}`"),
    }
}

/// A name in an error.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("`{}…`", name.get(..end).unwrap_or_default().escape_debug()),
        None => format!("`{}`", name.escape_debug()),
    }
}

fn wrong(path: &Path<'_>, value: &Value, wanted: &str) -> String {
    format!("{path} is {}; want {wanted}", shown(value))
}

/// The message that `value` is by this table.
pub(super) fn message(
    fields: &[Field],
    value: &Value,
    path: &Path<'_>,
) -> Result<Map<String, Value>, String> {
    let Value::Object(members) = value else {
        return Err(wrong(path, value, "an object"));
    };
    let mut read = Map::new();
    let mut chosen: Vec<(u8, &str)> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in members {
        let path = path.member(name);
        let is_named = |field: &&Field| field.spellings().contains(name);
        let field = fields
            .iter()
            .find(is_named)
            .ok_or_else(|| unknown(fields, &path))?;
        if seen.contains(&field.name) {
            return Err(format!(
                "{path} is there twice, in lowerCamelCase and in snake_case"
            ));
        }
        seen.push(field.name);
        if value.is_null() && !matches!(field.kind, Kind::Any) {
            continue;
        }
        if field.one_of != 0 {
            let other = chosen.iter().find(|(choice, _)| *choice == field.one_of);
            if let Some((_, other)) = other {
                return Err(format!(
                    "{path} and `{other}` are both set; want one of them"
                ));
            }
            chosen.push((field.one_of, field.name));
        }
        let value = of_kind(&field.kind, value, &path)?;
        if field.one_of != 0 || !is_default(&field.kind, &value) {
            read.insert(field.name.to_owned(), value);
        }
    }
    Ok(read)
}

fn unknown(fields: &[Field], path: &Path<'_>) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    format!(
        "{path} is not a field of the schema; want one of {}",
        names.join(", ")
    )
}

/// Whether a field without choice that has this value looks like one that is not set.
fn is_default(kind: &Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Any | Kind::Object | Kind::Message(_) | Kind::Duration, _) => false,
        (Kind::Enum(names), value) => names.first().is_some_and(|first| value == *first),
        (_, Value::String(text)) => text.is_empty() || (matches!(kind, Kind::Int64) && text == "0"),
        (_, Value::Bool(truth)) => !truth,
        (_, Value::Number(number)) => is_zero(number),
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(members)) => members.is_empty(),
        (_, Value::Null) => false,
    }
}

/// Minus zero is another number than zero.
fn is_zero(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number.to_bits() == 0)
}

fn of_kind(kind: &Kind, value: &Value, path: &Path<'_>) -> Result<Value, String> {
    Ok(match kind {
        Kind::Text => match value {
            Value::String(_) => value.clone(),
            _ => return Err(wrong(path, value, "a string")),
        },
        Kind::Bool => match value {
            Value::Bool(_) => value.clone(),
            _ => return Err(wrong(path, value, "true or false")),
        },
        Kind::Int32 => {
            let number = integer(value).and_then(|number| i32::try_from(number).ok());
            Value::from(number.ok_or_else(|| wrong(path, value, "an integer of 32 bits"))?)
        }
        Kind::Int64 => {
            let number = integer(value);
            let number = number.ok_or_else(|| wrong(path, value, "an integer of 64 bits"))?;
            Value::String(number.to_string())
        }
        Kind::Double => double(value).ok_or_else(|| wrong(path, value, "a number"))?,
        Kind::Duration => {
            let wanted = "a duration in seconds such as `3.5s`";
            let duration = value.as_str().and_then(duration);
            Value::String(duration.ok_or_else(|| wrong(path, value, wanted))?)
        }
        Kind::Any => any(value),
        Kind::Object => match value {
            Value::Object(_) => any(value),
            _ => return Err(wrong(path, value, "an object")),
        },
        Kind::Enum(names) => {
            let name = match value {
                Value::String(name) => names.iter().find(|known| *known == name),
                Value::Number(_) => integer(value)
                    .and_then(|index| usize::try_from(index).ok())
                    .and_then(|index| names.get(index)),
                _ => None,
            };
            let name =
                name.ok_or_else(|| wrong(path, value, &format!("one of {}", names.join(", "))))?;
            Value::from(*name)
        }
        Kind::Message(fields) => Value::Object(message(fields, value, path)?),
        Kind::List(kind) => {
            let Value::Array(items) = value else {
                return Err(wrong(path, value, "a list"));
            };
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| of_kind(kind, item, &path.item(index)));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Kind::Map(kind) => {
            let Value::Object(members) = value else {
                return Err(wrong(path, value, "an object"));
            };
            let mut read = Map::new();
            for (name, member) in members {
                let member = of_kind(kind, member, &path.member(name))?;
                read.insert(name.clone(), member);
            }
            Value::Object(read)
        }
    })
}

/// The integer that a number or its text is; `1.0` and `1e3` are integers.
fn integer(value: &Value) -> Option<i64> {
    let of_double = |number: f64| {
        // All doubles below this are exact, and beyond it integers are written without a point.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is an integer of fewer than 54 bits"
        )]
        let integer = number as i64;
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(integer)
    };
    match value {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().and_then(of_double)),
        Value::String(text) => {
            let integer: Option<i64> = text.parse().ok().filter(|_| !text.starts_with('+'));
            integer.or_else(|| number(text).and_then(of_double))
        }
        _ => None,
    }
}

/// The number that a text is by the grammar of JSON.
fn number(text: &str) -> Option<f64> {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let ends = text.ends_with(|c: char| c.is_ascii_digit());
    let number: f64 = text.parse().ok().filter(|_| begins && ends)?;
    number.is_finite().then_some(number)
}

fn double(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(plain(number)),
        Value::String(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => {
            Some(value.clone())
        }
        Value::String(text) => Number::from_f64(number(text)?).map(|number| plain(&number)),
        _ => None,
    }
}

/// A number as a double is written: integers without a point.
fn plain(number: &Number) -> Value {
    let Some(double) = number.as_f64() else {
        return Value::Number(number.clone());
    };
    match integer(&Value::Number(number.clone())) {
        Some(0) if double.is_sign_negative() => Value::from(double),
        Some(integer) if integer.unsigned_abs() <= 1 << 53 => Value::from(integer),
        _ => Value::from(double),
    }
}

/// Any value, its numbers as doubles.
pub(super) fn any(value: &Value) -> Value {
    match value {
        Value::Number(number) => plain(number),
        Value::Array(items) => Value::Array(items.iter().map(any).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, member)| (name.clone(), any(member)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// A duration as it is written: seconds with 0, 3, 6 or 9 digits of their fraction.
fn duration(text: &str) -> Option<String> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", number),
    };
    let (seconds, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = seconds.is_empty() && fraction.is_empty();
    if is_whole || !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: u64 = match seconds {
        "" => 0,
        seconds => seconds
            .parse()
            .ok()
            .filter(|seconds| *seconds <= MAX_SECONDS)?,
    };
    let fraction = fraction.trim_end_matches('0');
    let sign = if seconds == 0 && fraction.is_empty() {
        ""
    } else {
        sign
    };
    Some(match fraction.len().div_ceil(3) * 3 {
        0 => format!("{sign}{seconds}s"),
        width => format!("{sign}{seconds}.{fraction:0<width$}s"),
    })
}
