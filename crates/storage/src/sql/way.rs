//! How a list goes about finding its rows.
//!
//! The order of time leads to common rows at once and to rare ones after all others; an index of
//! what is asked for leads to rare rows at once, but common ones are many to sort. Nobody knows
//! beforehand which is which, so a list looks among the next few thousand rows in order first,
//! and only where these are not enough goes by an index, or through everything.

use super::{
    condition::is_selective,
    dialect::Dialect,
    labels::has_label,
    lead::{Lead, conjuncts, has_times, leads},
    statement::Statement,
    stretch::Stretch,
};
use crate::seam::ListQuery;
use hindsight_filter::condition::{Column, Condition, Is};
use hindsight_filter::model::{ParentPattern, Resource, ResultPattern};

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way<'q> {
    /// As the database sees fit.
    Any,
    /// In order among so many next rows of the scope alone, whether they match or not.
    Near(i64),
    /// Among the rows of an index, which are sorted if need be.
    By(Lead<'q>),
    /// Among all rows, of which those that match are sorted.
    Sorted,
    /// By all labels that are asked for at once, with the parent and the time of storing, where
    /// that is known. PostgreSQL alone; the rows are sorted.
    Labels(Option<Stretch>),
}

/// How many rows are near: a match in forty fills the first page from them. PostgreSQL, which is
/// not asked to count what leads to rows, looks farther at once, but where labels lead to them.
/// Its results are wide, and few questions can be asked of them.
fn near_rows(dialect: Dialect, resource: Resource, query: &ListQuery) -> i64 {
    match (dialect, resource) {
        (Dialect::Postgres, Resource::Records) if has_label(query) => 1_000,
        (Dialect::Postgres, Resource::Records) => 10_000,
        (Dialect::Postgres, Resource::Results) => 4_000,
        (Dialect::Sqlite, _) => 2_000,
    }
}

/// Whether the list is in the order of when rows were stored, alone, and if so in which.
pub(crate) fn by_time(query: &ListQuery) -> Option<bool> {
    match query.order.keys() {
        [key] if key.column == Column::CreateTime => Some(key.descending),
        _ => None,
    }
}

/// How many rows are worth looking at before very many are gathered.
const FARTHER: i64 = 20_000;

/// The way to near rows, if it is worth looking among them first.
pub(crate) fn near(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
) -> Option<Way<'static>> {
    let near = begins_near(resource, query) && !asks_one_key(query);
    near.then(|| Way::Near(near_rows(dialect, resource, query)))
}

/// The way to rows that are not so near, where what leads to all of them is long.
pub(crate) fn farther(resource: Resource, query: &ListQuery) -> Option<Way<'static>> {
    begins_near(resource, query).then_some(Way::Near(FARTHER))
}

/// Whether one key of a promoted field is asked for: its rows are at hand in order, however many
/// there are.
fn asks_one_key(query: &ListQuery) -> bool {
    conjuncts(&query.condition).iter().any(|test| {
        matches!(test.column, Column::Promoted(_))
            && matches!(test.is, Is::Equal(_))
            && !test.negated
    })
}

fn begins_near(resource: Resource, query: &ListQuery) -> bool {
    let tests = conjuncts(&query.condition);
    let only_times = matches!(query.condition, Condition::And(_) | Condition::Test(_))
        && !tests.is_empty()
        && tests.iter().all(|test| test.column == Column::CreateTime);
    query.condition != Condition::All
        && !only_times
        && query.scope.id.is_none()
        && !is_selective(&query.condition)
        && matches!(query.order.keys(), [key] if walk(resource, query, &key.column).is_some())
}

/// Whether a list may have to look at many rows. One does not that walks an index in order of
/// which it takes the next rows, is of one result, or is about few rows by their names.
pub(crate) fn may_take_long(resource: Resource, query: &ListQuery) -> bool {
    let is_walked = match query.order.keys() {
        [] => true,
        [first, ..] => walk(resource, query, &first.column).is_some(),
    };
    let tests = conjuncts(&query.condition);
    let takes_next = match query.condition {
        Condition::All | Condition::Nothing => true,
        _ => !tests.is_empty() && tests.iter().all(|test| test.column == Column::CreateTime),
    };
    let is_small = query.scope.id.is_some() || is_selective(&query.condition);
    !(is_small || is_walked && takes_next)
}

/// The index, on SQLite, that has the rows of the scope in the order of a column.
pub(super) fn walk(resource: Resource, query: &ListQuery, column: &Column) -> Option<&'static str> {
    let one_parent = matches!(query.scope.parent, ParentPattern::Exact(_));
    Some(match (resource, column, one_parent) {
        (Resource::Records, Column::CreateTime, false) => "records_by_create",
        (Resource::Records, Column::CreateTime, true) => "records_by_parent_create",
        (Resource::Records, Column::UpdateTime, false) => "records_by_update",
        (Resource::Records, Column::UpdateTime, true) => "records_by_parent_update",
        (Resource::Results, Column::CreateTime, false) => "results_by_create",
        (Resource::Results, Column::CreateTime, true) => "results_by_parent_create",
        (Resource::Results, Column::UpdateTime, false) => "results_by_update",
        (Resource::Results, Column::UpdateTime, true) => "results_by_parent_update",
        _ => return None,
    })
}

/// The indexes that may lead to all rows; the best is to be found out. None where the database
/// knows best.
pub(crate) fn indexes(resource: Resource, query: &ListQuery) -> Vec<Lead<'_>> {
    if query.scope.id.is_some() || is_selective(&query.condition) {
        return Vec::new();
    }
    leads(resource, query)
}

/// The way to all rows where no index leads to them in order.
pub(crate) fn unled(dialect: Dialect, resource: Resource, query: &ListQuery) -> Way<'static> {
    // PostgreSQL does not know bounds that it has to find out first, and would read everything.
    let in_order = dialect == Dialect::Postgres && has_times(resource, &query.condition);
    match begins_near(resource, query) && !in_order {
        true => Way::Sorted,
        false => Way::Any,
    }
}

/// Appends which parents and results. Where another column says more than the parent, or the
/// index is chosen already, `elsewhere` keeps the parent out of the choice.
pub(super) fn scope(
    out: &mut Statement,
    dialect: Dialect,
    resource: Resource,
    scope: &ResultPattern,
    elsewhere: bool,
) {
    let id = scope.id.as_deref();
    match (resource, &scope.parent, id) {
        (Resource::Records, ParentPattern::Exact(parent), Some(id)) => {
            out.push(" AND result_row = (SELECT row_id FROM results WHERE id = ")
                .bind(id);
            out.push(" AND parent = ").bind(parent.as_str()).push(")");
            return;
        }
        (Resource::Records, ParentPattern::Any, Some(id)) => {
            out.push(" AND result_row IN (SELECT row_id FROM results WHERE id = ")
                .bind(id);
            out.push(")");
            return;
        }
        (_, ParentPattern::Exact(parent), _) => {
            // SQLite without statistics takes any index that saves the sorting; the plus keeps
            // it off those that begin with the parent where another column says more.
            let plus = dialect == Dialect::Sqlite && elsewhere;
            out.push(if plus {
                " AND +parent = "
            } else {
                " AND parent = "
            });
            out.bind(parent.as_str());
        }
        (_, ParentPattern::Any, _) => {}
    }
    if let Some(id) = id {
        out.push(" AND id = ").bind(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::fixtures::everything;
    use hindsight_filter::Order;

    fn long(query: &ListQuery) -> bool {
        may_take_long(Resource::Records, query)
    }

    fn test(column: Column, is: Is) -> Condition {
        Condition::Test(hindsight_filter::condition::Test {
            column,
            is,
            negated: false,
        })
    }

    #[test]
    fn a_list_takes_no_time_where_it_takes_the_next_rows_of_an_index() {
        let all = everything();
        assert!(!long(&all));
        let updated = Order::by(Column::UpdateTime, true);
        assert!(!long(&ListQuery {
            order: updated,
            ..all.clone()
        }));
        let took = Order::by(Column::Outcome, true);
        let sorted = ListQuery {
            order: took,
            ..all.clone()
        };
        assert!(long(&sorted), "all rows are sorted");
        let typed = ListQuery {
            condition: test(Column::DataType, Is::Present),
            ..all.clone()
        };
        assert!(long(&typed), "others may lie between");
        let scope = "a/results/r".parse().unwrap();
        assert!(!long(&ListQuery { scope, ..sorted }), "one result is small");
        let id = hindsight_filter::condition::Value::Text("x".to_owned());
        let condition = test(Column::RecordId, Is::Equal(id));
        assert!(!long(&ListQuery { condition, ..all }));
    }
}
