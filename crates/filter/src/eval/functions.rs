//! Functions and arithmetic.

use super::{Answer, Judge, time};
use crate::{
    error::Miss,
    expr::{Expr, Function, TimePart},
    pattern,
    value::{Shared, Value},
};

/// What looking up a time zone by its name costs.
const ZONE: usize = 16;

impl<'a> Judge<'a> {
    pub(super) fn call(&mut self, function: &'a Function, args: &'a [Expr]) -> Answer<Value<'a>> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.eval(arg)?);
        }
        if let (Function::StartsWith, [of, with]) = (function, &*values) {
            values[0] = self.named(&args[0], of.clone(), with);
        }
        for value in &values {
            self.meter.charge_bulk(bytes(value))?;
        }
        self.apply(function, values)
    }

    fn apply(&mut self, function: &'a Function, values: Vec<Value<'a>>) -> Answer<Value<'a>> {
        use Value::{Text, Time};
        let value = match (function, &*values) {
            (Function::Contains | Function::ContainsText, [Text(of), Text(part)]) => {
                Value::Bool(of.contains(&**part))
            }
            (Function::Contains, [of, Text(part)]) => Value::Bool(self.searched(of, part)?),
            (Function::StartsWith, [Text(of), Text(part)]) => Value::Bool(of.starts_with(&**part)),
            (Function::EndsWith, [Text(of), Text(part)]) => Value::Bool(of.ends_with(&**part)),
            (Function::MatchesRegex(regex), [Text(of)]) => {
                Value::Bool(regex.matches(of, &mut self.meter)?)
            }
            (Function::Matches, [Text(of), Text(text)]) => {
                Value::Bool(pattern::matches_once(text, of, &mut self.meter)?)
            }
            (Function::Size, [of]) => Value::Int(size(of).ok_or(Miss::Unknown)?),
            (Function::Dyn, [value]) => value.clone(),
            (Function::Type, [value]) => Value::Type(value.type_name()),
            (Function::Timestamp, [value]) => timestamp(value).ok_or(Miss::Unknown)?,
            (Function::Duration, [value]) => match value {
                Value::Duration(_) => value.clone(),
                Text(text) => Value::Duration(time::parse_duration(text).ok_or(Miss::Unknown)?),
                _ => return Err(Miss::Unknown),
            },
            (Function::Get(part), [of, zone @ ..]) => {
                let zone = match zone {
                    [] => jiff::tz::TimeZone::UTC,
                    [Text(zone)] => {
                        self.meter.charge(ZONE)?;
                        time::time_zone(zone).ok_or(Miss::Unknown)?
                    }
                    _ => return Err(Miss::Unknown),
                };
                let value = match of {
                    Time(time) => time::part(*time, *part, zone),
                    other => time_part(other, *part, zone).ok_or(Miss::Unknown)?,
                };
                Value::Int(value)
            }
            (Function::Int, [value]) => int(value).ok_or(Miss::Unknown)?,
            (Function::Uint, [value]) => uint(value).ok_or(Miss::Unknown)?,
            (Function::Double, [value]) => double(value).ok_or(Miss::Unknown)?,
            (Function::Bool, [value]) => boolean(value).ok_or(Miss::Unknown)?,
            (Function::Text, [value]) => {
                self.meter.charge_made(bytes(value))?;
                text(value).ok_or(Miss::Unknown)?
            }
            (Function::Bytes, [value]) => match value {
                Value::Bytes(_) => value.clone(),
                Text(text) => {
                    self.meter.charge_made(text.len())?;
                    Value::Bytes(Shared::own(text.as_bytes()))
                }
                _ => return Err(Miss::Unknown),
            },
            (function, values) => return self.text_function(function, values),
        };
        Ok(value)
    }
}

/// How long a text is, or bytes are.
pub(super) fn bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

fn size(of: &Value<'_>) -> Option<i64> {
    let size = match of {
        Value::Text(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Array(items) => items.len(),
        Value::Map(entries) => entries.len(),
        Value::Texts(texts) => texts.len(),
        Value::Object(members) => members.len(),
        _ => return None,
    };
    i64::try_from(size).ok()
}

fn timestamp<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    Some(Value::Time(match value {
        Value::Time(time) => *time,
        Value::Text(text) => time::parse_timestamp(text)?,
        Value::Int(seconds) => time::from_seconds(*seconds)?,
        Value::Uint(seconds) => time::from_seconds(i64::try_from(*seconds).ok()?)?,
        _ => return None,
    }))
}

/// A part of a duration, or of what a text says.
fn time_part(of: &Value<'_>, part: TimePart, zone: jiff::tz::TimeZone) -> Option<i64> {
    match of {
        Value::Duration(duration) => time::duration_part(*duration, part),
        Value::Text(text) => match time::parse_timestamp(text) {
            Some(time) => Some(time::part(time, part, zone)),
            None => time::duration_part(time::parse_duration(text)?, part),
        },
        _ => None,
    }
}

fn int<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    Some(Value::Int(match value {
        Value::Int(value) => *value,
        Value::Uint(value) => i64::try_from(*value).ok()?,
        // The bounds are the nearest doubles inside the range.
        Value::Double(value)
            if *value > -9.223_372_036_854_776e18 && *value < 9.223_372_036_854_775e18 =>
        {
            *value as i64
        }
        Value::Text(text) => text.parse().ok()?,
        Value::Time(time) => time.as_second(),
        _ => return None,
    }))
}

fn uint<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    Some(Value::Uint(match value {
        Value::Uint(value) => *value,
        Value::Int(value) => u64::try_from(*value).ok()?,
        Value::Double(value) if *value >= 0.0 && *value < 1.844_674_407_370_955e19 => *value as u64,
        Value::Text(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn double<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    Some(Value::Double(match value {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::Text(text) => text.parse().ok()?,
        _ => return None,
    }))
}

fn boolean<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    Some(Value::Bool(match value {
        Value::Bool(value) => *value,
        Value::Text(text) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => true,
            "false" | "False" | "FALSE" | "f" | "0" => false,
            _ => return None,
        },
        _ => return None,
    }))
}

pub(super) fn text<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    Some(Value::Text(Shared::own(match value {
        Value::Text(_) => return Some(value.clone()),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Time(time) => time.to_string(),
        Value::Duration(duration) => time::duration_text(*duration),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok()?,
        _ => return None,
    })))
}
