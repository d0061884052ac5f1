//! Statements about files that have the records of results.

use jiff::Timestamp;

use super::{
    dialect::Dialect,
    read,
    row::SqlRow,
    statement::Statement,
    write::{is_result, takes_results},
};
use crate::seam::{ArchiveFile, ArchiveState, Condemn, Error};
use hindsight_filter::model::ResultName;

const COLUMNS: &str =
    "SELECT row_id, path, parent, min_create_us, max_create_us, results, records, bytes, sha256";

fn of_files(more: &'static str) -> Statement {
    let mut out = Statement::new(COLUMNS);
    out.push(more).push(" FROM archive_files WHERE ");
    out
}

pub(crate) fn state() -> Statement {
    Statement::new("SELECT files, left_files FROM archive_state")
}

/// The state in a row of [`state`].
pub(crate) fn state_in(row: &impl SqlRow) -> Result<ArchiveState, Error> {
    Ok(ArchiveState {
        files: row.int(0)?.unwrap_or_default(),
        left: row.int(1)?.unwrap_or_default(),
    })
}

pub(crate) fn files() -> Statement {
    let mut out = of_files("");
    out.push("condemned_us IS NULL");
    out
}

/// The same, with how many results are in each.
pub(crate) fn files_and_results() -> Statement {
    let mut out =
        of_files(", (SELECT COUNT(*) FROM results WHERE archive_file = archive_files.row_id)");
    out.push("condemned_us IS NULL");
    out
}

/// The number of results in a row of [`files_and_results`].
pub(crate) fn results(row: &impl SqlRow) -> Result<u64, Error> {
    let count = row.int(9)?.unwrap_or_default();
    Ok(u64::try_from(count).unwrap_or_default())
}

pub(crate) fn condemned(before: Timestamp) -> Statement {
    let mut out = of_files("");
    out.push("condemned_us < ").bind(before);
    out
}

/// The file in a row of [`files`] or [`condemned`].
pub(crate) fn file(row: &impl SqlRow) -> Result<ArchiveFile, Error> {
    let id = row.int(0)?.unwrap_or_default();
    let corrupt = |what: String| Error::Corrupt(format!("archive file {id}: {what}"));
    let text = |at| Ok::<_, Error>(read::text(row, at)?.unwrap_or_default());
    let time = |at| {
        let us = row.int(at)?.unwrap_or_default();
        Timestamp::from_microsecond(us).map_err(|error| corrupt(error.to_string()))
    };
    let count = |at| {
        let count = row.int(at)?.unwrap_or_default();
        u64::try_from(count).map_err(|error| corrupt(error.to_string()))
    };
    let parent = text(2)?.parse();
    Ok(ArchiveFile {
        id,
        path: text(1)?,
        parent: parent.map_err(|error| corrupt(format!("its parent: {error}")))?,
        begin: time(3)?,
        end: time(4)?,
        results: count(5)?,
        records: count(6)?,
        bytes: count(7)?,
        sha256: row.bytes(8)?.unwrap_or_default().into(),
    })
}

/// That a file came or went.
pub(crate) fn changed() -> Statement {
    Statement::new("UPDATE archive_state SET files = files + 1")
}

pub(crate) fn begin(file: &ArchiveFile, now: Timestamp) -> Statement {
    let int = |count| i64::try_from(count).unwrap_or(i64::MAX);
    let mut out = Statement::new(
        "INSERT INTO archive_files (path, parent, min_create_us, max_create_us, results, records, \
         bytes, sha256, create_us) VALUES (",
    );
    out.bind(file.path.as_str()).push(", ");
    out.bind(file.parent.as_str()).push(", ");
    out.bind(file.begin).push(", ");
    out.bind(file.end).push(", ");
    out.bind(int(file.results)).push(", ");
    out.bind(int(file.records)).push(", ");
    out.bind(int(file.bytes)).push(", ");
    out.bind(Some(file.sha256.clone())).push(", ");
    out.bind(now).push(")");
    out
}

/// The number of the file of this path.
pub(crate) fn number(path: &str) -> Statement {
    let mut out = Statement::new("SELECT row_id FROM archive_files WHERE path = ");
    out.bind(path);
    out
}

pub(crate) fn file_of(name: &ResultName) -> Statement {
    let mut out = Statement::new("SELECT archive_file FROM results WHERE ");
    is_result(&mut out, name);
    out
}

pub(crate) fn results_in(file: i64) -> Statement {
    let mut out = Statement::new("SELECT id FROM results WHERE archive_file = ");
    out.bind(file);
    out
}

/// Condemns files without results. The first statement waits for what is about to name one of them, so that the
/// second one sees it.
pub(crate) fn condemn(which: Condemn, now: Timestamp) -> Vec<Statement> {
    let empty = |out: &mut Statement| {
        out.push(" WHERE condemned_us IS NULL AND ");
        match which {
            Condemn::Before(time) => out.push("create_us < ").bind(time),
            Condemn::File(file) => out.push("row_id = ").bind(file),
        };
        out.push(
            " AND NOT EXISTS (SELECT 1 FROM results WHERE archive_file = archive_files.row_id)",
        );
    };
    let mut lock = Statement::new("UPDATE archive_files SET condemned_us = NULL");
    empty(&mut lock);
    let mut condemn = Statement::new("UPDATE archive_files SET condemned_us = ");
    condemn.bind(now);
    empty(&mut condemn);
    vec![lock, condemn]
}

pub(crate) fn change_file(dialect: Dialect, from: i64, to: i64, ids: &[String]) -> Statement {
    let mut out = Statement::new("UPDATE results SET archive_file = ");
    out.bind(to).push(" WHERE archive_file = ").bind(from);
    out.push(" AND ");
    takes_results(&mut out, dialect, to);
    for (at, id) in ids.iter().enumerate() {
        out.push(if at == 0 { " AND id IN (" } else { ", " });
        out.bind_id(id);
    }
    out.push(")");
    out
}

pub(crate) fn forget(file: i64) -> Statement {
    let mut out = Statement::new("DELETE FROM archive_files WHERE row_id = ");
    out.bind(file);
    out
}
