//! Equality, order, and `in`.

use std::cmp::Ordering;

use super::{Answer, FEW, Judge, time};
use crate::{
    error::Miss,
    expr::{Comparison, Expr, ExprKind},
    types::Type,
    value::Value,
};

impl<'a> Judge<'a> {
    pub(super) fn compared(&mut self, comparison: Comparison, pair: &'a [Expr; 2]) -> Answer<bool> {
        let left = self.eval(&pair[0])?;
        let right = self.eval(&pair[1])?;
        let order = match comparison {
            Comparison::Equal | Comparison::NotEqual => {
                let left = self.named(&pair[0], left, &right);
                let right = self.named(&pair[1], right, &left);
                let equal = match pair.iter().any(|side| side.ty == Type::Null) {
                    true => is_null(&left) && is_null(&right),
                    false => self.equal(&left, &right)?,
                };
                return Ok(equal == (comparison == Comparison::Equal));
            }
            _ => self.ordered(&left, &right)?,
        };
        // Not a number is neither below nor above anything.
        let Some(order) = order else { return Ok(false) };
        Ok(match comparison {
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            _ => order.is_ge(),
        })
    }

    /// `needle in haystack`: whether one element is equal, or one key of a map.
    pub(super) fn contained(&mut self, pair: &'a [Expr; 2]) -> Answer<bool> {
        let needle = self.eval(&pair[0])?;
        let haystack = self.eval(&pair[1])?;
        if let Some(elements) = haystack.elements() {
            self.meter.charge(elements.len() / FEW)?;
            let written = matches!(pair[1].kind, ExprKind::Const(_) | ExprKind::List(_));
            let mut unknown = false;
            for element in elements.iter() {
                let needle = self.named(&pair[0], needle.clone(), &element);
                match self.equal(&needle, &element) {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(Miss::Unknown) if written && is_null(&element) => {}
                    Err(Miss::Unknown) => unknown = true,
                    Err(Miss::Budget) => return Err(Miss::Budget),
                }
            }
            return if unknown {
                Err(Miss::Unknown)
            } else {
                Ok(false)
            };
        }
        match (&haystack, &needle) {
            (Value::Object(members), Value::Text(key)) => Ok(members.contains_key(&**key)),
            (Value::Texts(texts), Value::Text(key)) => Ok(texts.contains_key(&**key)),
            (Value::Map(entries), needle) => {
                self.meter.charge(entries.len() / FEW)?;
                Ok(entries
                    .iter()
                    .any(|(key, _)| self.equal(key, needle) == Ok(true)))
            }
            _ => Err(Miss::Unknown),
        }
    }

    /// Whether two values are equal. Values of different types are neither equal nor unequal.
    pub(super) fn equal(&mut self, left: &Value<'a>, right: &Value<'a>) -> Answer<bool> {
        match (left, right) {
            (Value::Null, Value::Null) => return Ok(true),
            (Value::Type(a), Value::Type(b)) => return Ok(a == b),
            _ => {}
        }
        if let (Some(a), Some(b)) = (left.elements(), right.elements()) {
            if a.len() != b.len() {
                return Ok(false);
            }
            let mut unknown = false;
            for (a, b) in a.iter().zip(b.iter()) {
                self.meter.charge(1)?;
                match self.equal(&a, &b) {
                    Ok(false) => return Ok(false),
                    Ok(true) => {}
                    Err(Miss::Unknown) => unknown = true,
                    Err(Miss::Budget) => return Err(Miss::Budget),
                }
            }
            return if unknown {
                Err(Miss::Unknown)
            } else {
                Ok(true)
            };
        }
        if let (Some(a), Some(b)) = (left.entries(), right.entries()) {
            if a.len() != b.len() {
                return Ok(false);
            }
            self.meter.charge_list(a.len() + b.len())?;
            return self.equal_maps(&a.collect::<Vec<_>>(), &b.collect::<Vec<_>>());
        }
        Ok(self.ordered(left, right)? == Some(Ordering::Equal))
    }

    /// How two values are ordered, as [`order`] says.
    fn ordered(&mut self, left: &Value<'_>, right: &Value<'_>) -> Answer<Option<Ordering>> {
        use Value::{Bytes, Text};
        self.meter.charge_bulk(match (left, right) {
            (Text(a), Text(b)) => a.len().min(b.len()),
            (Bytes(a), Bytes(b)) => a.len().min(b.len()),
            (Text(text), _) | (_, Text(text)) => text.len(),
            _ => 0,
        })?;
        order(left, right)
    }

    fn equal_maps(
        &mut self,
        left: &[(Value<'a>, Value<'a>)],
        right: &[(Value<'a>, Value<'a>)],
    ) -> Answer<bool> {
        let mut unknown = false;
        for (key, a) in left {
            let mut found = None;
            for (other, b) in right {
                self.meter.charge(1)?;
                if self.equal(key, other) == Ok(true) {
                    found = Some(b);
                    break;
                }
            }
            let Some(b) = found else { return Ok(false) };
            match self.equal(a, b) {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(Miss::Unknown) => unknown = true,
                Err(Miss::Budget) => return Err(Miss::Budget),
            }
        }
        if unknown {
            Err(Miss::Unknown)
        } else {
            Ok(true)
        }
    }
}

/// Null as it is written in a filter is unequal to every value that is not null; a null of a
/// payload and a value of another type are as unequal as any two types.
fn is_null(value: &Value<'_>) -> bool {
    *value == Value::Null
}

/// How two values are ordered; nothing if one is not a number though it is a double.
///
/// Text is compared with times and durations by what it says, because that is how a payload
/// holds them.
fn order(left: &Value<'_>, right: &Value<'_>) -> Answer<Option<Ordering>> {
    use Value::{Bool, Bytes, Double, Duration, Int, Text, Time, Uint};
    Ok(match (left, right) {
        (Int(a), Int(b)) => Some(a.cmp(b)),
        (Uint(a), Uint(b)) => Some(a.cmp(b)),
        (Int(a), Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Uint(a), Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Int(a), Double(b)) => whole_and_double(i128::from(*a), *b),
        (Uint(a), Double(b)) => whole_and_double(i128::from(*a), *b),
        (Double(a), Int(b)) => whole_and_double(i128::from(*b), *a).map(Ordering::reverse),
        (Double(a), Uint(b)) => whole_and_double(i128::from(*b), *a).map(Ordering::reverse),
        (Text(a), Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Bytes(a), Bytes(b)) => Some(a.cmp(b)),
        (Bool(a), Bool(b)) => Some(a.cmp(b)),
        (Time(a), Time(b)) => Some(a.cmp(b)),
        (Duration(a), Duration(b)) => Some(a.cmp(b)),
        (Text(a), Time(b)) => Some(hindsight_proto::time::parse(a).ok_or(Miss::Unknown)?.cmp(b)),
        (Time(a), Text(b)) => Some(a.cmp(&hindsight_proto::time::parse(b).ok_or(Miss::Unknown)?)),
        (Text(a), Duration(b)) => Some(time::parse_duration(a).ok_or(Miss::Unknown)?.cmp(b)),
        (Duration(a), Text(b)) => Some(a.cmp(&time::parse_duration(b).ok_or(Miss::Unknown)?)),
        _ => return Err(Miss::Unknown),
    })
}

/// Compares without rounding the whole number, which a double could not hold.
fn whole_and_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Outside this range the double is beyond every 64-bit number; inside, its whole part is
    // exact.
    if double.abs() >= 1e20 {
        return Some(if double > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let order = whole.cmp(&(double.trunc() as i128));
    Some(order.then_with(|| 0.0.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)))
}
