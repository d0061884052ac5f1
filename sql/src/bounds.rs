//! What the filters of a statement say of where rows can be: parents, namespaces, clusters and times of storing.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::{
    logical_expr::{BinaryExpr, Expr, Operator, expr::InList, utils::split_conjunction},
    scalar::ScalarValue,
};

/// Rows that the filters let through are within these bounds; others may be too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Their parents, if those are named.
    pub(crate) parents: Option<BTreeSet<String>>,
    /// The last parts of their parents.
    pub(crate) namespaces: Option<BTreeSet<String>>,
    /// Their clusters.
    pub(crate) clusters: Option<BTreeSet<String>>,
    /// No record was stored first before, in microseconds since 1970.
    pub(crate) earliest: Option<i64>,
    /// None was after.
    pub(crate) latest: Option<i64>,
}

impl Bounds {
    /// Those of rows that pass all of these.
    pub(crate) fn of(filters: &[Expr]) -> Self {
        let mut bounds = Self::default();
        for filter in filters.iter().flat_map(split_conjunction) {
            bounds.narrow(filter);
        }
        bounds
    }

    fn narrow(&mut self, filter: &Expr) {
        if let Some((column, values)) = one_of(filter) {
            let set = match column {
                "parent" => &mut self.parents,
                "namespace" => &mut self.namespaces,
                "cluster_id" => &mut self.clusters,
                _ => return self.narrow_time(filter),
            };
            *set = Some(match set.take() {
                None => values,
                Some(before) => before.intersection(&values).cloned().collect(),
            });
            return;
        }
        self.narrow_time(filter);
    }

    fn narrow_time(&mut self, filter: &Expr) {
        let Some((column, op, value)) = comparison(filter) else {
            return;
        };
        let Some(time) = microseconds(op, value).filter(|_| column == "create_time") else {
            return;
        };
        let is_lower = matches!(op, Operator::Gt | Operator::GtEq | Operator::Eq);
        let is_upper = matches!(op, Operator::Lt | Operator::LtEq | Operator::Eq);
        if is_lower {
            self.earliest = Some(self.earliest.map_or(time, |known| known.max(time)));
        }
        if is_upper {
            self.latest = Some(self.latest.map_or(time, |known| known.min(time)));
        }
    }

    /// Whether rows can be of a parent with this last part, in this cluster.
    pub(crate) fn may_be_of(&self, namespace: &str, cluster: Option<&str>) -> bool {
        let has = |set: &Option<BTreeSet<String>>, value: Option<&str>| {
            let is_in = |set: &BTreeSet<String>| value.is_some_and(|value| set.contains(value));
            set.as_ref().is_none_or(is_in)
        };
        has(&self.namespaces, Some(namespace)) && has(&self.clusters, cluster)
    }

    /// Whether rows can have been stored first in this time.
    pub(crate) fn may_be_between(&self, begin: i64, end: i64) -> bool {
        self.earliest.is_none_or(|earliest| earliest <= end)
            && self.latest.is_none_or(|latest| begin <= latest)
    }
}

/// A column and the texts of which it has one.
pub(crate) fn one_of(filter: &Expr) -> Option<(&str, BTreeSet<String>)> {
    match filter {
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let values: Option<_> = list.iter().map(text).collect();
            Some((name(expr)?, values?))
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => {
            let ((column, mut some), (same, more)) = (one_of(left)?, one_of(right)?);
            some.extend(more);
            (column == same).then_some((column, some))
        }
        _ => match comparison(filter)? {
            (column, Operator::Eq, value) => Some((column, BTreeSet::from([text_of(value)?]))),
            _ => None,
        },
    }
}

/// A comparison of a column with a value, the column on the left.
pub(crate) fn comparison(filter: &Expr) -> Option<(&str, Operator, &ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else {
        return None;
    };
    match (name(left), literal(right), name(right), literal(left)) {
        (Some(column), Some(value), ..) => Some((column, *op, value)),
        (.., Some(column), Some(value)) => Some((column, op.swap()?, value)),
        _ => None,
    }
}

/// The name of a column, also of one of times that is compared in a finer unit.
fn name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => match cast.field.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => name(&cast.expr),
            _ => None,
        },
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<String> {
    text_of(literal(expr)?)
}

pub(crate) fn text_of(value: &ScalarValue) -> Option<String> {
    value.try_as_str().flatten().map(str::to_owned)
}

/// A time to compare with times in whole microseconds, since 1970. Whatever compares so with the value compares so with
/// it.
pub(crate) fn microseconds(op: Operator, value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampSecond(time, _) => time.and_then(|time| time.checked_mul(1_000_000)),
        ScalarValue::TimestampMillisecond(time, _) => time.and_then(|time| time.checked_mul(1_000)),
        ScalarValue::TimestampMicrosecond(time, _) => *time,
        ScalarValue::TimestampNanosecond(time, _) => {
            let (whole, rest) = ((*time)?.div_euclid(1_000), (*time)?.rem_euclid(1_000));
            match op {
                _ if rest == 0 => Some(whole),
                Operator::Gt | Operator::GtEq => Some(whole),
                Operator::Lt | Operator::LtEq => Some(whole + 1),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn set(values: &[&str]) -> Option<BTreeSet<String>> {
        Some(values.iter().map(|value| (*value).to_owned()).collect())
    }

    fn time(us: i64) -> Expr {
        lit(ScalarValue::TimestampMicrosecond(
            Some(us),
            Some("UTC".into()),
        ))
    }

    #[test]
    fn what_is_named_bounds_rows() {
        let filters = [
            col("parent").eq(lit("ci")).or(lit("dev").eq(col("parent"))),
            col("parent").in_list(vec![lit("dev"), lit("ops")], false),
            col("namespace")
                .eq(lit("dev"))
                .and(col("cluster_id").eq(lit("east"))),
            col("create_time")
                .gt_eq(time(5))
                .and(time(9).gt(col("create_time"))),
        ];
        let bounds = Bounds::of(&filters);
        let wanted = Bounds {
            parents: set(&["dev"]),
            namespaces: set(&["dev"]),
            clusters: set(&["east"]),
            earliest: Some(5),
            latest: Some(9),
        };
        assert_eq!(bounds, wanted);
        assert!(bounds.may_be_of("dev", Some("east")));
        assert!(!bounds.may_be_of("dev", None));
        assert!(bounds.may_be_between(9, 12) && !bounds.may_be_between(10, 12));
    }

    #[test]
    fn times_within_a_microsecond_leave_none_out() {
        let of = |op, ns| microseconds(op, &ScalarValue::TimestampNanosecond(Some(ns), None));
        assert_eq!(of(Operator::Lt, 1_500), Some(2));
        assert_eq!(of(Operator::LtEq, -1_500), Some(-1));
        assert_eq!(of(Operator::Gt, 1_500), Some(1));
        assert_eq!(of(Operator::GtEq, -1_500), Some(-2));
        assert_eq!(of(Operator::Eq, 1_500), None);
        assert_eq!(of(Operator::Eq, 2_000), Some(2));
    }

    #[test]
    fn what_is_excluded_or_about_others_bounds_nothing() {
        let filters = [
            col("parent").eq(lit("ci")).or(col("name").eq(lit("x"))),
            col("parent").not_eq(lit("ci")),
            col("parent").in_list(vec![lit("dev")], true),
            col("start_time").gt(time(5)),
            col("create_time").not_eq(time(5)),
        ];
        assert_eq!(Bounds::of(&filters), Bounds::default());
    }
}
