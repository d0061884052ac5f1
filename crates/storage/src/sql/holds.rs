//! Holds: results that retention leaves alone.

use jiff::Timestamp;

use super::{read, row::SqlRow, statement::Statement};
use crate::seam::{Error, Hold, WholeVersion};
use hindsight_filter::model::ParentPattern;

/// The statement that gives holds after a row, with the parents and ids of their results.
pub(crate) fn list(parent: &ParentPattern, after: i64, limit: i64) -> Statement {
    let mut out = Statement::new(
        "SELECT result_row, parent, id, reason, caller, holds.create_us, expire_us FROM holds \
         JOIN results ON row_id = result_row WHERE result_row > ",
    );
    out.bind(after);
    if let ParentPattern::Exact(parent) = parent {
        out.push(" AND parent = ").bind(parent.as_str());
    }
    out.push(" ORDER BY result_row LIMIT ").bind(limit);
    out
}

/// The hold in a row of [`list`], after the number of its row.
pub(crate) fn hold(row: &impl SqlRow) -> Result<(i64, Hold), Error> {
    let corrupt = |what: String| Error::Corrupt(format!("a hold: {what}"));
    let text = |at| Ok::<_, Error>(read::text(row, at)?.unwrap_or_default());
    let name = format!("{}/results/{}", text(1)?, text(2)?);
    let time = |us| Timestamp::from_microsecond(us).map_err(|error| corrupt(error.to_string()));
    let hold = Hold {
        result: name
            .parse()
            .map_err(|error| corrupt(format!("`{name}`: {error}")))?,
        reason: text(3)?,
        caller: text(4)?,
        create_time: time(row.int(5)?.unwrap_or_default())?,
        expire_time: row.int(6)?.map(time).transpose()?,
    };
    Ok((row.int(0)?.unwrap_or_default(), hold))
}

/// The begin of the statement that inserts a hold, up to which result it is of.
pub(super) fn insert(hold: &Hold) -> Statement {
    let mut out = Statement::new(
        "INSERT INTO holds (result_row, reason, caller, create_us, expire_us) SELECT row_id, ",
    );
    out.bind(hold.reason.as_str()).push(", ");
    out.bind(hold.caller.as_str()).push(", ");
    out.bind(hold.create_time).push(", ");
    out.bind(hold.expire_time).push(" FROM results WHERE ");
    out
}

/// Its end: one that has expired gives way.
pub(super) fn unless_held(out: &mut Statement, hold: &Hold) {
    out.push(
        " ON CONFLICT (result_row) DO UPDATE SET reason = excluded.reason, caller = excluded.caller, \
         create_us = excluded.create_us, expire_us = excluded.expire_us WHERE holds.expire_us <= ",
    );
    out.bind(hold.create_time);
}

/// Appends that the records of a result are those of `version`, and that no hold of it is in force.
pub(super) fn allow(out: &mut Statement, version: &WholeVersion, now: Timestamp) {
    match version.file {
        Some(file) => out.push(" AND archive_file = ").bind(file),
        None => out.push(" AND archive_file IS NULL"),
    };
    let records = i64::try_from(version.records).unwrap_or(i64::MAX);
    out.push(" AND (SELECT count(*) FROM records WHERE result_row = results.row_id) = ");
    out.bind(records);
    out.push(
        " AND (SELECT CAST(coalesce(sum(records.update_us - results.create_us), 0) AS BIGINT) ",
    );
    out.push("FROM records WHERE result_row = results.row_id) = ");
    out.bind(version.age);
    out.push(" AND NOT EXISTS (SELECT 1 FROM holds WHERE result_row = results.row_id ");
    out.push("AND (expire_us IS NULL OR expire_us > ");
    out.bind(now).push("))");
}
