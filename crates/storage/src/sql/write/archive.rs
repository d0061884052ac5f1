//! Records that leave for a file of an archive, and come back.

use jiff::Timestamp;

use super::{Set, holds, is_result, names, with_etag};
use crate::seam::WholeVersion;
use crate::sql::{dialect::Dialect, statement::Statement};
use hindsight_filter::model::{Resource, ResultName};

/// Notes the file in the result, and removes the records.
pub(super) fn archive_result(
    dialect: Dialect,
    name: &ResultName,
    version: &WholeVersion,
    (now, file): (Timestamp, i64),
) -> Statement {
    let mut out = Statement::new(match dialect {
        Dialect::Postgres => "WITH moved AS (UPDATE results SET archive_file = ",
        Dialect::Sqlite => "UPDATE results SET archive_file = ",
    });
    out.bind(file).push(" WHERE ");
    is_result(&mut out, name);
    with_etag(&mut out, dialect, Resource::Results, Some(&version.etag));
    holds::allow(&mut out, version, now);
    out.push(" AND ");
    takes_results(&mut out, dialect, file);
    match dialect {
        Dialect::Postgres => out.push(
            " RETURNING row_id), gone AS (DELETE FROM records USING moved \
             WHERE result_row = moved.row_id) SELECT row_id FROM moved",
        ),
        Dialect::Sqlite => {
            out.push("; DELETE FROM records WHERE changes() = 1 AND ");
            out.push("result_row = (SELECT row_id FROM results WHERE ");
            is_result(&mut out, name);
            out.push(")")
        }
    };
    out
}

/// Takes the file from a result, whose records follow.
pub(super) fn return_result(name: &ResultName, file: i64) -> Statement {
    let mut out = Statement::new("UPDATE results SET archive_file = NULL WHERE ");
    is_result(&mut out, name);
    out.push(" AND archive_file = ").bind(file);
    out
}

/// Begins the insert of a record, up to its values; one that comes back has the number of its row again.
pub(super) fn begin_insert(
    out: &mut Statement,
    dialect: Dialect,
    number: Option<i64>,
    sets: &[Set],
) {
    out.push("INSERT INTO records (");
    out.push(if number.is_some() { "row_id, " } else { "" });
    out.push("result_row, ");
    names(out, sets);
    match (number, dialect) {
        (None, _) => out.push(") SELECT row_id, "),
        (Some(number), Dialect::Postgres) => {
            out.push(") OVERRIDING SYSTEM VALUE SELECT ").bind(number);
            out.push("::bigint, row_id, ")
        }
        // Numbers of the newest rows are given again once those are gone.
        (Some(number), Dialect::Sqlite) => {
            out.push(") SELECT CASE WHEN EXISTS (SELECT 1 FROM records WHERE row_id = ");
            out.bind(number).push(") THEN NULL ELSE ").bind(number);
            out.push(" END, row_id, ")
        }
    };
}

/// That a file is not condemned, and is not until the end of the transaction.
pub(crate) fn takes_results(out: &mut Statement, dialect: Dialect, file: i64) {
    out.push("EXISTS (SELECT 1 FROM archive_files WHERE condemned_us IS NULL AND row_id = ");
    out.bind(file).push(match dialect {
        Dialect::Postgres => " FOR SHARE)",
        Dialect::Sqlite => ")",
    });
}
