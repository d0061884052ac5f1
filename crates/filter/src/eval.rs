//! Judging one row. This is the reference meaning of the language: every engine must agree.
//!
//! Nothing here fails on a row: what is missing or does not convert is *unknown*. The one way
//! out is the budget, so that no filter can hang the server on one row.

mod arithmetic;
mod compare;
mod functions;
mod macros;
mod row;
mod search;
mod strings;
pub(super) mod time;

use hindsight_run::Kind;
use tokio_util::sync::CancellationToken;

use super::{
    cost::Meter,
    error::{EvalError, Miss},
    expr::{Expr, ExprKind, Field},
    syntax::Operator,
    value::{Elements, Shared, Value},
};
use row::{record_field, result_field};

pub use row::{Body, Row};

/// Elements or entries that are looked at in a step.
const FEW: usize = 8;
/// Longest text or list that a filter may make of a row, in bytes or elements.
const MAX_MADE: usize = 1 << 20;

pub(super) type Answer<T> = Result<T, Miss>;

/// Whether the row matches: whether the filter is true, not false and not unknown.
pub(super) fn matches(
    expr: &Expr,
    row: Row<'_>,
    stop: &CancellationToken,
) -> Result<bool, EvalError> {
    let value = value(expr, row, stop)?;
    Ok(value == Some(Value::Bool(true)))
}

/// What `expr` is on the row; nothing if that is unknown.
pub(super) fn value<'a>(
    expr: &'a Expr,
    row: Row<'a>,
    stop: &CancellationToken,
) -> Result<Option<Value<'a>>, EvalError> {
    let mut judge = Judge::new(Some(row), Meter::of_row(stop));
    match judge.eval(expr) {
        Ok(value) => Ok(Some(value)),
        Err(Miss::Unknown) => Ok(None),
        Err(Miss::Budget) if judge.meter.is_cancelled() => Err(EvalError::Cancelled),
        Err(Miss::Budget) => Err(EvalError::Budget),
    }
}

/// What `expr` is when its variables have these values; nothing if that is unknown or takes more
/// steps than it may.
pub(super) fn with_variables<'a>(expr: &'a Expr, values: Vec<Value<'a>>) -> Option<Value<'a>> {
    let mut judge = Judge::new(None, Meter::default());
    judge.locals = values;
    judge.eval(expr).ok()
}

/// The value of an expression that is made of constants, at the expense of `meter`.
pub(super) fn constant<'e>(expr: &'e Expr, meter: &mut Meter) -> Answer<Value<'e>> {
    let mut judge = Judge::new(None, std::mem::take(meter));
    let value = judge.eval(expr);
    *meter = judge.meter;
    value
}

struct Judge<'a> {
    row: Option<Row<'a>>,
    meter: Meter,
    locals: Vec<Value<'a>>,
}

impl<'a> Judge<'a> {
    fn new(row: Option<Row<'a>>, meter: Meter) -> Self {
        Self {
            row,
            meter,
            locals: Vec::new(),
        }
    }

    fn eval(&mut self, expr: &'a Expr) -> Answer<Value<'a>> {
        self.meter.charge(1)?;
        match &expr.kind {
            ExprKind::Const(value) => Ok(value.lend()),
            ExprKind::Field(field) => self.field(*field),
            ExprKind::Data => self.data(None),
            ExprKind::Alias(alias) => self.data(Some(alias)),
            ExprKind::Local(slot) => self.locals.get(*slot).cloned().ok_or(Miss::Unknown),
            ExprKind::Member(of, key) => {
                let of = self.eval(of)?;
                self.member(&of, key)?.ok_or(Miss::Unknown)
            }
            ExprKind::Index(of, index) => {
                let of = self.eval(of)?;
                let index = self.eval(index)?;
                self.element(&of, &index)
            }
            ExprKind::Has(of, key) => Ok(Value::Bool(match self.find(of)? {
                Some(of) => self.member(&of, key)?.is_some(),
                None => false,
            })),
            ExprKind::HasField(field) => Ok(Value::Bool(self.field(*field).is_ok())),
            ExprKind::Not(of) => self.test(of).map(|truth| Value::Bool(!truth)),
            ExprKind::Negate(of) => negated(self.eval(of)?),
            ExprKind::And(pair) => self.joined(pair, false).map(Value::Bool),
            ExprKind::Or(pair) => self.joined(pair, true).map(Value::Bool),
            ExprKind::If(three) => {
                let [condition, then, otherwise] = &**three;
                if self.test(condition)? {
                    self.eval(then)
                } else {
                    self.eval(otherwise)
                }
            }
            ExprKind::Compare(comparison, pair) => {
                self.compared(*comparison, pair).map(Value::Bool)
            }
            ExprKind::In(pair) => self.contained(pair).map(Value::Bool),
            ExprKind::Arithmetic(operator, pair) => self.arithmetic(*operator, pair),
            ExprKind::Call(function, args) => self.call(function, args),
            ExprKind::Macro(of) => self.run_macro(of),
            ExprKind::List(items) => {
                self.meter.charge_list(items.len())?;
                let items: Answer<Vec<_>> = items.iter().map(|item| self.eval(item)).collect();
                Ok(Value::List(items?.into()))
            }
            ExprKind::Map(entries) => {
                self.meter.charge_list(entries.len())?;
                let entries: Answer<Vec<_>> = entries
                    .iter()
                    .map(|(key, value)| Ok((self.eval(key)?, self.eval(value)?)))
                    .collect();
                Ok(Value::Map(entries?.into()))
            }
        }
    }

    /// The truth of a test. A value that is not boolean has none.
    fn test(&mut self, expr: &'a Expr) -> Answer<bool> {
        match self.eval(expr)? {
            Value::Bool(truth) => Ok(truth),
            _ => Err(Miss::Unknown),
        }
    }

    /// `&&` if `decisive` is false, `||` if it is true: one decisive side decides, even if the
    /// other is unknown.
    fn joined(&mut self, pair: &'a [Expr; 2], decisive: bool) -> Answer<bool> {
        let mut unknown = false;
        for side in pair {
            match self.test(side) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(Miss::Unknown) => unknown = true,
                Err(Miss::Budget) => return Err(Miss::Budget),
            }
        }
        if unknown {
            Err(Miss::Unknown)
        } else {
            Ok(!decisive)
        }
    }

    fn data(&mut self, alias: Option<&str>) -> Answer<Value<'a>> {
        let Some(Row::Record { record, body, .. }) = self.row else {
            return Err(Miss::Unknown);
        };
        if let Some(alias) = alias {
            let data = record.data.as_ref().ok_or(Miss::Unknown)?;
            let kind = Kind::of_type(&data.data_type).ok_or(Miss::Unknown)?;
            if kind.alias != Some(alias) {
                return Err(Miss::Unknown);
            }
        }
        body.json().map(Value::of_json).ok_or(Miss::Unknown)
    }

    fn field(&self, field: Field) -> Answer<Value<'a>> {
        let row = self.row.ok_or(Miss::Unknown)?;
        let value = match row {
            Row::Result(result) => result_field(result, field),
            Row::Record { record, tier, body } => record_field(record, tier, body, field),
        };
        value.ok_or(Miss::Unknown)
    }

    /// The full or the short name that `expr` must be taken for when it is compared with
    /// `other`; `value` if it is no name.
    fn named(&self, expr: &Expr, value: Value<'a>, other: &Value<'_>) -> Value<'a> {
        let Value::Text(other) = other else {
            return value;
        };
        let Some(Row::Record { record, .. }) = self.row else {
            return value;
        };
        match (&expr.kind, other.contains('/')) {
            (ExprKind::Field(Field::Name), false) => Value::text(record.name.id()),
            (ExprKind::Field(Field::ResultName), true) => {
                Value::Text(Shared::own(record.name.result().to_string()))
            }
            _ => value,
        }
    }

    /// The value at a path, or nothing if a step of it is missing.
    fn find(&mut self, expr: &'a Expr) -> Answer<Option<Value<'a>>> {
        self.meter.charge(1)?;
        match &expr.kind {
            ExprKind::Member(of, key) => match self.find(of)? {
                Some(of) => self.member(&of, key),
                None => Ok(None),
            },
            ExprKind::Index(of, index) => {
                let Some(of) = self.find(of)? else {
                    return Ok(None);
                };
                let index = self.eval(index)?;
                match self.element(&of, &index) {
                    Err(Miss::Unknown) => Ok(None),
                    found => found.map(Some),
                }
            }
            ExprKind::Field(field) => Ok(self.field(*field).ok()),
            _ => self.eval(expr).map(Some),
        }
    }

    fn element(&mut self, of: &Value<'a>, index: &Value<'a>) -> Answer<Value<'a>> {
        if let Some(elements) = of.elements() {
            return position(elements, index).ok_or(Miss::Unknown);
        }
        if let Value::Map(entries) = of {
            self.meter.charge(entries.len() / FEW)?;
            for (key, value) in entries.iter() {
                if self.equal(key, index) == Ok(true) {
                    return Ok(value.clone());
                }
            }
        }
        match index {
            Value::Text(key) => self.member(of, key)?.ok_or(Miss::Unknown),
            _ => Err(Miss::Unknown),
        }
    }

    /// The member `key` of a map, if there is one.
    fn member(&mut self, of: &Value<'a>, key: &str) -> Answer<Option<Value<'a>>> {
        if let Value::Map(entries) = of {
            self.meter.charge(entries.len() / FEW)?;
        }
        Ok(member(of, key))
    }

    fn arithmetic(&mut self, operator: Operator, pair: &'a [Expr; 2]) -> Answer<Value<'a>> {
        let left = self.eval(&pair[0])?;
        let right = self.eval(&pair[1])?;
        arithmetic::arithmetic(self, operator, left, right)
    }
}

fn negated(value: Value<'_>) -> Answer<Value<'_>> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int),
        Value::Double(value) => Some(Value::Double(-value)),
        _ => None,
    }
    .ok_or(Miss::Unknown)
}

/// The member `key` of a map.
fn member<'a>(of: &Value<'a>, key: &str) -> Option<Value<'a>> {
    match of {
        Value::Object(members) => members.get(key).map(Value::of_json),
        Value::Texts(texts) => texts.get(key).map(|text| Value::text(text)),
        Value::Map(entries) => entries
            .iter()
            .find(|(name, _)| matches!(name, Value::Text(name) if **name == *key))
            .map(|(_, value)| value.clone()),
        _ => None,
    }
}

/// The element at `index`; below zero it counts from the end.
fn position<'a>(elements: Elements<'_, 'a>, index: &Value<'_>) -> Option<Value<'a>> {
    let index = match *index {
        Value::Int(index) => index,
        Value::Uint(index) => i64::try_from(index).ok()?,
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 1e15 => index as i64,
        _ => return None,
    };
    let index = match usize::try_from(index) {
        Ok(index) => index,
        Err(_negative) => elements
            .len()
            .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    elements.get(index)
}
