//! Many changes of one kind as one statement, for PostgreSQL. Each change keeps its own
//! precondition: the statement gives the place, counted from 1, of each that happened, and those
//! that did not leave the others alone.
//!
//! Rows are locked in the order in which they are given.

use super::{
    dialect::Dialect,
    etag,
    indexed::{self, AS_KEYS, INTO},
    statement::{Bind, Statement},
    write::{self, Set, TAKE_NEW_BODY},
};
use crate::codec::{body::Packed, known::IndexEntries, row::RecordRow};
use hindsight_filter::model::{Etag, Resource, RunResult};

/// One column of all rows.
struct Column {
    name: &'static str,
    is_json: bool,
    values: Vec<Bind>,
}

/// Turns rows, which all have the same columns, into columns.
fn columns(rows: impl ExactSizeIterator<Item = Vec<Set>>) -> Vec<Column> {
    let count = rows.len();
    let mut columns: Vec<Column> = Vec::new();
    for row in rows {
        for (at, set) in row.into_iter().enumerate() {
            if columns.len() == at {
                columns.push(Column {
                    name: set.column,
                    is_json: set.is_json,
                    values: Vec::with_capacity(count),
                });
            }
            columns[at].values.push(set.value);
        }
    }
    columns
}

fn comma(at: usize) -> &'static str {
    if at == 0 { "" } else { ", " }
}

/// Rows of which a plan that was made for any number of them compares each with each.
const MANY: usize = 64;

/// Begins with `WITH given AS (...)`: the rows, and the place of each.
fn given(columns: &[Column]) -> Statement {
    let mut out = Statement::new("WITH given (");
    for column in columns {
        out.push(column.name).push(", ");
    }
    out.push("place) AS MATERIALIZED (SELECT * FROM unnest(");
    for (at, column) in columns.iter().enumerate() {
        out.push(comma(at))
            .bind(Bind::Column(column.values.clone()));
        out.push(column.values[0].column_cast());
    }
    out.push(") WITH ORDINALITY)");
    match columns[0].values.len() < MANY {
        true => out,
        false => out.planned_anew(),
    }
}

/// Appends a column of what was given.
fn value(out: &mut Statement, column: &Column) {
    out.push("given.").push(column.name);
    if column.is_json {
        out.push(Dialect::Postgres.json_cast());
    }
}

fn body(row: &RecordRow) -> [Set; 3] {
    let body = write::stored_body(row);
    [
        Set::new("codec", body.map(Packed::code)),
        Set::new("bytes", body.map(|body| body.bytes.clone())),
        Set::new("dictionary", body.and_then(|body| body.dictionary)),
    ]
}

/// What indexes of paths hold of a record, as JSON.
fn index_keys(row: &RecordRow) -> [Set; 1] {
    let keys = indexed::keys(&row.entries);
    [Set::new("index_keys", Bind::Text(Some(keys)))]
}

/// How many columns stand after those of the record itself.
const AFTER_STATE: usize = 4;

/// What the writer of these records knows of indexed paths, but for the keys. Should the rows
/// say different things, what is said is of no generation that there is.
fn entries<'r>(mut rows: impl Iterator<Item = &'r RecordRow>) -> IndexEntries {
    let first = rows.next().map(|row| &row.entries);
    let same = first.filter(|first| rows.all(|row| row.entries.generation == first.generation));
    IndexEntries {
        generation: same.map_or(-1, |entries| entries.generation),
        has_fields: same.is_some_and(|entries| entries.has_fields),
        keys: Vec::new(),
    }
}

/// Appends that the keys of records that were `written` are stored.
fn keys(out: &mut Statement, entries: &IndexEntries, of: &'static str, written: &'static str) {
    if !entries.has_fields {
        return;
    }
    out.push("index_keys AS (").push(INTO);
    out.push("SELECT e.f, e.v, ")
        .push(of)
        .push(".create_us, row_id FROM ")
        .push(written);
    out.push(" CROSS JOIN LATERAL jsonb_to_recordset(given.index_keys");
    out.push(AS_KEYS).push(" ON CONFLICT DO NOTHING), ");
}

/// Inserts records, those that have their result and whose name is free. No name may come twice.
pub(crate) fn insert_records(rows: &[&RecordRow]) -> Statement {
    let all = rows.iter().map(|row| {
        let result = [Set::id("result_id", row.record.name.result().id())].into_iter();
        let record = result.chain(write::new_record(row));
        record.chain(body(row)).chain(index_keys(row)).collect()
    });
    let entries = entries(rows.iter().copied());
    let columns = columns(all);
    let record = &columns[1..columns.len() - AFTER_STATE];
    let mut out = given(&columns);
    out.push(", placed AS MATERIALIZED (SELECT given.*, results.row_id AS result_row FROM given ");
    out.push("JOIN results ON results.id = given.result_id AND results.parent = given.parent ");
    out.push("AND results.archive_file IS NULL")
        .push(write::STAYS);
    out.push("), made AS (INSERT INTO records (result_row");
    for column in record {
        out.push(", ").push(column.name);
    }
    out.push(") SELECT result_row");
    for column in record {
        value(out.push(", "), column);
    }
    indexed::is_current(out.push(" FROM placed AS given WHERE "), &entries);
    out.push(
        " ORDER BY place ON CONFLICT DO NOTHING RETURNING row_id, create_us, result_row, id), ",
    );
    let written = "made JOIN placed AS given USING (result_row, id)";
    keys(&mut out, &entries, "made", written);
    out.push("packed AS (INSERT INTO bodies (record_row, codec, bytes, dictionary) ");
    out.push("SELECT row_id, codec, bytes, dictionary FROM ")
        .push(written);
    out.push(" WHERE codec IS NOT NULL) SELECT place FROM ")
        .push(written);
    out
}

/// Replaces records, those that have the etag that is expected.
pub(crate) fn replace_records(rows: &[(&Etag, &RecordRow)]) -> Statement {
    let all = rows.iter().map(|(expect, row)| {
        let name = &row.record.name;
        let key = [
            Set::new("parent", name.result().parent().as_str()),
            Set::id("result_id", name.result().id()),
            Set::id("id", name.id()),
            Set::new("expected", expect.as_str()),
        ];
        let state = write::record_state(row).into_iter();
        let state = state.chain(body(row)).chain(index_keys(row));
        key.into_iter().chain(state).collect()
    });
    let entries = entries(rows.iter().map(|(_, row)| *row));
    let columns = columns(all);
    let state = &columns[4..columns.len() - AFTER_STATE];
    let mut out = given(&columns);
    out.push(", held AS (SELECT records.row_id, place FROM given JOIN results ON results.id = ");
    out.push("given.result_id AND results.parent = given.parent JOIN records ON records.id = ");
    out.push("given.id AND records.result_row = results.row_id AND ");
    etag::of(&mut out, Dialect::Postgres, Resource::Records);
    out.push(
        " = expected ORDER BY place FOR NO KEY UPDATE OF records), kept AS (UPDATE records SET ",
    );
    for (at, column) in state.iter().enumerate() {
        out.push(comma(at)).push(column.name);
        value(out.push(" = "), column);
    }
    out.push(" FROM held JOIN given USING (place) WHERE records.row_id = held.row_id AND ");
    indexed::is_current(&mut out, &entries);
    out.push(" RETURNING records.row_id, records.create_us, place), ");
    if entries.has_fields {
        let written = "kept JOIN given USING (place)";
        // Those that a record still has are left alone: parts of a statement happen in no order.
        out.push("other_keys AS (DELETE FROM index_entries AS v USING ")
            .push(written);
        out.push(" WHERE v.record_row = kept.row_id AND NOT EXISTS (SELECT 1 FROM ");
        out.push("jsonb_to_recordset(given.index_keys")
            .push(AS_KEYS);
        out.push(" WHERE e.f = v.field AND e.v = v.value)), ");
        keys(&mut out, &entries, "kept", written);
    }
    out.push("packed AS (INSERT INTO bodies (record_row, codec, bytes, dictionary) ");
    out.push("SELECT row_id, codec, bytes, dictionary FROM kept JOIN given USING (place) ");
    out.push("WHERE codec IS NOT NULL").push(TAKE_NEW_BODY);
    out.push("), emptied AS (DELETE FROM bodies WHERE record_row IN (SELECT row_id FROM kept ");
    out.push("JOIN given USING (place) WHERE codec IS NULL)) SELECT place FROM kept");
    out
}

/// Inserts results, those whose name is free. No name may come twice.
pub(crate) fn insert_results(values: &[&RunResult]) -> Statement {
    let columns = columns(values.iter().map(|value| write::new_result(value)));
    let mut out = given(&columns);
    out.push(", made AS (INSERT INTO results (");
    for (at, column) in columns.iter().enumerate() {
        out.push(comma(at)).push(column.name);
    }
    out.push(") SELECT ");
    for (at, column) in columns.iter().enumerate() {
        value(out.push(comma(at)), column);
    }
    out.push(" FROM given ORDER BY place ON CONFLICT DO NOTHING RETURNING parent, id) ");
    out.push("SELECT place FROM made JOIN given USING (parent, id)");
    out
}

/// Gives the places of those records whose name is taken.
pub(crate) fn taken_records(rows: &[&RecordRow]) -> Statement {
    let all = rows.iter().map(|row| {
        let name = &row.record.name;
        vec![
            Set::new("parent", name.result().parent().as_str()),
            Set::id("result_id", name.result().id()),
            Set::id("id", name.id()),
        ]
    });
    let mut out = given(&columns(all));
    out.push(" SELECT place FROM given JOIN results ON results.id = given.result_id AND ");
    out.push("results.parent = given.parent JOIN records ON records.id = given.id AND ");
    out.push("records.result_row = results.row_id");
    out
}

/// Gives the places of those results whose name is taken.
pub(crate) fn taken_results(values: &[&RunResult]) -> Statement {
    let all = values.iter().map(|value| {
        vec![
            Set::new("parent", value.name.parent().as_str()),
            Set::id("id", value.name.id()),
        ]
    });
    let mut out = given(&columns(all));
    out.push(" SELECT place FROM given JOIN results USING (parent, id)");
    out
}
