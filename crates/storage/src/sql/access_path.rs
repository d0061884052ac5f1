//! Access paths: how a list finds its rows.
//!
//! The order of time leads to common rows at once and to rare ones after all others; an index of
//! what is asked for leads to rare rows at once, but common ones are many to sort. Which is which
//! is not known beforehand, so a list looks among the next few thousand rows in order first, and
//! only where these are not enough goes by an index, or through everything.

use std::fmt;

use super::{
    candidate::{self, IndexCandidate, conjuncts},
    condition::is_selective,
    cost,
    dialect::Dialect,
    labels::{self, has_label},
    statement::Statement,
    stored_time::{by_time, has_times},
    time_window::TimeWindow,
};
use crate::seam::ListQuery;
use hindsight_filter::condition::{Column, Condition, Is, Test, Value};
use hindsight_filter::model::{ParentPattern, Resource, ResultPattern};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessPath<'q> {
    /// Whatever the planner of the database chooses.
    DatabaseChoice,
    /// In order among so many next rows of the scope alone, whether they match or not.
    PrefixScan(i64),
    /// Among the rows of an index, which are sorted if need be.
    Index(IndexCandidate<'q>),
    /// In order among so many next rows of an index that has an order of its own. PostgreSQL alone.
    NextOf(IndexCandidate<'q>, i64),
    /// In order among all rows of the scope, by an index, until there are enough. SQLite alone, whose
    /// rows lie almost in that order, so that it takes at most twice as long as a full scan.
    IndexScan,
    /// Among all rows, of which those that match are sorted. PostgreSQL alone.
    FullSort,
    /// Among what was stored late or early, in order.
    Late,
    /// By all labels that are asked for at once, with the parent and the time of storing, where
    /// that is known. PostgreSQL alone; the rows are sorted.
    LabelIndex(Option<TimeWindow>),
}

impl fmt::Display for AccessPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DatabaseChoice => f.write_str("the choice of the database"),
            Self::PrefixScan(rows) => write!(f, "scan of the next {rows} rows in order"),
            Self::Index(candidate) => candidate.fmt(f),
            Self::NextOf(candidate, rows) => write!(f, "next {rows} rows of the {candidate}"),
            Self::IndexScan => f.write_str("scan of all rows in order"),
            Self::FullSort => f.write_str("scan and sort of all rows"),
            Self::Late => f.write_str("index of what was stored late or early"),
            Self::LabelIndex(_) => f.write_str("index of labels"),
        }
    }
}

/// The prefix scan that is worth trying first, if any is.
pub(crate) fn prefix_scan(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
) -> Option<AccessPath<'static>> {
    let is_worth = may_scan_prefix(resource, query)
        && !asks_one_key(query)
        && !(resource == Resource::Records && asks_rare(dialect, query));
    let model = cost::model(dialect);
    if !leads_anywhere(dialect, resource, query) {
        // On SQLite the scan of all rows begins with the same.
        let is_long = is_worth && dialect == Dialect::Postgres;
        return is_long.then_some(AccessPath::PrefixScan(model.long_prefix_rows));
    }
    let rows = match candidate::of_names(query) {
        Some(IndexCandidate::NameParts(_)) => model.prefix_parts,
        Some(_) => model.prefix_searched,
        None => model.prefix_rows(resource, has_label(query) || asks_how_long(query)),
    };
    let is_other = |test: &Test| test.column != Column::DataType;
    let has_others = has_test(&query.condition, &is_other);
    let rows = match has_others && is_of_parent_and_type(resource, query) {
        true => rows.min(model.prefix_typed),
        false => rows,
    };
    is_worth.then_some(AccessPath::PrefixScan(rows))
}

/// Whether the prefix scan is the longer one.
pub(crate) fn is_long_prefix(dialect: Dialect, resource: Resource, query: &ListQuery) -> bool {
    let long = AccessPath::PrefixScan(cost::model(dialect).long_prefix_rows);
    prefix_scan(dialect, resource, query) == Some(long)
}

/// Whether something leads to rows, or a prefix scan asks for them in another way than the scan of all.
fn leads_anywhere(dialect: Dialect, resource: Resource, query: &ListQuery) -> bool {
    let all = candidate::candidates(resource, query, true);
    let leads = |one: &IndexCandidate<'_>| match (dialect, one) {
        (Dialect::Postgres, IndexCandidate::Labels(test)) => labels::one_of(test).is_some(),
        _ => true,
    };
    let is_other = match dialect {
        Dialect::Sqlite => has_test(&query.condition, &|test| test.column == Column::Labels),
        Dialect::Postgres => query.scope.parent != ParentPattern::Any,
    };
    resource == Resource::Results || is_other || all.iter().any(leads)
}

/// Whether a list by time is of one parent and of some types, which PostgreSQL's index of labels knows.
pub(crate) fn is_of_parent_and_type(resource: Resource, query: &ListQuery) -> bool {
    resource == Resource::Records
        && by_time(query).is_some()
        && matches!(query.scope.parent, ParentPattern::Exact(_))
        && query.scope.id.is_none()
        && !is_selective(&query.condition)
        && candidate::kept_types(&query.condition).is_some()
}

/// A longer prefix scan, where an index has very many rows.
pub(crate) fn long_prefix_scan(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
) -> Option<AccessPath<'static>> {
    may_scan_prefix(resource, query).then_some(AccessPath::PrefixScan(
        cost::model(dialect).long_prefix_rows,
    ))
}

/// The prefix scan that is worth trying before all rows that took so long are sorted, after `prefix` found so many of
/// those that are wanted: where that is a fifth, ten times as many rows hold a page twice over.
pub(crate) fn farther_prefix_scan(
    dialect: Dialect,
    query: &ListQuery,
    (prefix, path): (AccessPath<'_>, AccessPath<'_>),
    (found, wanted): (i64, i64),
) -> Option<AccessPath<'static>> {
    let rows = cost::model(dialect).prefix_labelled;
    let is_worth = dialect == Dialect::Postgres
        && prefix == AccessPath::PrefixScan(rows)
        && path == AccessPath::FullSort
        && asks_how_long(query)
        && found * 5 >= wanted;
    is_worth.then_some(AccessPath::PrefixScan(rows * 10))
}

/// Whether runs are asked for by how long they took, of which an index has few.
fn asks_how_long(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, false);
    all.iter().any(|one| matches!(one, IndexCandidate::Took(_)))
}

/// Whether one key of an indexed path is asked for: its rows are at hand in order, however many
/// there are.
fn asks_one_key(query: &ListQuery) -> bool {
    conjuncts(&query.condition).iter().any(|test| {
        matches!(test.column, Column::Indexed(_))
            && matches!(test.is, Is::Equal(_))
            && !test.negated
    })
}

/// Whether a label or a type is asked for, of which an index leads to few rows besides those of the
/// page: on SQLite it has them in the order of time, and on PostgreSQL it knows their type.
fn asks_rare(dialect: Dialect, query: &ListQuery) -> bool {
    let is_led = match dialect {
        // A part of labels is looked for among all labels unless few rows are looked at.
        Dialect::Sqlite => {
            let is_part = |test: &Test| test.column == Column::Labels;
            !has_test(&query.condition, &is_part) && has_order(query)
        }
        Dialect::Postgres => {
            candidate::kept_types(&query.condition).is_some() && labels::leads(query, true)
                || labels::has_pipeline(query)
                || asks_in_own_order(query)
                || asks_cluster(query)
        }
    };
    is_led && by_time(query).is_some()
}

/// Whether records of a cluster are asked for, which are counted first.
fn asks_cluster(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, false);
    all.iter().any(IndexCandidate::is_of_cluster)
}

/// Whether an index that has no other order than that of storing leads to rows: of all parents, or by
/// one outcome. PostgreSQL alone.
fn asks_in_own_order(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, false);
    let everywhere = query.scope.parent == ParentPattern::Any;
    let leads = |one: &IndexCandidate<'_>| {
        one.has_own_order() && (everywhere || one.is_of_outcome() && !one.has_values())
    };
    all.iter().any(leads)
}

/// Whether an index of SQLite has rows of what is asked for in the order of time, however many, or those that took so long.
fn has_order(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, true);
    let leads = |one: &IndexCandidate<'_>| {
        let is_led = matches!(one, IndexCandidate::Label(..) | IndexCandidate::Took(_));
        is_led || one.is_of_type() || one.has_own_order() || one.has_values()
    };
    all.iter().any(leads)
}

/// Whether a condition has a test that is so.
fn has_test(condition: &Condition, is_so: &dyn Fn(&Test) -> bool) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(|one| has_test(one, is_so)),
        Condition::Test(test) => is_so(test),
        Condition::All | Condition::Nothing => false,
    }
}

fn may_scan_prefix(resource: Resource, query: &ListQuery) -> bool {
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

/// The same list with its parent as a test of each row, if no index has the rows of one parent in
/// the order that is asked for. That of updates is seldom asked for.
pub(crate) fn with_tested_parent(query: ListQuery) -> ListQuery {
    let by_update = matches!(query.order.keys(), [key] if key.column == Column::UpdateTime);
    let ParentPattern::Exact(parent) = &query.scope.parent else {
        return query;
    };
    if !by_update || query.scope.id.is_some() {
        return query;
    }
    let is_of_parent = Condition::Test(Test {
        column: Column::Parent,
        is: Is::Equal(Value::Text(parent.as_str().to_owned())),
        negated: false,
    });
    let mut scope = query.scope.clone();
    scope.parent = ParentPattern::Any;
    ListQuery {
        scope,
        condition: Condition::And(vec![is_of_parent, query.condition]),
        ..query
    }
}

/// The index, on SQLite, that has the rows of the scope in the order of a column.
pub(super) fn walk(resource: Resource, query: &ListQuery, column: &Column) -> Option<&'static str> {
    let one_parent = matches!(query.scope.parent, ParentPattern::Exact(_));
    Some(match (resource, column, one_parent) {
        (Resource::Records, Column::CreateTime, false) => "records_by_create",
        (Resource::Records, Column::CreateTime, true) => "records_by_parent_create",
        (Resource::Records, Column::UpdateTime, false) => "records_by_update",
        (Resource::Results, Column::CreateTime, false) => "results_by_create",
        (Resource::Results, Column::CreateTime, true) => "results_by_parent_create",
        (Resource::Results, Column::UpdateTime, false) => "results_by_update",
        _ => return None,
    })
}

/// The indexes that may lead to all rows; the best is to be found out. None where the database
/// knows best.
pub(crate) fn candidates(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
) -> Vec<IndexCandidate<'_>> {
    if query.scope.id.is_some() || is_selective(&query.condition) {
        return Vec::new();
    }
    let of_types = dialect == Dialect::Sqlite && by_time(query).is_some();
    candidate::candidates(resource, query, of_types)
}

/// The path where no index has the rows in order.
pub(crate) fn without_index(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
) -> AccessPath<'static> {
    // PostgreSQL does not know bounds that it has to find out first, and would read everything.
    let in_order = dialect == Dialect::Postgres && has_times(&query.condition);
    match (may_scan_prefix(resource, query) && !in_order, dialect) {
        (true, Dialect::Sqlite) => AccessPath::IndexScan,
        (true, Dialect::Postgres) => AccessPath::FullSort,
        (false, _) => AccessPath::DatabaseChoice,
    }
}

/// Appends which parents and results. Where another column says more than the parent, or the
/// index is chosen already, `elsewhere` keeps the parent out of the choice.
pub(super) fn scope(
    out: &mut Statement,
    resource: Resource,
    scope: &ResultPattern,
    parent: &'static str,
) {
    let id = scope.id.as_deref();
    match (resource, &scope.parent, id) {
        (Resource::Records, ParentPattern::Exact(parent), Some(id)) => {
            out.push(" AND result_row = (SELECT row_id FROM results WHERE id = ")
                .bind_id(id);
            out.push(" AND parent = ").bind(parent.as_str()).push(")");
            return;
        }
        (Resource::Records, ParentPattern::Any, Some(id)) => {
            out.push(" AND result_row IN (SELECT row_id FROM results WHERE id = ")
                .bind_id(id);
            out.push(")");
            return;
        }
        (_, ParentPattern::Exact(wanted), _) => {
            out.push(" AND ").push(parent).push(" = ");
            out.bind(wanted.as_str());
        }
        (_, ParentPattern::Any, _) => {}
    }
    if let Some(id) = id {
        out.push(" AND id = ").bind_id(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::fixtures::{everything, test};
    use crate::sql::list::{self, Part};
    use hindsight_filter::{Order, condition::ObjectField};

    fn long(query: &ListQuery) -> bool {
        may_take_long(Resource::Records, query)
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

    #[test]
    fn more_rows_are_looked_at_where_the_next_ones_held_some_of_the_page() {
        let longer = |column| test(column, Is::Greater(Value::Int(9)));
        let asked = |condition| ListQuery {
            condition,
            ..everything()
        };
        let took = asked(longer(Column::Duration));
        let farther = |dialect, query: &ListQuery, path, found| {
            let prefix = AccessPath::PrefixScan(cost::model(dialect).prefix_labelled);
            farther_prefix_scan(dialect, query, (prefix, path), (found, 50))
        };
        let (postgres, sort) = (Dialect::Postgres, AccessPath::FullSort);
        let far = Some(AccessPath::PrefixScan(10_000));
        assert_eq!(farther(postgres, &took, sort, 10), far);
        assert_eq!(farther(postgres, &took, sort, 9), None);
        assert_eq!(
            farther(postgres, &took, AccessPath::LabelIndex(None), 50),
            None
        );
        assert_eq!(farther(Dialect::Sqlite, &took, sort, 50), None);
        let late = asked(longer(Column::Ended));
        assert_eq!(farther(postgres, &late, sort, 50), None);
    }

    #[test]
    fn no_other_index_leads_to_what_was_stored_late() {
        let query = ListQuery {
            scope: "a/results/-".parse().unwrap(),
            condition: test(Column::Labels, Is::Contains("main".to_owned())),
            ..everything()
        };
        let text = |dialect| {
            let resource = Resource::Records;
            let late = list::list(dialect, resource, &query, Part::With, AccessPath::Late, 9);
            late.unwrap().text().to_owned()
        };
        let sqlite = text(Dialect::Sqlite);
        for says in ["INDEXED BY records_late", "+parent = ", "json_each(labels)"] {
            assert!(sqlite.contains(says), "no `{says}` in {sqlite}");
        }
        let postgres = text(Dialect::Postgres);
        assert!(postgres.contains(" AND parent || '' = "), "{postgres}");
    }

    #[test]
    fn what_is_sorted_is_read_afterwards_and_labels_are_asked_for_once() {
        let has_label = Is::Equal(Value::Text("main".to_owned()));
        let query = ListQuery {
            scope: "a/results/-".parse().unwrap(),
            condition: test(Column::Label("branch".to_owned()), has_label),
            ..everything()
        };
        let paths = [
            IndexCandidate::Parent("a"),
            IndexCandidate::Label("branch", "main"),
        ];
        for path in paths.map(AccessPath::Index) {
            let text = |order| {
                let query = ListQuery {
                    order,
                    ..query.clone()
                };
                let resource = Resource::Records;
                let list = list::list(Dialect::Sqlite, resource, &query, Part::With, path, 9);
                list.unwrap().text().to_owned()
            };
            let by_end = text(Order::by(Column::Ended, true));
            let (read, sorted) = by_end.split_once("(SELECT row_id AS sorted_row").unwrap();
            assert!(
                read.contains("etag") && !sorted.contains("etag"),
                "{by_end}"
            );
            let by_time = text(Order::newest_first());
            assert!(!by_time.contains("sorted_row"), "{by_time}");
            for statement in [by_end, by_time] {
                assert_eq!(statement.matches("record_labels").count(), 1, "{statement}");
            }
        }
    }

    #[test]
    fn what_an_index_has_in_another_order_is_sorted_before_it_is_read() {
        let begins = Is::StartsWith("a".to_owned());
        let longer = Is::Greater(Value::Int(9));
        let names = test(Column::Object(ObjectField::Name), begins);
        let took = test(Column::Duration, longer);
        for condition in [names, took] {
            let query = ListQuery {
                condition,
                ..everything()
            };
            let one = candidate::candidates(Resource::Records, &query, true)[0];
            let path = AccessPath::Index(one);
            let list = list::list(
                Dialect::Sqlite,
                Resource::Records,
                &query,
                Part::With,
                path,
                9,
            );
            let list = list.unwrap();
            assert!(list.text().contains("sorted_row"), "{}", list.text());
        }
    }
}
