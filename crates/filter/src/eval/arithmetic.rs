//! Arithmetic: sums, differences and the rest, of numbers, texts and times.

use jiff::SignedDuration;

use super::functions::bytes;
use super::{Answer, Judge, MAX_MADE, time};
use crate::{
    error::Miss,
    syntax::Operator,
    value::{Shared, Value},
};

/// `left operator right`. Overflow and division by zero are unknown.
pub(super) fn arithmetic<'a>(
    judge: &mut Judge<'a>,
    operator: Operator,
    left: Value<'a>,
    right: Value<'a>,
) -> Answer<Value<'a>> {
    use Value::{Bytes, Double, Duration, Int, Text, Time, Uint};
    judge.meter.charge_bulk(bytes(&left) + bytes(&right))?;
    let made = match (left, right) {
        (Int(a), Int(b)) => ints(operator, a, b),
        (Uint(a), Uint(b)) => uints(operator, a, b),
        (Double(a), Double(b)) => doubles(operator, a, b),
        (Int(a), Double(b)) => doubles(operator, a as f64, b),
        (Double(a), Int(b)) => doubles(operator, a, b as f64),
        (Uint(a), Double(b)) => doubles(operator, a as f64, b),
        (Double(a), Uint(b)) => doubles(operator, a, b as f64),
        (Int(a), Uint(b)) => i64::try_from(b).ok().and_then(|b| ints(operator, a, b)),
        (Uint(a), Int(b)) => i64::try_from(a).ok().and_then(|a| ints(operator, a, b)),
        (Text(a), Text(b)) if operator == Operator::Add => {
            judge.meter.charge_made(a.len() + b.len())?;
            if a.len() + b.len() > MAX_MADE {
                return Err(Miss::Budget);
            }
            Some(Text(Shared::own(format!("{}{}", &*a, &*b))))
        }
        (Bytes(a), Bytes(b)) if operator == Operator::Add && a.len() + b.len() <= MAX_MADE => {
            judge.meter.charge_made(a.len() + b.len())?;
            Some(Bytes(Shared::own([&*a, &*b].concat())))
        }
        (Time(a), Duration(b)) => moved(operator, a, b),
        (Duration(a), Time(b)) if operator == Operator::Add => moved(operator, b, a),
        (Duration(a), Duration(b)) => durations(operator, a, b),
        // A payload holds times as text.
        (Text(a), Duration(b)) => {
            hindsight_proto::time::parse(&a).and_then(|a| moved(operator, a, b))
        }
        (Duration(a), Text(b)) if operator == Operator::Add => {
            hindsight_proto::time::parse(&b).and_then(|b| moved(operator, b, a))
        }
        (a @ (Text(_) | Time(_)), b @ (Text(_) | Time(_))) if operator == Operator::Subtract => {
            between(&a, &b)
        }
        (a, b) if operator == Operator::Add => return joined(judge, &a, &b),
        _ => None,
    };
    made.ok_or(Miss::Unknown)
}

fn joined<'a>(judge: &mut Judge<'a>, a: &Value<'a>, b: &Value<'a>) -> Answer<Value<'a>> {
    let (Some(a), Some(b)) = (a.elements(), b.elements()) else {
        return Err(Miss::Unknown);
    };
    judge.meter.charge(a.len() + b.len())?;
    judge.meter.charge_list(a.len() + b.len())?;
    Ok(Value::List(a.iter().chain(b.iter()).collect()))
}

fn between<'a>(a: &Value<'_>, b: &Value<'_>) -> Option<Value<'a>> {
    let time = |value: &Value<'_>| match value {
        Value::Time(time) => Some(*time),
        Value::Text(text) => hindsight_proto::time::parse(text),
        _ => None,
    };
    time::in_range(time(a)?.duration_since(time(b)?)).map(Value::Duration)
}

fn moved<'a>(operator: Operator, time: jiff::Timestamp, by: SignedDuration) -> Option<Value<'a>> {
    let moved = match operator {
        Operator::Add => time.checked_add(by).ok()?,
        Operator::Subtract => time.checked_sub(by).ok()?,
        _ => return None,
    };
    time::cut(moved).map(Value::Time)
}

fn durations<'a>(operator: Operator, a: SignedDuration, b: SignedDuration) -> Option<Value<'a>> {
    let duration = match operator {
        Operator::Add => a.checked_add(b)?,
        Operator::Subtract => a.checked_sub(b)?,
        _ => return None,
    };
    time::in_range(duration).map(Value::Duration)
}

fn ints<'a>(operator: Operator, a: i64, b: i64) -> Option<Value<'a>> {
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => None,
    };
    value.map(Value::Int)
}

fn uints<'a>(operator: Operator, a: u64, b: u64) -> Option<Value<'a>> {
    let value = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => None,
    };
    value.map(Value::Uint)
}

fn doubles<'a>(operator: Operator, a: f64, b: f64) -> Option<Value<'a>> {
    let value = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return None,
    };
    Some(Value::Double(value))
}
