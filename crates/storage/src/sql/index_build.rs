//! Statements that add and remove indexed paths, and go through what is there already.

use serde::Serialize;

use super::{
    dialect::Dialect,
    indexed::INTO,
    statement::{Bind, Statement},
};
use crate::codec::text;

/// No record is written while the set of fields changes, so that the generation which a write
/// tests is that of its commit too. SQLite has one writer anyway.
fn alone(dialect: Dialect) -> Vec<Statement> {
    match dialect {
        Dialect::Sqlite => Vec::new(),
        Dialect::Postgres => vec![
            Statement::new("SET LOCAL lock_timeout = '30s'"),
            Statement::new("LOCK TABLE records IN SHARE ROW EXCLUSIVE MODE"),
        ],
    }
}

/// Another set of fields holds from now on.
fn next_generation() -> Statement {
    Statement::new("UPDATE index_generation SET generation = generation + 1")
}

/// The statements that add a field, unless it is there or there are `most` already.
pub(crate) fn add(
    dialect: Dialect,
    path: &str,
    kind: &str,
    added_us: i64,
    most: i64,
) -> Vec<Statement> {
    let mut statements = alone(dialect);
    let mut out = Statement::new("INSERT INTO indexed_paths ");
    out.push("(path, kind, added_us, ready, done_row, until_row) SELECT ");
    out.bind(path).push(", ").bind(kind).push(", ");
    out.bind(added_us).push(", 0, 0, ");
    out.push("coalesce((SELECT max(row_id) FROM records), 0) ");
    out.push("WHERE (SELECT count(*) FROM indexed_paths) < ")
        .bind(most);
    out.push(" ON CONFLICT DO NOTHING");
    statements.push(out);
    statements.push(next_generation());
    statements
}

/// The statements that remove a field; what is stored of it is cleared later.
pub(crate) fn remove(dialect: Dialect, path: &str) -> Vec<Statement> {
    let mut statements = alone(dialect);
    for text in [
        "INSERT INTO dropped_indexes (field) SELECT row_id FROM indexed_paths WHERE path = ",
        "DELETE FROM indexed_paths WHERE path = ",
    ] {
        let mut out = Statement::new(text);
        out.bind(path);
        statements.push(out);
    }
    statements.push(next_generation());
    statements
}

/// The fields that were removed and of which something is left.
pub(crate) fn gone() -> Statement {
    Statement::new("SELECT field FROM dropped_indexes ORDER BY field")
}

/// The statement that clears at most so many rows of what is left of a field that was removed.
pub(crate) fn clear(dialect: Dialect, field: i64, most: i64) -> Statement {
    let (begin, end) = match dialect {
        Dialect::Sqlite => (
            "DELETE FROM index_entries WHERE (field, value, at_us, record_row) IN \
             (SELECT field, value, at_us, record_row FROM index_entries WHERE field = ",
            ")",
        ),
        Dialect::Postgres => (
            "DELETE FROM index_entries WHERE ctid = ANY(ARRAY\
             (SELECT ctid FROM index_entries WHERE field = ",
            "))",
        ),
    };
    let mut out = Statement::new(begin);
    out.bind(field).push(" LIMIT ").bind(most).push(end);
    out
}

/// Notes that nothing is left of a field that was removed.
pub(crate) fn cleared(field: i64) -> Statement {
    let mut out = Statement::new("DELETE FROM dropped_indexes WHERE field = ");
    out.bind(field);
    out
}

/// A record whose keys were read, as it was then.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Seen {
    pub(crate) r: i64,
    /// The SHA-256 of its payload in hexadecimal digits; empty without one.
    pub(crate) s: String,
}

/// A key that it has.
#[derive(Debug, Serialize)]
pub(crate) struct SeenKey {
    /// The number of the field.
    pub(crate) f: i64,
    pub(crate) v: String,
    /// The row of the record.
    pub(crate) r: i64,
    /// The SHA-256 of its payload.
    pub(crate) s: String,
}

impl SeenKey {
    /// A key of a record.
    pub(crate) fn new(field: i64, key: &str, of: &Seen) -> Self {
        Self {
            f: field,
            v: text::stored(key).into_owned(),
            r: of.r,
            s: of.s.clone(),
        }
    }
}

fn json<T: Serialize>(list: &[T]) -> Bind {
    Bind::Text(Some(
        serde_json::to_string(list).expect("numbers and texts are JSON"),
    ))
}

/// Waits for writers of these records and holds them off until the transaction ends, so that
/// none changes between looking at its payload and what is written down of it.
pub(crate) fn hold(dialect: Dialect, seen: &[Seen]) -> Option<Statement> {
    if dialect == Dialect::Sqlite {
        return None;
    }
    let mut out = Statement::new("SELECT row_id FROM records WHERE row_id = ANY(");
    out.bind(Bind::Ints(seen.iter().map(|row| row.r).collect()));
    out.push(") ORDER BY row_id FOR NO KEY UPDATE");
    Some(out)
}

/// Stores keys of records whose payloads are still the same.
pub(crate) fn store(dialect: Dialect, keys: &[SeenKey]) -> Statement {
    let mut out = Statement::new(INTO);
    match dialect {
        Dialect::Sqlite => {
            out.push("SELECT e.value ->> 'f', e.value ->> 'v', create_us, row_id FROM json_each(");
            out.bind(json(keys)).push(") AS e CROSS JOIN records ");
            out.push("WHERE row_id = e.value ->> 'r' AND ");
            out.push("lower(hex(coalesce(body_sha256, x''))) = e.value ->> 's'");
        }
        Dialect::Postgres => {
            out.push("SELECT e.f, e.v, create_us, row_id FROM jsonb_to_recordset(");
            out.bind(json(keys));
            out.push("::jsonb) AS e(f bigint, v text, r bigint, s text) ");
            out.push("JOIN records ON row_id = e.r AND ");
            out.push("encode(coalesce(body_sha256, ''::bytea), 'hex') = e.s ");
            out.push("FOR KEY SHARE OF records");
        }
    }
    out.push(" ON CONFLICT DO NOTHING");
    out
}

/// Notes how far a field is.
pub(crate) fn note_done(field: i64, row: i64) -> Statement {
    let mut out = Statement::new("UPDATE indexed_paths SET done_row = ");
    out.bind(row).push(" WHERE row_id = ").bind(field);
    out.push(" AND done_row < ").bind(row);
    out
}

/// Notes that every row was looked at.
pub(crate) fn note_ready(dialect: Dialect, field: i64) -> Vec<Statement> {
    let mut out = Statement::new("UPDATE indexed_paths SET ready = 1 WHERE row_id = ");
    out.bind(field);
    match dialect {
        Dialect::Sqlite => vec![out],
        // The planner knows nothing of it until it has looked.
        Dialect::Postgres => vec![Statement::new("ANALYZE index_entries"), out],
    }
}

/// Keys of records after one row and up to another: row, field and key.
pub(crate) fn held(after: i64, last: i64) -> Statement {
    let mut out = Statement::new("SELECT record_row, field, value FROM index_entries ");
    out.push("WHERE record_row > ").bind(after);
    out.push(" AND record_row <= ").bind(last);
    out
}
