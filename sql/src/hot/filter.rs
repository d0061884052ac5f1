//! Filters of a statement in the language of the server: CEL that every row matches that passes them.

use std::fmt::Write as _;

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use jiff::Timestamp;

use crate::{
    bounds::{comparison, microseconds, one_of},
    columns::{NAMESPACE, Table},
};

/// Longest filter that is sent; what is longer is left to the engine.
const MOST: usize = 8 << 10;

/// What rows of the server are filtered by. Rows that pass the filters of the statement match it. The list of logs has
/// no filter.
pub(crate) fn cel(table: Table, filters: &[Expr]) -> String {
    let mut all = String::new();
    if table == Table::Logs {
        return all;
    }
    for part in filters.iter().filter_map(|filter| part(table, filter)) {
        if all.len() + part.len() > MOST {
            continue;
        }
        if !all.is_empty() {
            all.push_str(" && ");
        }
        all.push_str(&part);
    }
    all
}

fn part(table: Table, filter: &Expr) -> Option<String> {
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter {
        let (left, right) = (|| part(table, left), || part(table, right));
        match op {
            // Either half may be left out: more rows match what is left.
            Operator::And => {
                return match (left(), right()) {
                    (Some(left), Some(right)) => Some(format!("({left} && {right})")),
                    (left, right) => left.or(right),
                };
            }
            Operator::Or => return Some(format!("({} || {})", left()?, right()?)),
            _ => {}
        }
    }
    if let Some((column, values)) = one_of(filter) {
        let tests = values.iter().map(|value| equals(table, column, value));
        let tests: Option<Vec<_>> = tests.collect();
        return Some(format!("({})", tests?.join(" || ")));
    }
    let (column, op, value) = comparison(filter)?;
    let field = time_field(table, column)?;
    let time = Timestamp::from_microsecond(microseconds(op, value)?).ok()?;
    let op = match op {
        Operator::Eq => "==",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        _ => return None,
    };
    Some(format!("{field} {op} timestamp('{time}')"))
}

fn equals(table: Table, column: &str, value: &str) -> Option<String> {
    let quoted = quoted(value);
    if column == NAMESPACE {
        let end = self::quoted(&format!("/{value}"));
        return Some(format!("(parent == {quoted} || parent.endsWith({end}))"));
    }
    if column == "outcome" && table != Table::Results {
        // The names of outcomes are constants of the language; any other text is none of them.
        let known = ["UNKNOWN", "SUCCESS", "FAILURE", "TIMEOUT", "CANCELLED"];
        return known
            .contains(&value)
            .then(|| format!("run.outcome == {value}"));
    }
    let field = match (table, column) {
        (_, "parent") => "parent",
        (_, "uid") => "uid",
        (Table::Results, _) => return None,
        (_, "type") => "data_type",
        (_, "kind") => "data.kind",
        (_, "name") => "data.metadata.name",
        (_, "object_namespace") => "data.metadata.namespace",
        (_, "object_uid") => "data.metadata.uid",
        (_, "pipeline") => "run.pipeline",
        (_, "cluster_id") => "run.cluster",
        (_, "signature") => "run.signature",
        _ => return None,
    };
    Some(format!("{field} == {quoted}"))
}

fn time_field(table: Table, column: &str) -> Option<&'static str> {
    Some(match (table, column) {
        (_, "create_time") => "create_time",
        (_, "update_time") => "update_time",
        (Table::Results, "summary_start_time") => "summary.start_time",
        (Table::Results, "summary_end_time") => "summary.end_time",
        (Table::Results, _) => return None,
        (_, "start_time") => "run.start_time",
        (_, "end_time") => "run.end_time",
        _ => return None,
    })
}

/// A text as the language of filters writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // A write to a text does not fail.
                write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default();
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use datafusion::{
        prelude::{col, lit},
        scalar::ScalarValue,
    };
    use hindsight_filter::{Filter, model::Resource};

    use super::*;

    #[track_caller]
    fn becomes(table: Table, filter: Expr, wanted: &str) {
        let cel = cel(table, &[filter]);
        assert_eq!(cel, wanted);
        if cel.is_empty() {
            return;
        }
        let resource = match table {
            Table::Results => Resource::Results,
            _ => Resource::Records,
        };
        if let Err(error) = Filter::compile(&cel, resource) {
            panic!("{cel}: {error}");
        }
    }

    fn time(text: &str) -> Expr {
        let time: Timestamp = text.parse().unwrap();
        let us = Some(time.as_microsecond());
        lit(ScalarValue::TimestampMicrosecond(us, Some("UTC".into())))
    }

    #[test]
    fn tests_of_columns_are_sent() {
        let of = |filter, wanted| becomes(Table::Runs, filter, wanted);
        of(
            col("name").eq(lit("it's")),
            r"(data.metadata.name == 'it\'s')",
        );
        of(
            col("outcome").in_list(vec![lit("FAILURE"), lit("TIMEOUT")], false),
            "(run.outcome == FAILURE || run.outcome == TIMEOUT)",
        );
        of(
            col("namespace").eq(lit("ci")),
            "((parent == 'ci' || parent.endsWith('/ci')))",
        );
        of(
            col("start_time").gt_eq(time("2026-01-02T03:04:05.000006Z")),
            "run.start_time >= timestamp('2026-01-02T03:04:05.000006Z')",
        );
        becomes(
            Table::Results,
            col("summary_end_time").lt(time("2026-01-02T00:00:00Z")),
            "summary.end_time < timestamp('2026-01-02T00:00:00Z')",
        );
    }

    #[test]
    fn what_is_sent_lets_through_whatever_passes() {
        let known = col("kind").eq(lit("TaskRun"));
        let other = col("duration_us").gt(lit(5_i64));
        let of = |filter, wanted| becomes(Table::Runs, filter, wanted);
        of(known.clone().and(other.clone()), "(data.kind == 'TaskRun')");
        of(known.clone().or(other), "");
        of(col("outcome").eq(lit("no such")), "");
        of(col("name").not_eq(lit("x")), "");
        of(
            known.clone().or(col("pipeline").eq(lit("nightly"))),
            "((data.kind == 'TaskRun') || (run.pipeline == 'nightly'))",
        );
        becomes(Table::Results, known, "");
        becomes(Table::Logs, col("parent").eq(lit("ci")), "");
    }
}
