//! Filters: what a text means, which half of it an engine can answer, and whether one row
//! matches.
//!
//! One meaning everywhere. A filter is evaluated in three-valued logic: *true*, *false*, or
//! *unknown*, which is what a missing field, a failed conversion, or a comparison of JSON values
//! of different types gives. Only *true* matches, so `x != "a"` and `!(x == "a")` both leave out
//! rows that have no `x`. Times are compared at microsecond precision.
//!
//! Nothing here reads a database; no text of a filter leaves this room except inside a
//! [`condition::Value`] or a [`condition::Column`], which stores bind.

mod advice;
mod clusters;
pub mod columns;
pub mod commas;
pub mod condition;
mod cost;
mod error;
mod eval;
mod explain;
mod expr;
mod expression;
pub mod extract;
mod fields;
pub mod indexed;
mod language;
mod limits;
mod lower;
pub mod measure;
pub mod model;
pub mod order;
pub mod outline;
mod parse;
mod pattern;
mod prune;
mod reads;
mod runs;
mod selector;
mod split;
mod syntax;
mod term;
mod types;
mod value;
pub mod words;

pub use clusters::ClusterNames;
pub use cost::CostBudget;
pub use error::{EvalError, FilterError, Place};
pub use eval::{Body, Row};
pub use expression::Expression;
pub use fields::nearest;
pub use language::{Language, Selection, UnknownLanguage};
pub use limits::{
    MAX_CHARS, MAX_COMPILE_STEPS, MAX_CONSTANT_BYTES, MAX_DEPTH, MAX_NODES, MAX_PATTERN_STATES,
    MAX_STEPS,
};
pub use order::{Order, OrderError, Position, parse_order};
pub use runs::run_filter;
pub use split::Split;
pub use term::Term;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::{
    condition::{Ability, Test},
    expr::{Expr, ExprKind},
    reads::Reads,
    types::Type,
    value::Value,
};
use crate::model::{Record, Resource};

#[cfg(any(test, feature = "testing"))]
pub mod samples;
#[cfg(test)]
mod tests;

/// A filter that makes sense.
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    expr: Expr,
    reads: Arc<Reads>,
}

impl Filter {
    /// Reads `text` as a filter of `resource` in CEL. Blank text matches every row.
    ///
    /// # Errors
    /// If the text is too large, is not written in the language, uses a name or a function that
    /// does not exist, combines types that do not go together, or is not a test.
    pub fn compile(text: &str, resource: Resource) -> Result<Self, FilterError> {
        let selection = Selection {
            filter: text,
            ..Selection::default()
        };
        Self::select(&selection, resource)
    }

    /// The column that `text` names, for orders.
    fn column(text: &str, resource: Resource) -> Result<Option<condition::Column>, FilterError> {
        // A field is short, and is read where its request arrives.
        let mut budget = CostBudget::small();
        let tree = parse::parse(text, &mut budget)?;
        let expr = lower::expression(&tree, resource, &mut budget)
            .map_err(|problem| problem.in_meaning(text))?;
        Ok(split::column::whole(&expr).map(|found| found.column))
    }

    /// Whether stores keep a column of a part of payloads, indexed or not.
    pub fn has_column(path: &indexed::Path) -> bool {
        let column = Self::column(&path.to_string(), Resource::Records);
        !path.has_where() && matches!(column, Ok(Some(_)))
    }

    /// The text it was read from, without outer blanks; of several texts, something that no
    /// other texts give.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What matches all of `filters`. Its text is made of theirs, and no other filters give it.
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        let mut text = String::from("\0all");
        let mut exprs = Vec::new();
        for filter in filters {
            text = format!("{text}:{}:{}", filter.text.len(), filter.text);
            exprs.push(filter.expr);
        }
        let both = |a, b| Expr::new(Type::Bool, ExprKind::And(Box::new([a, b])));
        let always = || Expr::new(Type::Bool, ExprKind::Const(Value::Bool(true)));
        let expr = exprs.into_iter().reduce(both).unwrap_or_else(always);
        Self {
            text,
            reads: Arc::new(Reads::of(&expr)),
            expr,
        }
    }

    /// The same filter, as if it had been read from `text`.
    #[must_use]
    pub fn with_text(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// Whether judging a row needs the record's payload.
    pub fn needs_body(&self) -> bool {
        self.expr.needs_body()
    }

    /// The payload of `record`, of which no more is made into values than this filter reads. It
    /// matches or not as [`Body::of`] the record does, many times faster.
    pub fn body(&self, record: &Record) -> Body {
        Body::cut_to(record, &self.reads)
    }

    /// Whether `row` matches.
    ///
    /// # Errors
    /// If one row takes more than [`MAX_STEPS`] steps.
    pub fn matches(&self, row: &Row<'_>) -> Result<bool, EvalError> {
        self.matches_until(row, &CancellationToken::new())
    }

    /// Whether `row` matches. It is given up soon after `stop` is cancelled.
    ///
    /// # Errors
    /// If one row takes more than [`MAX_STEPS`] steps, or `stop` is cancelled.
    pub fn matches_until(
        &self,
        row: &Row<'_>,
        stop: &CancellationToken,
    ) -> Result<bool, EvalError> {
        eval::matches(&self.expr, *row, stop)
    }

    /// What is probably wrong with it, given payloads that it was judged on and none of which
    /// matched.
    pub fn advice(&self, payloads: &[serde_json::Value]) -> Vec<String> {
        advice::advice(&self.expr, payloads)
    }

    /// Divides the filter between an engine, of which `ability` tells how well it answers a
    /// test, and us.
    ///
    /// Invariant: the condition accepts every row that the filter matches. If nothing is left
    /// over it accepts no other row.
    pub fn split(&self, ability: &dyn Fn(&Test) -> Ability) -> Split {
        split::split(&self.expr, ability)
    }

    /// What the engine is asked and what is left for us, for people.
    pub fn explain(&self, ability: &dyn Fn(&Test) -> Ability) -> String {
        explain::explain(&self.split(ability), self.needs_body())
    }
}
