//! Lists of records with labels on PostgreSQL, whose index of labels also knows whose a record is,
//! its type, and in which week and on which day it was stored.

use super::{
    candidate::{self, IndexCandidate, candidates},
    condition::Writer,
    cost,
    dialect::Dialect,
    statement::{Bind, Statement},
    stored_time,
    time_window::{TimeWindow, Unit},
};
use crate::seam::ListQuery;
use hindsight_filter::condition::{Column, Is, Test, Value};
use hindsight_filter::model::{ParentPattern, Resource};

/// Weeks and days as the index has them, all in one list: no week has the number of a day before
/// the year 2180, and if one has, more rows are looked at.
const STORED: &str = " AND ARRAY[create_us / 604800000000, create_us / 86400000000] && ";

/// What did not go well: R, Q and W are the numbers of Completed, Succeeded and True.
const UNWELL: &str = " AND (left(object_condition_status, 128) <> E'\\x01W' \
                      OR (left(coalesce(object_reason, object_phase), 128) <> E'\\x01Q' \
                      AND left(coalesce(object_reason, object_phase), 128) <> E'\\x01R'))";

/// When a record was stored, as no other index has it.
pub(super) const STORED_AT: &str = "create_us + 0";

/// Whether a label is asked for that leads to rows.
pub(crate) fn has_label(query: &ListQuery) -> bool {
    let all = candidates(Resource::Records, query, false);
    all.iter()
        .any(|candidate| matches!(candidate, IndexCandidate::Label(..)))
}

/// Whether the index of labels leads to the rows: by a label or one of several, by pipelines beside
/// the index of references to them, or, in the order of time, by its part of what did not go well
/// together with the type.
pub(crate) fn leads(query: &ListQuery, by_time: bool) -> bool {
    has_label(query)
        || has_one_of(query)
        || has_pipeline(query)
        || by_time && is_unwell_of_type(query)
}

/// Whether runs of a pipeline are asked for, or of one of several.
pub(crate) fn has_pipeline(query: &ListQuery) -> bool {
    let all = candidates(Resource::Records, query, false);
    all.iter()
        .any(|one| matches!(one, IndexCandidate::Pipeline(_)))
}

/// Whether one of several labels of a key is asked for, not too many.
fn has_one_of(query: &ListQuery) -> bool {
    let all = candidates(Resource::Records, query, false);
    all.iter().any(|one| match one {
        IndexCandidate::Labels(test) => one_of(test).is_some(),
        _ => false,
    })
}

/// The values of a label of which a test asks for one, if they are not too many.
pub(super) fn one_of(test: &Test) -> Option<(&str, &[Value])> {
    match (&test.column, &test.is, test.negated) {
        (Column::Label(key), Is::OneOf(values), false)
            if (1..=cost::MOST_VALUES).contains(&values.len()) =>
        {
            Some((key, values))
        }
        _ => None,
    }
}

/// Whether records of a type that did not go well are asked for, which no other index has.
pub(crate) fn is_unwell_of_type(query: &ListQuery) -> bool {
    is_unwell(query) && candidate::kept_types(&query.condition).is_some()
}

/// Whether records are asked for that did not go well.
fn is_unwell(query: &ListQuery) -> bool {
    let all = candidates(Resource::Records, query, false);
    all.iter().any(|one| {
        matches!(
            one,
            IndexCandidate::Column("records_by_reason" | "records_by_status", _)
        )
    })
}

/// Appends that records did not go well, as their index says it, if that is asked for: a plan that is
/// made for any value uses the index then as well.
pub(super) fn unwell(out: &mut Statement, query: &ListQuery) {
    if is_unwell(query) {
        out.push(UNWELL);
    }
}

/// Appends that records are of the list's parent, as the index is asked.
pub(super) fn of_parent(out: &mut Statement, query: &ListQuery) {
    if let ParentPattern::Exact(parent) = &query.scope.parent {
        out.push(" AND ARRAY[parent] @> ARRAY[")
            .bind(parent.as_str())
            .push("]");
    }
}

/// Appends that records are of the types that are asked for, as the index is asked.
pub(super) fn of_types(out: &mut Statement, query: &ListQuery) {
    if let Some(types) = candidate::kept_types(&query.condition) {
        out.push(" AND ARRAY[data_type] && ")
            .bind(Bind::Texts(types));
    }
}

/// Appends that records were stored in a stretch of time, as the index is asked.
pub(super) fn stored_in(out: &mut Statement, window: TimeWindow) {
    out.push(" AND ").push(STORED_AT);
    out.push(" BETWEEN ").bind(window.first);
    out.push(" AND ").bind(window.last);
    if let Some(keys) = window.keys() {
        out.push(STORED).bind(Bind::Ints(keys));
    }
}

/// Days and weeks with records that are asked for one by one before all others are asked for at once. One takes up to 0.7 ms,
/// and all others as long, unless very many records have the label: so one in the middle and the last are asked for before.
const ONE_BY_ONE: usize = 8;

/// The statement that gives when the first of these days and weeks began in which records were stored that
/// labels say may be in a list; it gives no row if there is none.
pub(crate) fn first_stored(query: &ListQuery, units: &[Unit]) -> Statement {
    let mut out = Statement::new("SELECT since FROM (SELECT number, since, until, ");
    out.push("row_number() OVER () AS place FROM unnest(");
    let bind = |field: fn(&Unit) -> i64| Bind::Ints(units.iter().map(field).collect());
    out.bind(bind(|unit| unit.number)).push("::bigint[], ");
    out.bind(bind(|unit| unit.first)).push("::bigint[], ");
    out.bind(bind(|unit| unit.last)).push("::bigint[]");
    // Not EXISTS, of which PostgreSQL would make joins, in another order. What was stored at all is asked of a tree
    // in a tenth of the time, and nothing was in many of them.
    out.push(") AS unit (number, since, until) WHERE ");
    out.push("(SELECT 1 FROM records WHERE create_us BETWEEN since AND until");
    if let ParentPattern::Exact(parent) = &query.scope.parent {
        out.push(" AND parent = ").bind(parent.as_str());
    }
    out.push(" LIMIT 1) = 1) AS unit WHERE ");
    let others = units.get(ONE_BY_ONE..).unwrap_or_default();
    if let [.., last] = others {
        // What depends on no unit is asked once, and only if the first ones have none.
        out.push("CASE WHEN place > ")
            .bind(i64::try_from(ONE_BY_ONE).unwrap_or(i64::MAX));
        let middle = &others[others.len() / 2..=others.len() / 2];
        for some in [middle, std::slice::from_ref(last), others] {
            out.push(" AND (SELECT 1 FROM records WHERE ")
                .push(STORED_AT);
            let first = some.iter().map(|unit| unit.first).min();
            out.push(" BETWEEN ").bind(first.unwrap_or(i64::MIN));
            let last = some.iter().map(|unit| unit.last).max();
            out.push(" AND ").bind(last.unwrap_or(i64::MAX));
            let numbers = some.iter().map(|unit| unit.number).collect();
            out.push(STORED).bind(Bind::Ints(numbers));
            asked(&mut out, query);
            out.push(" LIMIT 1) IS NULL");
        }
        out.push(" THEN FALSE ELSE ");
    }
    out.push("(SELECT 1 FROM records WHERE ").push(STORED_AT);
    out.push(" BETWEEN since AND until");
    out.push(STORED).push("ARRAY[number]");
    asked(&mut out, query);
    out.push(" LIMIT 1) = 1");
    out.push(if others.is_empty() { "" } else { " END" });
    out.push(" LIMIT 1");
    out
}

/// Appends what the index of labels knows of the rows of a list.
fn asked(out: &mut Statement, query: &ListQuery) {
    of_parent(out, query);
    of_types(out, query);
    unwell(out, query);
    for test in candidate::conjuncts(&query.condition) {
        let is_label = matches!(test.column, Column::Label(_) | Column::Pipeline);
        let is_asked = matches!(test.is, Is::Equal(_) | Is::OneOf(_));
        if is_label && is_asked && !test.negated {
            out.push(" AND ");
            Writer::new(Dialect::Postgres, Resource::Records, out).test(test);
        }
    }
}

/// The statement that gives the first and the last time at which records of a list can have been
/// stored; there are none if either is null.
pub(crate) fn span(query: &ListQuery) -> Statement {
    let mut out = Statement::new("SELECT ");
    for (open, is_last) in [
        ("greatest((SELECT min(create_us) FROM records", false),
        (", least((SELECT max(create_us) FROM records", true),
    ] {
        out.push(open);
        if let ParentPattern::Exact(parent) = &query.scope.parent {
            out.push(" WHERE parent = ").bind(parent.as_str());
        }
        out.push(")");
        stored_time::ends(&mut out, &query.condition, is_last);
        out.push(")");
    }
    out
}

/// The statement that counts rows with the labels of a list that also searches names everywhere,
/// as far as that matters.
pub(crate) fn count_searched(query: &ListQuery) -> Option<Statement> {
    let is_searched = candidate::of_names(query).is_some() && has_label(query);
    if query.scope.parent != ParentPattern::Any || !is_searched {
        return None;
    }
    let mut out = Statement::new("SELECT count(*) FROM (SELECT 1 FROM records WHERE 1 = 1");
    for candidate in candidates(Resource::Records, query, false) {
        if let IndexCandidate::Label(key, value) = candidate {
            out.push(" AND ");
            Dialect::Postgres.labelled(&mut out, key, value);
        }
    }
    out.push(" LIMIT ")
        .bind(cost::model(Dialect::Postgres).looked_up)
        .push(") AS labelled");
    Some(out.planned_anew())
}

/// Whether so many rows are more to look up than all names are to read.
pub(crate) fn is_many(counted: i64) -> bool {
    counted >= cost::model(Dialect::Postgres).looked_up
}
