//! Terms: what a text says about a row besides true and false, to group rows by.

use tokio_util::sync::CancellationToken;

use super::{
    FilterError, Row,
    condition::Column,
    cost::CostBudget,
    error::{EvalError, Problem},
    eval,
    expr::Expr,
    lower, parse,
    split::column,
    types::Type,
    value::Value,
};
use crate::{measure::Key, model::Resource};

/// An expression of the language that has one value on each row.
#[derive(Debug, Clone)]
pub struct Term {
    expr: Expr,
}

impl Term {
    /// Reads `text` as a term of `resource`, at the expense of `budget`.
    ///
    /// # Errors
    /// If it could not be read as a part of a filter, or its value is no text, number, time or
    /// truth, or if it costs too much.
    pub fn compile(
        text: &str,
        resource: Resource,
        budget: &mut CostBudget,
    ) -> Result<Self, FilterError> {
        let tree = parse::parse(text, budget)?;
        let expr = lower::expression(&tree, resource, budget).map_err(|p| p.in_meaning(text))?;
        if matches!(
            expr.ty,
            Type::List(_) | Type::Map(_) | Type::Group(_) | Type::Bytes | Type::Name
        ) {
            let what = format!(
                "it is {}; name one value of it, such as `data.metadata.labels[\"app\"]`",
                expr.ty
            );
            return Err(Problem::new(0, what).in_meaning(text));
        }
        Ok(Self { expr })
    }

    /// The column that the term is, if it is one. A row whose payload has a value of another
    /// type there lacks the column.
    pub fn column(&self) -> Option<Column> {
        Some(column::whole(&self.expr)?.column)
    }

    /// The value on a row. What is unknown is missing, and so is what is not one value.
    ///
    /// # Errors
    /// If one row takes more than [`MAX_STEPS`](super::MAX_STEPS) steps, or `stop` is cancelled.
    pub fn value(&self, row: &Row<'_>, stop: &CancellationToken) -> Result<Key, EvalError> {
        Ok(match eval::value(&self.expr, *row, stop)? {
            Some(Value::Bool(truth)) => Key::Bool(truth),
            Some(Value::Int(number)) => Key::Int(number),
            Some(Value::Uint(number)) => match i64::try_from(number) {
                Ok(number) => Key::Int(number),
                Err(_larger) => Key::Decimal(number.to_string()),
            },
            Some(Value::Double(number)) => Key::Decimal(number.to_string()),
            Some(Value::Text(text)) => Key::Text(text.to_string()),
            Some(Value::Time(time)) => Key::Time(time.as_microsecond()),
            Some(Value::Duration(duration)) => Key::Text(eval::time::duration_text(duration)),
            _ => Key::Missing,
        })
    }
}
