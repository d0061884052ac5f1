//! Lists of records with labels on PostgreSQL, whose index of labels also knows whose a record is
//! and in which week and on which day it was stored.

use super::{
    dialect::Dialect,
    lead::{self, Lead, leads},
    statement::{Bind, Statement},
    stretch::Stretch,
};
use crate::seam::ListQuery;
use hindsight_filter::model::{ParentPattern, Resource};

/// Rows with a label that are more to look up than it takes to read the names of all.
const MANY: i64 = 20_000;

/// Weeks and days as the index has them, all in one list: no week has the number of a day before
/// the year 2180, and if one has, more rows are looked at.
const STORED: &str = " AND ARRAY[create_us / 604800000000, create_us / 86400000000] && ";

/// When a record was stored, as no other index has it.
pub(super) const STORED_AT: &str = "create_us + 0";

/// Whether a label is asked for that leads to rows.
pub(crate) fn has_label(query: &ListQuery) -> bool {
    let leads = leads(Resource::Records, query);
    leads.iter().any(|lead| matches!(lead, Lead::Label(..)))
}

/// Appends that records are of the list's parent, as the index is asked.
pub(super) fn of_parent(out: &mut Statement, query: &ListQuery) {
    if let ParentPattern::Exact(parent) = &query.scope.parent {
        out.push(" AND ARRAY[parent] @> ARRAY[")
            .bind(parent.as_str())
            .push("]");
    }
}

/// Appends that records were stored in a stretch of time, as the index is asked.
pub(super) fn stored_in(out: &mut Statement, stretch: Stretch) {
    out.push(" AND ").push(STORED_AT);
    out.push(" BETWEEN ").bind(stretch.first);
    out.push(" AND ").bind(stretch.last);
    if let Some(keys) = stretch.keys() {
        out.push(STORED).bind(Bind::Ints(keys));
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
        lead::ends(&mut out, &query.condition, is_last);
        out.push(")");
    }
    out.planned_anew()
}

/// The statement that counts rows with the labels of a list that also searches names everywhere,
/// up to [`MANY`].
pub(crate) fn count_searched(query: &ListQuery) -> Option<Statement> {
    if query.scope.parent != ParentPattern::Any || !lead::is_search(query) {
        return None;
    }
    let mut out = Statement::new("SELECT count(*) FROM (SELECT 1 FROM records WHERE 1 = 1");
    for lead in leads(Resource::Records, query) {
        if let Lead::Label(key, value) = lead {
            out.push(" AND ");
            Dialect::Postgres.labelled(&mut out, key, value);
        }
    }
    out.push(" LIMIT ").bind(MANY).push(") AS labelled");
    Some(out.planned_anew())
}

/// Whether so many rows are more to look up than all names are to read.
pub(crate) fn is_many(counted: i64) -> bool {
    counted >= MANY
}
