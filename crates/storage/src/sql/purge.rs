//! Statements about what is removed for good.

use super::{condition::in_result, statement::Statement};
use crate::seam::Purge;
use hindsight_filter::model::Parent;

fn results(out: &mut Statement, what: &Purge) {
    match what {
        Purge::Parent(parent) => {
            out.push("parent = ").bind(parent.as_str());
        }
        Purge::Result(name) => {
            out.push("id = ").bind_id(name.id());
            out.push(" AND parent = ").bind(name.parent().as_str());
        }
        Purge::Record(_) => {
            out.push("1 = 0");
        }
    }
}

fn records(out: &mut Statement, what: &Purge) {
    match what {
        Purge::Parent(_) => results(out, what),
        Purge::Result(_) => {
            out.push("result_row IN (SELECT row_id FROM results WHERE ");
            results(out, what);
            out.push(")");
        }
        Purge::Record(name) => {
            out.push("id = ").bind_id(name.id()).push(" AND ");
            in_result(out, name);
        }
    }
}

fn objects(out: &mut Statement, what: &Purge) {
    out.push("(log_line IS NULL AND holder IN (SELECT row_id FROM records WHERE ");
    records(out, what);
    out.push(") OR log_line IS NOT NULL AND holder IN (SELECT row_id FROM log_sources WHERE ");
    sources(out, what);
    out.push("))");
}

fn sources(out: &mut Statement, what: &Purge) {
    match what {
        Purge::Record(name) => {
            out.push("log = ").bind_id(name.id()).push(" AND ");
            in_result(out, name);
        }
        _ => {
            out.push("result_row IN (SELECT row_id FROM results WHERE ");
            results(out, what);
            out.push(")");
        }
    }
}

/// How many results, records, objects and bytes there are.
pub(crate) fn count(what: &Purge) -> Statement {
    let mut out = Statement::new("SELECT (SELECT count(*) FROM results WHERE ");
    results(&mut out, what);
    out.push("), (SELECT count(*) FROM records WHERE ");
    records(&mut out, what);
    out.push("), (SELECT count(*) FROM objects WHERE ");
    objects(&mut out, what);
    out.push("), CAST((SELECT coalesce(sum(body_size), 0) FROM records WHERE ");
    records(&mut out, what);
    out.push(") + (SELECT coalesce(sum(stored_bytes), 0) FROM log_sources WHERE ");
    sources(&mut out, what);
    out.push(") AS BIGINT)");
    out
}

/// The names of the next results of a parent, in two parts.
pub(crate) fn next_results(parent: &Parent, limit: i64) -> Statement {
    let mut out = Statement::new("SELECT parent, id FROM results WHERE parent = ");
    out.bind(parent.as_str());
    out.push(" ORDER BY create_us LIMIT ").bind(limit);
    out
}

/// The objects that hold bodies and chunks of logs.
pub(crate) fn objects_of(what: &Purge) -> Statement {
    let mut out = Statement::new("SELECT object FROM objects WHERE ");
    objects(&mut out, what);
    out
}
