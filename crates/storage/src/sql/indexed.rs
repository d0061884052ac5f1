//! Indexed paths: what is written of them, and how tests ask for it.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    condition::Writer,
    dialect::Dialect,
    read,
    row::{Row, SqlRow as _},
    statement::{Bind, Statement},
};
use crate::{
    codec::{
        known::{IndexEntries, IndexedPaths},
        text,
    },
    seam::{Error, IndexedPath},
};
use hindsight_filter::{
    condition::{Is, Test, Value},
    indexed::Indexed,
};

/// A key that a row has for a field.
#[derive(Debug, Serialize)]
struct Key<'k> {
    f: i64,
    v: std::borrow::Cow<'k, str>,
}

/// The keys of a entries as JSON, each with the number of its field.
pub(super) fn keys(entries: &IndexEntries) -> String {
    let keys = entries.keys.iter().map(|(field, key)| Key {
        f: *field,
        v: text::stored(key),
    });
    serde_json::to_string(&keys.collect::<Vec<_>>()).expect("numbers and texts are JSON")
}

/// Appends that the fields which a writer knows are those that there are.
pub(super) fn is_current(out: &mut Statement, entries: &IndexEntries) {
    out.push("(SELECT generation FROM index_generation) = ")
        .bind(entries.generation);
}

/// The statement that gives a row if that is so.
pub(super) fn current(entries: &IndexEntries) -> Statement {
    let mut out = Statement::new("SELECT 1 WHERE ");
    is_current(&mut out, entries);
    out
}

/// The statements that put the keys of a record that was just written into SQLite's tables;
/// `is_record` appends which one it was.
pub(super) fn write_keys(
    entries: &IndexEntries,
    replaces: bool,
    is_record: &dyn Fn(&mut Statement),
) -> Vec<Statement> {
    let mut statements = Vec::new();
    if replaces && entries.has_fields {
        let mut out = Statement::new("DELETE FROM index_entries WHERE record_row = ");
        out.push("(SELECT row_id FROM records WHERE ");
        is_record(&mut out);
        out.push(")");
        statements.push(out);
    }
    if !entries.keys.is_empty() {
        let mut out = Statement::new(INTO);
        out.push("SELECT e.value ->> 'f', e.value ->> 'v', create_us, row_id FROM json_each(")
            .bind(Bind::Text(Some(keys(entries))))
            .push(") AS e CROSS JOIN records WHERE row_id = (SELECT row_id FROM records WHERE ");
        is_record(&mut out);
        out.push(") ON CONFLICT DO NOTHING");
        statements.push(out);
    }
    statements
}

/// What inserting keys begins with.
pub(super) const INTO: &str = "INSERT INTO index_entries (field, value, at_us, record_row) ";

/// What stands after JSON keys that are made into rows of PostgreSQL.
pub(super) const AS_KEYS: &str = "::jsonb) AS e(f bigint, v text)";

impl Writer<'_> {
    /// Appends that a record passes a test of an indexed path.
    pub(super) fn indexed(&mut self, of: &Indexed, test: &Test) {
        let Some(field) = of.field else {
            return self.constant(true);
        };
        let lacks = test.is == Is::Present;
        self.out.push(match lacks {
            true => "(NOT EXISTS (SELECT 1 FROM index_entries AS v",
            false => "(EXISTS (SELECT 1 FROM index_entries AS v",
        });
        if self.dialect == Dialect::Sqlite {
            self.out.push(" INDEXED BY index_entries_by_record");
        }
        self.out.push(" WHERE v.record_row = row_id AND v.field = ");
        self.out.bind(field);
        if !lacks {
            self.out.push(" AND ");
            key_test(self.out, self.dialect, "v.value", test);
        }
        self.out.push("))");
    }
}

/// Appends that the key in `column` passes a test.
pub(super) fn key_test(out: &mut Statement, dialect: Dialect, column: &'static str, test: &Test) {
    let text = |value: &Value| match value {
        Value::Text(key) => text::stored(key).into_owned(),
        Value::Int(_) | Value::Time(_) => String::new(),
    };
    out.push(column);
    match &test.is {
        Is::Equal(value) => {
            out.push(if test.negated { " <> " } else { " = " });
            out.bind(Bind::Text(Some(text(value))));
        }
        Is::OneOf(values) => {
            let texts = Bind::Texts(values.iter().map(text).collect());
            dialect.one_of(out, test.negated, texts);
        }
        Is::AtMost(value) => {
            out.push(" <= ").bind(Bind::Text(Some(text(value))));
        }
        Is::AtLeast(value) => {
            out.push(" >= ").bind(Bind::Text(Some(text(value))));
        }
        Is::StartsWith(prefix) if !test.negated => {
            let prefix = text::stored(prefix).into_owned();
            let end = text::after_prefix(&prefix);
            out.push(" >= ").bind(Bind::Text(Some(prefix)));
            if let Some(end) = end {
                out.push(" AND ").push(column).push(" < ");
                out.bind(Bind::Text(Some(end)));
            }
        }
        // Whatever else is asked, a key is there.
        _ => {
            out.push(" = ").push(column);
        }
    }
}

/// Appends ` WHERE` the keys of a field pass a test.
pub(super) fn of_field(out: &mut Statement, dialect: Dialect, field: i64, test: &Test) {
    out.push(" WHERE field = ").bind(field).push(" AND ");
    key_test(out, dialect, "value", test);
}

/// Appends the rows whose keys pass a test, in parentheses.
pub(super) fn rows(out: &mut Statement, dialect: Dialect, field: i64, test: &Test) {
    out.push("(SELECT record_row FROM index_entries");
    of_field(out, dialect, field, test);
    out.push(")");
}

/// The statement that gives the present generation and each field: number, path, kind, time,
/// whether it is ready, and how far it is of how much; nulls if there is none.
pub(crate) fn known() -> Statement {
    Statement::new(
        "SELECT generation, row_id, path, kind, added_us, ready, done_row, until_row \
         FROM index_generation LEFT JOIN indexed_paths ON 1 = 1 ORDER BY row_id",
    )
}

/// What the rows of [`known`] say.
///
/// Fails with [`Error::Corrupt`] if that cannot be read.
pub(crate) fn read_known(rows: &[Row]) -> Result<IndexedPaths, Error> {
    let number = |row: &Row, at, what| {
        row.int(at)?
            .ok_or_else(|| Error::Corrupt(format!("an indexed path without `{what}`")))
    };
    let (mut generation, mut all) = (0, Vec::new());
    for row in rows {
        generation = number(row, 0, "generation")?;
        let Some(id) = row.int(1)? else { continue };
        let path = read::text(row, 2)?.unwrap_or_default();
        let kind = read::text(row, 3)?.unwrap_or_default();
        let added = number(row, 4, "added_us")?;
        all.push(IndexedPath {
            id,
            path: path.parse().map_err(read::corrupt)?,
            kind: kind.parse().map_err(read::corrupt)?,
            added: Timestamp::from_microsecond(added).map_err(read::corrupt)?,
            ready: number(row, 5, "ready")? != 0,
            done_row: number(row, 6, "done_row")?,
            until_row: number(row, 7, "until_row")?,
        });
    }
    Ok(IndexedPaths::new(generation, all))
}
