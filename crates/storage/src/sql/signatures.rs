//! Statements that find and rewrite signatures which the current rules did not make, or not with the end of a log.

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

/// The statement that finds sealed logs which may tell why their runs failed, at most `limit`: the row of each with
/// the mark that says so, and the row of its run with the size of the payload, if it failed.
pub(crate) fn unsigned_logs(limit: i64) -> Statement {
    let mut out = Statement::new(
        "SELECT logs.row_id, logs.sign_asked, records.row_id, coalesce(records.body_size, 0) \
         FROM (SELECT row_id, sign_asked, result_row, log FROM log_sources \
         WHERE sha256 IS NOT NULL AND signed < sign_asked ORDER BY row_id LIMIT ",
    );
    out.bind(limit).push(
        ") AS logs LEFT JOIN records ON records.result_row = logs.result_row \
         AND records.id = logs.log AND records.run_outcome > 1 ORDER BY logs.row_id",
    );
    out
}

/// The statement that notes that a log was looked at when it had this mark.
pub(crate) fn signed_log(row: i64, mark: i64) -> Statement {
    let mut out = Statement::new("UPDATE log_sources SET signed = ");
    out.bind(mark).push(" WHERE row_id = ").bind(row);
    out.push(" AND signed < ").bind(mark);
    out
}

/// The statement that writes what the payload in a row says of its end, if it is still the payload
/// that was read, of this SHA-256, and no newer rules have said it meanwhile.
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
    // The texts of keys of newer rules are not before the next digit.
    let newer = u32::from(RULES) + 1;
    let newer = char::from_u32(newer).map(String::from).unwrap_or_default();
    out.push(" AND (").push(IS_MISSING);
    out.push(" OR run_signature < ").bind(&*newer).push(")");
    out
}
