//! Statements that find and rewrite signatures which the current rules did not make.

use bytes::Bytes;

use super::statement::Statement;
use hindsight_filter::columns::{ObjectColumns, RULES};

/// As the predicate of the index `records_unsigned` says it.
const IS_MISSING: &str = "run_outcome > 1 AND run_signature IS NULL";

/// The rows of failed runs whose signature is of older rules, and of those that have none, at most
/// `limit` of each, with the sizes of their payloads. Newer rules are those of another server, which
/// would write them again.
pub(crate) fn outdated(limit: i64) -> [Statement; 2] {
    let mut older = Statement::new(ROWS);
    is_older(&mut older);
    older.push(" LIMIT ").bind(limit);
    let mut missing = Statement::new(ROWS);
    missing.push(IS_MISSING).push(" LIMIT ").bind(limit);
    [older, missing]
}

const ROWS: &str = "SELECT row_id, coalesce(body_size, 0) FROM records WHERE ";

fn is_older(out: &mut Statement) {
    out.push("run_signature < ").bind(&*RULES.to_string());
}

/// The statement that writes what the payload in a row says of its end, if it is still the payload
/// that was read, of this SHA-256, and no writer has said it meanwhile.
pub(crate) fn rewrite(
    (row, sha256): (i64, Option<Bytes>),
    said: &ObjectColumns,
    signature: &str,
) -> Statement {
    let mut out = Statement::new("UPDATE records SET run_signature = ");
    out.bind(signature).push(", run_message = ");
    out.bind(said.message.as_deref()).push(", run_attempt = ");
    out.bind(said.attempt).push(" WHERE row_id = ").bind(row);
    match sha256 {
        Some(_) => out.push(" AND body_sha256 = ").bind(sha256),
        None => out.push(" AND body_sha256 IS NULL"),
    };
    out.push(" AND (").push(IS_MISSING).push(" OR ");
    is_older(&mut out);
    out.push(")");
    out
}
