//! Writing rows: each change is one text for the driver, with its precondition inside, so that
//! nothing can happen between the check and the change.
//!
//! A change happened if and only if the driver reports affected rows, or, of new rows that share a
//! statement, its id.

mod archive;
mod set;
mod state;
mod together;

pub(crate) use self::state::{Filled, filled};
pub(crate) use self::together::inserts;
pub(super) use self::{archive::takes_results, set::Set, state::record_state};

use self::state::result_state;

use super::{
    condition::in_result,
    dialect::Dialect,
    etag, holds,
    indexed::{self, AS_KEYS, INTO},
    objects,
    statement::{Bind, Statement},
};
use crate::codec::{
    body::Packed,
    known::IndexEntries,
    row::{PreparedChange, RecordRow, all_labels_json},
};
use crate::seam::Hold;
use hindsight_filter::model::{Etag, RecordName, Resource, ResultName, RunResult};

/// The statement that does a change.
pub(crate) fn write(dialect: Dialect, change: &PreparedChange) -> Statement {
    match change {
        PreparedChange::InsertResult(value) => insert_result(dialect, value),
        PreparedChange::ReplaceResult(expect, value) => replace_result(dialect, expect, value),
        PreparedChange::DeleteResult(name, expect) => {
            let mut out = Statement::new("DELETE FROM results WHERE ");
            is_result(&mut out, name);
            with_etag(&mut out, dialect, Resource::Results, expect.as_ref());
            out
        }
        PreparedChange::ExpireResult(name, version, now) => {
            let mut out = Statement::new("DELETE FROM results WHERE ");
            is_result(&mut out, name);
            with_etag(&mut out, dialect, Resource::Results, Some(&version.etag));
            holds::allow(&mut out, version, *now);
            out
        }
        PreparedChange::ArchiveResult(name, version, now, file) => {
            archive::archive_result(dialect, name, version, (*now, *file))
        }
        PreparedChange::ReturnResult(name, file) => archive::return_result(name, *file),
        PreparedChange::InsertHold(hold) => {
            let mut out = holds::insert(hold);
            is_result(&mut out, &hold.result);
            holds::unless_held(&mut out, hold);
            out
        }
        PreparedChange::DeleteHold(name) => {
            let mut out = Statement::new(
                "DELETE FROM holds WHERE result_row IN (SELECT row_id FROM results WHERE ",
            );
            is_result(&mut out, name);
            out.push(")");
            out
        }
        PreparedChange::InsertRecord(row) => insert_record(dialect, row),
        PreparedChange::ReplaceRecord(expect, row) => replace_record(dialect, expect, row),
        PreparedChange::DeleteRecord(name, expect) => {
            let mut out = Statement::new("DELETE FROM records WHERE ");
            is_record(&mut out, name);
            with_etag(&mut out, dialect, Resource::Records, expect.as_ref());
            out
        }
    }
}

/// The statement that reads the etag of the row that a change is about.
pub(crate) fn etag_of(dialect: Dialect, change: &PreparedChange) -> Statement {
    let of = |columns, from| {
        let mut out = Statement::new("SELECT ");
        etag::of(&mut out, dialect, columns);
        out.push(from);
        out
    };
    let mut out;
    match change {
        PreparedChange::InsertResult(RunResult { name, .. })
        | PreparedChange::ReplaceResult(_, RunResult { name, .. })
        | PreparedChange::InsertHold(Hold { result: name, .. })
        | PreparedChange::DeleteHold(name)
        | PreparedChange::ExpireResult(name, ..)
        | PreparedChange::ArchiveResult(name, ..)
        | PreparedChange::ReturnResult(name, _)
        | PreparedChange::DeleteResult(name, _) => {
            out = of(Resource::Results, " FROM results WHERE ");
            is_result(&mut out, name);
        }
        PreparedChange::InsertRecord(row) | PreparedChange::ReplaceRecord(_, row) => {
            out = of(Resource::Records, " FROM records WHERE ");
            is_record(&mut out, &row.record.name);
        }
        PreparedChange::DeleteRecord(name, _) => {
            out = of(Resource::Records, " FROM records WHERE ");
            is_record(&mut out, name);
        }
    }
    out
}

/// The statements that each give a row if something is still so that a change was prepared from:
/// the fields that are indexed, and what its body refers to.
pub(crate) fn prepared_from(change: &PreparedChange) -> Vec<Statement> {
    let row = change.record_row();
    let fields = row.map(|row| indexed::current(&row.entries));
    let body = row.and_then(stored_body);
    let dictionary = body.and_then(|body| body.dictionary).map(|dictionary| {
        let mut out = Statement::new("SELECT row_id FROM dictionaries WHERE row_id = ");
        out.bind(dictionary);
        out
    });
    let object = body.and_then(|body| body.object).map(objects::free);
    fields.into_iter().chain(dictionary).chain(object).collect()
}

pub(super) fn is_result(out: &mut Statement, name: &ResultName) {
    out.push("id = ")
        .bind_id(name.id())
        .push(" AND parent = ")
        .bind(name.parent().as_str());
}

fn is_record(out: &mut Statement, name: &RecordName) {
    out.push("id = ").bind_id(name.id()).push(" AND ");
    in_result(out, name);
}

fn with_etag(out: &mut Statement, dialect: Dialect, of: Resource, etag: Option<&Etag>) {
    if let Some(etag) = etag {
        etag::of(out.push(" AND "), dialect, of);
        out.push(" = ").bind(etag.as_str());
    }
}

/// Appends the statement that gives the labels of records their numbers on SQLite. It counts as no change.
fn give_labels(out: &mut Statement, dialect: Dialect, rows: &[&RecordRow]) {
    if dialect == Dialect::Postgres {
        return;
    }
    let labels = rows
        .iter()
        .filter_map(|row| all_labels_json(&row.extract.columns));
    let mut labels = labels.peekable();
    let mut before = "INSERT INTO given_labels (labels) VALUES (";
    while let Some(one) = labels.next() {
        out.push(before).bind(Bind::Text(Some(one)));
        out.push(if labels.peek().is_some() { ")" } else { "); " });
        before = ", (";
    }
}

/// Appends `, column = value` for all but the first comma.
fn assign(out: &mut Statement, dialect: Dialect, sets: Vec<Set>) {
    for (at, set) in sets.into_iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " })
            .push(set.column)
            .push(" = ");
        set.value(out, dialect);
    }
}

fn names(out: &mut Statement, sets: &[Set]) {
    for (at, set) in sets.iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " }).push(set.column);
    }
}

fn values(out: &mut Statement, dialect: Dialect, sets: Vec<Set>) {
    for (at, set) in sets.into_iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " });
        set.value(out, dialect);
    }
}

/// All that a new result has.
pub(super) fn new_result(value: &RunResult) -> Vec<Set> {
    let mut sets = vec![
        Set::new("parent", value.name.parent().as_str()),
        Set::id("id", value.name.id()),
        Set::uid(
            Resource::Results,
            &value.uid,
            value.name.id(),
            value.create_time,
        ),
        Set::new("create_us", value.create_time),
    ];
    sets.extend(result_state(value));
    sets
}

/// A name that is taken is no error of the database, which would log it: two streams often bring the
/// first record of one result.
fn insert_result(dialect: Dialect, value: &RunResult) -> Statement {
    let sets = new_result(value);
    let mut out = Statement::new("INSERT INTO results (");
    names(&mut out, &sets);
    out.push(") VALUES (");
    values(&mut out, dialect, sets);
    out.push(") ON CONFLICT DO NOTHING");
    out
}

fn replace_result(dialect: Dialect, expect: &Etag, value: &RunResult) -> Statement {
    let mut out = Statement::new("UPDATE results SET ");
    assign(&mut out, dialect, result_state(value));
    out.push(" WHERE ");
    is_result(&mut out, &value.name);
    with_etag(&mut out, dialect, Resource::Results, Some(expect));
    out
}

/// All that a new record has.
pub(super) fn new_record(row: &RecordRow) -> Vec<Set> {
    let name = &row.record.name;
    let mut sets = vec![
        Set::new("parent", name.result().parent().as_str()),
        Set::id("id", name.id()),
        Set::uid(
            Resource::Records,
            &row.record.uid,
            name.id(),
            row.record.create_time,
        ),
        Set::new("create_us", row.record.create_time),
    ];
    sets.extend(record_state(row));
    sets
}

/// Selecting the result's row is what makes a missing result insert nothing.
fn insert_record(dialect: Dialect, row: &RecordRow) -> Statement {
    let sets = new_record(row);
    let body = stored_body(row);
    let nested = dialect == Dialect::Postgres && body.is_some();
    let mut out = Statement::new(if nested { "WITH made AS (" } else { "" });
    give_labels(&mut out, dialect, &[row]);
    archive::begin_insert(&mut out, dialect, row.number, &sets);
    selected(&mut out, dialect, row, sets);
    let Some(body) = body else { return out };
    match dialect {
        Dialect::Postgres => {
            out.push(" RETURNING row_id, create_us)");
            keys(&mut out, &row.entries, "made");
            out.push(" INSERT INTO bodies (record_row, codec, bytes, dictionary) SELECT row_id, ");
            body_values(&mut out, body);
            out.push(" FROM made");
        }
        Dialect::Sqlite => {
            out.push("; INSERT INTO bodies (record_row, codec, bytes, dictionary) ");
            out.push("SELECT last_insert_rowid(), ");
            body_values(&mut out, body);
            out.push(" WHERE changes() = 1");
        }
    }
    out
}

/// Appends the values of a new record, which are those of no row if it is not to be inserted.
fn selected(out: &mut Statement, dialect: Dialect, row: &RecordRow, sets: Vec<Set>) {
    values(out, dialect, sets);
    out.push(" FROM results WHERE ");
    is_result(out, row.record.name.result());
    out.push(" AND archive_file IS NULL");
    indexed::is_current(out.push(" AND "), &row.entries);
    with_referred(out, dialect, row);
    if dialect == Dialect::Postgres {
        out.push(STAYS);
    }
}

/// After waiting for a result that is being deleted, or whose records are being moved to a file, PostgreSQL looks at
/// it again. The check of the foreign key waits likewise, but does not look at files.
pub(super) const STAYS: &str = " FOR KEY SHARE OF results";

fn replace_record(dialect: Dialect, expect: &Etag, row: &RecordRow) -> Statement {
    let name = &row.record.name;
    let mut update = Statement::new("");
    let out = &mut update;
    give_labels(out, dialect, &[row]);
    out.push(match dialect {
        Dialect::Postgres => "WITH kept AS (UPDATE records SET ",
        Dialect::Sqlite => "UPDATE records SET ",
    });
    assign(out, dialect, record_state(row));
    out.push(" WHERE ");
    is_record(out, name);
    indexed::is_current(out.push(" AND "), &row.entries);
    with_etag(out, dialect, Resource::Records, Some(expect));
    with_referred(out, dialect, row);
    match (dialect, stored_body(row)) {
        (Dialect::Postgres, Some(body)) => {
            out.push(" RETURNING row_id, create_us)");
            other_keys(out, &row.entries);
            keys(out, &row.entries, "kept");
            out.push(" INSERT INTO bodies (record_row, codec, bytes, dictionary) SELECT row_id, ");
            body_values(out, body);
            out.push(" FROM kept").push(TAKE_NEW_BODY);
        }
        (Dialect::Postgres, None) => {
            out.push(" RETURNING row_id, create_us)");
            other_keys(out, &row.entries);
            out.push(", gone AS (DELETE FROM bodies WHERE record_row IN ");
            out.push("(SELECT row_id FROM kept)) SELECT row_id FROM kept");
        }
        (Dialect::Sqlite, Some(body)) => {
            out.push("; INSERT INTO bodies (record_row, codec, bytes, dictionary) SELECT row_id, ");
            body_values(out, body);
            out.push(" FROM records WHERE changes() = 1 AND ");
            is_record(out, name);
            out.push(TAKE_NEW_BODY);
        }
        (Dialect::Sqlite, None) => {
            out.push("; DELETE FROM bodies WHERE changes() = 1 AND record_row = ");
            out.push("(SELECT row_id FROM records WHERE ");
            is_record(out, name);
            out.push(")");
        }
    }
    update
}

/// Appends to PostgreSQL's statement that the keys of the record in `written` are stored.
fn keys(out: &mut Statement, entries: &IndexEntries, written: &'static str) {
    if entries.keys.is_empty() {
        return;
    }
    out.push(", index_keys AS (").push(INTO);
    out.push("SELECT e.f, e.v, create_us, row_id FROM ")
        .push(written)
        .push(", jsonb_to_recordset(")
        .bind(Bind::Text(Some(indexed::keys(entries))))
        .push(AS_KEYS)
        .push(" ON CONFLICT DO NOTHING)");
}

/// Appends likewise that keys which it has no more are deleted. Those that it still has are left
/// alone, because the parts of a statement happen in no order.
fn other_keys(out: &mut Statement, entries: &IndexEntries) {
    if !entries.has_fields {
        return;
    }
    out.push(", other_keys AS (DELETE FROM index_entries AS v USING kept ");
    out.push("WHERE v.record_row = kept.row_id AND NOT EXISTS (SELECT 1 FROM jsonb_to_recordset(")
        .bind(Bind::Text(Some(indexed::keys(entries))))
        .push(AS_KEYS)
        .push(" WHERE e.f = v.field AND e.v = v.value))");
}

/// The statements that follow a change that happened on SQLite, in the same transaction: what
/// indexes of paths hold of the record.
pub(crate) fn index_keys(change: &PreparedChange) -> Vec<Statement> {
    let (row, replaces) = match change {
        PreparedChange::InsertRecord(row) => (row, false),
        PreparedChange::ReplaceRecord(_, row) => (row, true),
        _ => return Vec::new(),
    };
    indexed::write_keys(&row.entries, replaces, &|out| {
        is_record(out, &row.record.name);
    })
}

pub(super) const TAKE_NEW_BODY: &str = " ON CONFLICT (record_row) DO UPDATE SET codec = excluded.codec, bytes = excluded.bytes, \
     dictionary = excluded.dictionary";

/// The body that gets a row; an empty one has none.
pub(super) fn stored_body(row: &RecordRow) -> Option<&Packed> {
    row.body.as_ref().filter(|body| body.size > 0)
}

/// SQLite's second statement would fail where dictionary or object are gone, after the first has
/// happened.
fn with_referred(out: &mut Statement, dialect: Dialect, row: &RecordRow) {
    let Some(body) = stored_body(row).filter(|_| dialect == Dialect::Sqlite) else {
        return;
    };
    if let Some(dictionary) = body.dictionary {
        out.push(" AND EXISTS (SELECT 1 FROM dictionaries WHERE row_id = ")
            .bind(dictionary)
            .push(")");
    }
    if let Some(object) = body.object {
        objects::is_free(out.push(" AND "), object);
    }
}

fn body_values(out: &mut Statement, body: &Packed) {
    out.bind(body.code())
        .push(", ")
        .bind(Some(body.bytes.clone()))
        .push(", ")
        .bind(body.dictionary);
}
