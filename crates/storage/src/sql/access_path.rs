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
        None if resource == Resource::Records && by_time(query).is_none() => model.prefix_updated,
        None => model.prefix_rows(resource, has_label(query) || asks_how_long(query)),
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

/// The prefix scan that is worth trying before all rows that took so long, or have such a part in their names, are
/// sorted, after `prefix` found so many of those that are wanted: where that is a fifth, as many rows as hold the page
/// twice over.
pub(crate) fn farther_prefix_scan(
    dialect: Dialect,
    query: &ListQuery,
    (prefix, path): (AccessPath<'_>, AccessPath<'_>),
    (found, wanted): (i64, i64),
) -> Option<AccessPath<'static>> {
    let AccessPath::PrefixScan(rows) = prefix else {
        return None;
    };
    let is_sorted = match path {
        AccessPath::FullSort => asks_how_long(query),
        AccessPath::Index(one) => matches!(one, IndexCandidate::NameParts(_)),
        _ => false,
    };
    let is_worth = dialect == Dialect::Postgres && is_sorted && found * 5 >= wanted;
    is_worth.then(|| AccessPath::PrefixScan(rounded(rows * 2 * wanted / found)))
}

/// What to look at after the next rows of an index held `found` of those that are wanted: as many as should hold
/// the rest, at most `path` says. None where these would be too few and PostgreSQL `combines` indexes instead.
pub(crate) fn next_after<'q>(
    path: AccessPath<'q>,
    (found, wanted): (i64, i64),
    combines: bool,
) -> Option<AccessPath<'q>> {
    let AccessPath::NextOf(candidate, most) = path else {
        return Some(path);
    };
    let hold = match found {
        0 => i64::MAX,
        _ => cost::NEXT_OF[0] * 2 * wanted / found,
    };
    match hold > most && combines {
        true => None,
        false => Some(AccessPath::NextOf(
            candidate,
            rounded(hold.min(most)).min(most),
        )),
    }
}

/// A path to all rows of a scope in the order of an index: on PostgreSQL as many next rows as the page has, which is planned
/// once, where the limit of a page would be planned for at each call.
pub(super) fn all_in_order<'q>(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    path: AccessPath<'q>,
    limit: i64,
) -> AccessPath<'q> {
    let is_all = query.condition == Condition::All && query.scope.id.is_none();
    let is_walked =
        || matches!(query.order.keys(), [key] if walk(resource, query, &key.column).is_some());
    match (dialect, path) {
        (Dialect::Postgres, AccessPath::DatabaseChoice) if is_all && is_walked() => {
            AccessPath::PrefixScan(rounded(limit))
        }
        _ => path,
    }
}

/// The next power of two, so that there are few numbers of rows, for each of which a statement is planned once.
fn rounded(rows: i64) -> i64 {
    rows.unsigned_abs().next_power_of_two().cast_signed()
}

/// Whether runs or objects are asked for by how long they took, of which an index has few.
fn asks_how_long(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, false);
    all.iter().any(IndexCandidate::is_of_duration)
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
                || asks_type_alone(query)
                || candidate::asks_long(query)
        }
    };
    is_led && by_time(query).is_some()
}

/// Whether nothing but the type is asked for, of which PostgreSQL knows how many rows have it.
fn asks_type_alone(query: &ListQuery) -> bool {
    let all = candidate::candidates(Resource::Records, query, false);
    conjuncts(&query.condition).len() == 1 && all.iter().any(IndexCandidate::is_of_type)
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
        let is_led = matches!(one, IndexCandidate::Label(..)) || one.is_of_duration();
        is_led || one.is_of_type() || one.has_own_order() || one.has_values()
    };
    all.iter().any(leads)
}

/// Whether a condition has a test that is so.
pub(super) fn has_test(condition: &Condition, is_so: &dyn Fn(&Test) -> bool) -> bool {
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
mod tests;
