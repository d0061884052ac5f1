//! Statements about logs: their sources, and below those their chunks.
//!
//! A change of a source begins by replacing its version, which locks its row; what follows in the
//! transaction happens only where that succeeded.

pub(crate) mod chunks;
pub(crate) mod list;

use bytes::Bytes;
use hindsight_filter::model::{Parent, RecordName};
use jiff::Timestamp;

use super::{
    condition::in_result,
    read::{corrupt, text},
    row::SqlRow,
    statement::Statement,
};
use crate::seam::{Error, LogKey, LogKind, LogSource, StoredLog};

const FIELDS: &str = "row_id, kind, pod, container, restart, lines, bytes, stored_bytes, first_us, \
                      last_us, holes, sha256, version, packed, sign_asked - signed";

fn number(kind: LogKind) -> i64 {
    match kind {
        LogKind::Container => 0,
        LogKind::Uploaded => 1,
        LogKind::Uploading => 2,
    }
}

fn of_run(out: &mut Statement, run: &RecordName) {
    out.push(" FROM log_sources WHERE log = ").bind_id(run.id());
    in_result(out.push(" AND "), run);
}

fn of_key(out: &mut Statement, key: &LogKey) {
    of_run(out, &key.run);
    out.push(" AND kind = ").bind(number(key.kind));
    out.push(" AND pod = ").bind(key.source.pod.as_str());
    out.push(" AND container = ")
        .bind(key.source.container.as_str());
    out.push(" AND restart = ")
        .bind(i64::from(key.source.restart));
}

/// The statement that reads every source of a run but unfinished uploads.
pub(crate) fn all(run: &RecordName) -> Statement {
    let mut out = Statement::new("SELECT ");
    of_run(out.push(FIELDS), run);
    out.push(" AND kind < 2 ORDER BY coalesce(first_us, 9223372036854775807), row_id");
    out
}

/// The statement that reads one source.
pub(crate) fn one(key: &LogKey) -> Statement {
    let mut out = Statement::new("SELECT ");
    of_key(out.push(FIELDS), key);
    out
}

/// The statement that reads the sources after a row, at most `most`, but unfinished uploads: as [`source`] reads them,
/// then the name of the record in three parts, and when the source changed.
pub(crate) fn walk(after: i64, most: i64) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(FIELDS)
        .push(", (SELECT parent FROM results AS r WHERE r.row_id = result_row)")
        .push(", (SELECT id FROM results AS r WHERE r.row_id = result_row)")
        .push(", log, update_us FROM log_sources WHERE kind < 2 AND row_id > ")
        .bind(after);
    out.push(" ORDER BY row_id LIMIT ").bind(most);
    out
}

/// The statement that adds up the bytes of all lines below a parent.
pub(crate) fn usage(parent: &Parent) -> Statement {
    let mut out =
        Statement::new("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM log_sources ");
    out.push("WHERE result_row IN (SELECT row_id FROM results WHERE parent = ");
    out.bind(parent.as_str()).push(")");
    out
}

/// Where the name of the record begins in a row of [`walk`].
pub(crate) const NAME: usize = 15;

/// The statement that counts the sources that [`walk`] reads.
pub(crate) fn count() -> Statement {
    Statement::new("SELECT count(*) FROM log_sources WHERE kind < 2")
}

/// The source in a row of [`all`] or [`one`].
pub(crate) fn source(row: &impl SqlRow, run: &RecordName) -> Result<StoredLog, Error> {
    let int = |at| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    let kind = match int(1)? {
        0 => LogKind::Container,
        1 => LogKind::Uploaded,
        2 => LogKind::Uploading,
        other => return Err(corrupt(format!("a log of the unknown kind {other}"))),
    };
    Ok(StoredLog {
        row: int(0)?,
        key: LogKey {
            run: run.clone(),
            kind,
            source: LogSource {
                pod: text(row, 2)?.unwrap_or_default(),
                container: text(row, 3)?.unwrap_or_default(),
                restart: i32::try_from(int(4)?).map_err(corrupt)?,
            },
        },
        lines: int(5)?,
        bytes: int(6)?,
        stored_bytes: int(7)?,
        first_us: row.int(8)?,
        last_us: row.int(9)?,
        holes: int(10)?,
        sha256: row.bytes(11)?,
        version: int(12)?,
        packed: int(13)?,
        signed: int(14)? <= 0,
    })
}

/// The statement that makes an empty source, if its result is there.
pub(crate) fn insert(key: &LogKey, version: i64, now: Timestamp) -> Statement {
    let mut out =
        Statement::new("INSERT INTO log_sources (result_row, log, kind, pod, container, ");
    out.push(
        "restart, lines, bytes, stored_bytes, holes, packed, version, update_us) SELECT row_id, ",
    );
    out.bind_id(key.run.id()).push(", ").bind(number(key.kind));
    out.push(", ").bind(key.source.pod.as_str());
    out.push(", ").bind(key.source.container.as_str());
    out.push(", ").bind(i64::from(key.source.restart));
    out.push(", 0, 0, 0, 0, 0, ")
        .bind(version)
        .push(", ")
        .bind(now);
    out.push(" FROM results WHERE id = ")
        .bind_id(key.run.result().id());
    out.push(" AND parent = ")
        .bind(key.run.result().parent().as_str());
    out.push(" ON CONFLICT DO NOTHING");
    out
}

/// The statement that makes a source `to`, if its version is still `from`.
pub(crate) fn update(to: &StoredLog, from: i64, now: Timestamp) -> Statement {
    let mut out = Statement::new("UPDATE log_sources SET kind = ");
    out.bind(number(to.key.kind));
    out.push(", pod = ").bind(to.key.source.pod.as_str());
    out.push(", lines = ").bind(to.lines);
    out.push(", bytes = ").bind(to.bytes);
    out.push(", stored_bytes = ").bind(to.stored_bytes);
    out.push(", first_us = ").bind(to.first_us);
    out.push(", last_us = ").bind(to.last_us);
    out.push(", holes = ").bind(to.holes);
    out.push(", sha256 = ")
        .bind(to.sha256.clone().map(Bytes::from));
    out.push(", packed = ").bind(to.packed);
    out.push(", version = ").bind(to.version);
    out.push(", update_us = ").bind(now);
    out.push(" WHERE row_id = ").bind(to.row);
    out.push(" AND version = ").bind(from);
    out
}

/// The statement that gives the next sealed source after a row with lines that are not packed, and that did not
/// change since a time.
pub(crate) fn unpacked(after: i64, since: Timestamp) -> Statement {
    let mut out =
        Statement::new("SELECT row_id, lines, packed, stored_bytes, version FROM log_sources ");
    out.push("WHERE sha256 IS NOT NULL AND packed < lines AND row_id > ");
    out.bind(after).push(" AND update_us <= ").bind(since);
    out.push(" ORDER BY row_id LIMIT 1");
    out
}

/// A sealed source with lines that are not packed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacked {
    pub(crate) row: i64,
    pub(crate) lines: i64,
    /// Lines from the first on that are.
    pub(crate) packed: i64,
    pub(crate) stored_bytes: i64,
    pub(crate) version: i64,
}

/// The source in a row of [`unpacked`].
pub(crate) fn unpacked_source(row: &impl SqlRow) -> Result<Unpacked, Error> {
    let int = |at| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    Ok(Unpacked {
        row: int(0)?,
        lines: int(1)?,
        packed: int(2)?,
        stored_bytes: int(3)?,
        version: int(4)?,
    })
}

/// The statement that notes how much of a source is packed, if its version is still `from`.
pub(crate) fn note_packed(to: &Unpacked, from: i64, now: Timestamp) -> Statement {
    let mut out = Statement::new("UPDATE log_sources SET packed = ");
    out.bind(to.packed);
    out.push(", stored_bytes = ").bind(to.stored_bytes);
    out.push(", version = ").bind(to.version);
    out.push(", update_us = ").bind(now);
    out.push(" WHERE row_id = ").bind(to.row);
    out.push(" AND version = ").bind(from);
    out
}

/// The statement that removes one source.
pub(crate) fn delete(key: &LogKey) -> Statement {
    let mut out = Statement::new("DELETE");
    of_key(&mut out, key);
    out
}

/// The statement that removes unfinished uploads of a run that are older.
pub(crate) fn delete_stale(run: &RecordName, since: Timestamp) -> Statement {
    let mut out = Statement::new("DELETE");
    of_run(&mut out, run);
    out.push(" AND kind = 2 AND update_us < ").bind(since);
    out
}

/// The statement that removes every source of a run.
pub(crate) fn delete_all(run: &RecordName) -> Statement {
    let mut out = Statement::new("DELETE");
    of_run(&mut out, run);
    out
}
