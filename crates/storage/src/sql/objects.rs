//! Statements about objects that hold bodies and chunks of logs outside the database.

use bytes::Bytes;
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    dialect::Dialect,
    row::{Row, SqlRow as _},
    statement::Statement,
};
use crate::{
    codec::objects::{Reference, Totals},
    seam::Error,
};

fn id(object: Uuid) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(object.as_bytes()))
}

/// The statement that notes objects which will be uploaded.
pub(crate) fn expect(references: &[Reference]) -> Statement {
    let mut out = Statement::new("INSERT INTO objects (object, size) VALUES ");
    for (at, reference) in references.iter().enumerate() {
        out.push(if at == 0 { "(" } else { ", (" });
        out.bind(id(reference.object)).push(", ");
        out.bind(i64::try_from(reference.size).unwrap_or(i64::MAX));
        out.push(")");
    }
    out
}

/// Appends that a body's object can come to be held.
pub(super) fn is_free(out: &mut Statement, object: Uuid) {
    out.push("EXISTS (SELECT 1 FROM objects WHERE object = ")
        .bind(id(object))
        .push(" AND holder IS NULL AND condemned_us IS NULL)");
}

/// The statement that gives a row if an object can come to be held.
pub(crate) fn free(object: Uuid) -> Statement {
    let mut out = Statement::new("SELECT 1 WHERE ");
    is_free(&mut out, object);
    out
}

/// Appends which objects: those of a condition, at most so many, but for those that somebody
/// writes about right now.
fn of(
    out: &mut Statement,
    dialect: Dialect,
    condition: impl Fn(&mut Statement),
    order: &'static str,
    most: i64,
) {
    out.push(" WHERE object IN (SELECT object FROM objects WHERE holder IS NULL");
    condition(out);
    out.push(" ORDER BY ")
        .push(order)
        .push(" LIMIT ")
        .bind(most);
    if dialect == Dialect::Postgres {
        out.push(" FOR UPDATE SKIP LOCKED");
    }
    out.push(") AND holder IS NULL");
    condition(out);
}

/// The statement that notes since when nobody holds objects, where that is not noted yet.
pub(crate) fn note_unreferenced(dialect: Dialect, now: Timestamp, most: i64) -> Statement {
    let mut out = Statement::new("UPDATE objects SET unreferenced_us = ");
    out.bind(now);
    let unknown = |out: &mut Statement| {
        out.push(" AND unreferenced_us IS NULL");
    };
    of(&mut out, dialect, unknown, "object", most);
    out
}

/// The statement that dooms objects which nobody has held since `before`.
pub(crate) fn condemn(dialect: Dialect, now: Timestamp, before: Timestamp, most: i64) -> Statement {
    let mut out = Statement::new("UPDATE objects SET condemned_us = ");
    out.bind(now);
    let old = |out: &mut Statement| {
        out.push(" AND condemned_us IS NULL AND unreferenced_us <= ")
            .bind(before);
    };
    of(&mut out, dialect, old, "unreferenced_us", most);
    out
}

/// The statement that dooms these objects at once, those that nobody holds.
pub(crate) fn condemn_these(now: Timestamp, objects: &[Uuid]) -> Statement {
    let mut out = Statement::new("UPDATE objects SET unreferenced_us = coalesce(unreferenced_us, ");
    out.bind(now).push("), condemned_us = ").bind(now);
    out.push(" WHERE holder IS NULL AND ");
    among(&mut out, objects);
    out
}

/// The statement that gives objects which are to be removed, after one.
pub(crate) fn condemned(after: Option<Uuid>, most: i64) -> Statement {
    let mut out = Statement::new("SELECT object FROM objects WHERE holder IS NULL AND ");
    out.push("condemned_us IS NOT NULL");
    if let Some(after) = after {
        out.push(" AND object > ").bind(id(after));
    }
    out.push(" ORDER BY object LIMIT ").bind(most);
    out
}

fn among(out: &mut Statement, objects: &[Uuid]) {
    out.push("object IN (");
    for (at, object) in objects.iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " }).bind(id(*object));
    }
    out.push(")");
}

/// The statement that forgets objects which were removed.
pub(crate) fn forget(objects: &[Uuid]) -> Statement {
    let mut out = Statement::new("DELETE FROM objects WHERE condemned_us IS NOT NULL AND ");
    among(&mut out, objects);
    out
}

/// The statement that gives those of these objects that the database knows, held or not.
pub(crate) fn known(objects: &[Uuid]) -> Statement {
    let mut out = Statement::new("SELECT object FROM objects WHERE ");
    among(&mut out, objects);
    out
}

/// The statement that gives a row if any object is held.
pub(crate) fn any_referenced() -> Statement {
    Statement::new("SELECT 1 FROM objects WHERE holder IS NOT NULL LIMIT 1")
}

/// The statement that gives how many objects are held, their bytes, and how many are not.
pub(crate) fn totals() -> Statement {
    Statement::new(
        "SELECT count(holder), CAST(coalesce(sum(CASE WHEN holder IS NOT NULL THEN size \
         END), 0) AS BIGINT), count(*) - count(holder) FROM objects",
    )
}

/// The statement that gives the folder of the database's objects, if it has one.
pub(crate) fn folder() -> Statement {
    let mut out = Statement::new("SELECT value FROM secrets WHERE name = ");
    out.bind(crate::codec::objects::FOLDER);
    out
}

/// The statement that gives objects that are held, after one: which, the row of the record or source, the
/// name of the record in three parts, the reference of the body or chunk, if that is one, and the first line
/// of a chunk, which has one.
pub(crate) fn held(after: Option<Uuid>, limit: i64) -> Statement {
    let mut out =
        Statement::new("SELECT o.object, o.holder, s.parent, s.id, coalesce(r.id, l.log), ");
    out.push("CASE WHEN b.codec >= 16 THEN b.bytes WHEN c.codec >= 16 THEN c.body END, ");
    out.push("o.log_line FROM objects AS o ");
    out.push("LEFT JOIN bodies AS b ON b.record_row = o.holder AND o.log_line IS NULL ");
    out.push("LEFT JOIN records AS r ON r.row_id = o.holder AND o.log_line IS NULL ");
    out.push("LEFT JOIN log_chunks AS c ON c.source = o.holder AND c.first_line = o.log_line ");
    out.push("LEFT JOIN log_sources AS l ON l.row_id = o.holder AND o.log_line IS NOT NULL ");
    out.push("LEFT JOIN results AS s ON s.row_id = coalesce(r.result_row, l.result_row) ");
    out.push("WHERE o.holder IS NOT NULL");
    if let Some(after) = after {
        out.push(" AND o.object > ").bind(id(after));
    }
    out.push(" ORDER BY o.object LIMIT ").bind(limit);
    out
}

/// The statement that gives bodies which refer to objects that the database does not know them to
/// hold: which object, and the name of the record in three parts. At most `limit`.
pub(crate) fn unheld(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT substr(b.bytes, 1, 16), r.parent, s.id, r.id ");
    out.push("FROM bodies AS b LEFT JOIN records AS r ON r.row_id = b.record_row ");
    out.push("LEFT JOIN results AS s ON s.row_id = r.result_row ");
    out.push("WHERE b.codec >= 16 AND NOT EXISTS (SELECT 1 FROM objects AS o WHERE ");
    out.push("o.object = substr(b.bytes, 1, 16) AND o.holder = b.record_row ");
    out.push("AND o.log_line IS NULL AND o.condemned_us IS NULL) ORDER BY b.record_row LIMIT ")
        .bind(limit);
    out
}

/// The same of chunks of logs, with the name of the log in three parts.
pub(crate) fn unheld_by_logs(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT substr(c.body, 1, 16), s.parent, s.id, l.log ");
    out.push("FROM log_chunks AS c LEFT JOIN log_sources AS l ON l.row_id = c.source ");
    out.push("LEFT JOIN results AS s ON s.row_id = l.result_row ");
    out.push("WHERE c.codec >= 16 AND NOT EXISTS (SELECT 1 FROM objects AS o WHERE ");
    out.push("o.object = substr(c.body, 1, 16) AND o.holder = c.source ");
    out.push("AND o.log_line = c.first_line AND o.condemned_us IS NULL) ");
    out.push("ORDER BY c.source, c.first_line LIMIT ")
        .bind(limit);
    out
}

/// What the row of [`totals`] says.
///
/// Fails if it cannot be read.
pub(crate) fn read_totals(rows: &[Row]) -> Result<Totals, Error> {
    let Some(row) = rows.first() else {
        return Ok(Totals::default());
    };
    let number = |at| Ok::<_, Error>(u64::try_from(row.int(at)?.unwrap_or(0)).unwrap_or(0));
    Ok(Totals {
        held: number(0)?,
        bytes: number(1)?,
        loose: number(2)?,
    })
}

/// The number of an object in a row.
pub(crate) fn object(row: &Row, at: usize) -> Result<Uuid, Error> {
    let bytes = row.bytes(at)?.unwrap_or_default();
    Uuid::from_slice(&bytes).map_err(|e| Error::Corrupt(format!("an object without a UUID: {e}")))
}
