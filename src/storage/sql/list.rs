//! Lists: pages by key, never by offset.
//!
//! Rows without the order's key come last in both directions. That is two lists, one after the
//! other, because neither database reads such an order from an index in both directions.

use super::{
    columns::{Key, key},
    condition::{Writer, is_selective},
    dialect::Dialect,
    statement::Statement,
};
use crate::{
    filter::condition::Condition,
    model::{ParentPattern, Position, Resource, ResultPattern},
    storage::{Error, ListQuery},
};

/// Which rows of a list a statement gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Part {
    /// Rows that have the key.
    With,
    /// Rows that do not; they come last.
    Without,
}

/// The parts that a page may come from, in order. A page of more than one must be read in one
/// transaction: a row that gets its key in between would be in neither.
pub(in crate::storage) fn parts(resource: Resource, query: &ListQuery) -> Vec<Part> {
    match (key(resource, query.order.field), query.after) {
        (Key::Always(_), _) => vec![Part::With],
        (Key::Never, _) | (_, Some(Position { key: None, .. })) => vec![Part::Without],
        (Key::Sometimes(_), _) => vec![Part::With, Part::Without],
    }
}

/// Values that one statement may bind; SQLite takes 32,766 and PostgreSQL twice as many.
const MOST_BINDS: usize = 32_000;

/// The statement for at most `limit` rows of one part.
///
/// # Errors
/// If the condition has more values than a statement can.
pub(in crate::storage) fn list(
    dialect: Dialect,
    resource: Resource,
    query: &ListQuery,
    part: Part,
    limit: i64,
) -> Result<Statement, Error> {
    let with_bodies = resource == Resource::Records && query.bodies;
    // Bodies are joined to the page, not to all rows that are sorted to find it.
    let mut out = Statement::new("SELECT ");
    if with_bodies {
        out.push("page.*, ").push(super::read::BODY);
        out.push(" FROM (SELECT found.*, ");
        before(&mut out, query, part);
        out.push(" AS bytes_before FROM (SELECT ");
    }
    let key = key(resource, query.order.field);
    super::read::fields(&mut out, dialect, resource);
    out.push(", ")
        .push(key.column().unwrap_or("CAST(NULL AS BIGINT)"))
        .push(" AS order_key");
    out.push(match resource {
        Resource::Results => " FROM results",
        Resource::Records => " FROM records",
    });
    out.push(" WHERE 1 = 1");
    let selective = is_selective(&query.condition);
    scope(&mut out, dialect, resource, &query.scope, selective);
    if query.condition != Condition::All {
        out.push(" AND ");
        Writer {
            dialect,
            resource,
            out: &mut out,
        }
        .condition(&query.condition);
    }
    seek(&mut out, query, part, key);
    order(&mut out, query, part, key.column());
    out.push(" LIMIT ").bind(limit);
    if with_bodies {
        out.push(") AS found) AS page LEFT JOIN bodies ON record_row = row_id");
        if let Some(most) = query.max_bytes {
            out.push(" WHERE bytes_before < ")
                .bind(i64::try_from(most.max(1)).unwrap_or(i64::MAX));
        }
        order(&mut out, query, part, Some("order_key"));
    }
    let values = out.binds().len();
    if values > MOST_BINDS {
        let why = format!("the condition has {values} values, at most {MOST_BINDS} are possible");
        return Err(Error::Database {
            what: "listing",
            source: why.into(),
        });
    }
    Ok(out)
}

/// Appends how many bytes the bodies before a row have, if anybody asks.
fn before(out: &mut Statement, query: &ListQuery, part: Part) {
    if query.max_bytes.is_none() {
        out.push("NULL");
        return;
    }
    out.push("sum(coalesce(body_size, 0)) OVER (");
    order(out, query, part, Some("order_key"));
    out.push(" ROWS UNBOUNDED PRECEDING) - coalesce(body_size, 0)");
}

/// Appends in which order the rows come.
fn order(out: &mut Statement, query: &ListQuery, part: Part, key: Option<&'static str>) {
    let direction = if query.order.descending {
        " DESC"
    } else {
        " ASC"
    };
    out.push(" ORDER BY ");
    if let (Part::With, Some(key)) = (part, key) {
        out.push(key).push(direction).push(", ");
    }
    out.push("row_id").push(direction);
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

/// Appends where the page begins.
fn seek(out: &mut Statement, query: &ListQuery, part: Part, key: Key) {
    let beyond = if query.order.descending { " < " } else { " > " };
    match (part, key, query.after) {
        (
            Part::With,
            Key::Always(column) | Key::Sometimes(column),
            Some(Position { key: Some(at), id }),
        ) => {
            out.push(" AND (")
                .push(column)
                .push(", row_id)")
                .push(beyond);
            out.push("(").bind(at).push(", ").bind(id).push(")");
        }
        (Part::With, Key::Sometimes(column), _) => {
            out.push(" AND ").push(column).push(" IS NOT NULL");
        }
        (Part::With, ..) => {}
        (Part::Without, key, after) => {
            if let Some(column) = key.column() {
                out.push(" AND ").push(column).push(" IS NULL");
            }
            if let Some(Position { key: None, id }) = after {
                out.push(" AND row_id").push(beyond).bind(id);
            }
        }
    }
}
