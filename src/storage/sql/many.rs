//! Many changes of one kind as one statement, for PostgreSQL. Each change keeps its own
//! precondition: the statement gives the place, counted from 1, of each that happened, and those
//! that did not leave the others alone.
//!
//! Rows are locked in the order in which they are given.

use super::{
    dialect::Dialect,
    statement::{Bind, Statement},
    write::{self, Set, TAKE_NEW_BODY},
};
use crate::{
    model::{Etag, RunResult},
    storage::row::RecordRow,
};

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
    out
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
        Set::new("codec", body.map(|body| body.codec as i64)),
        Set::new("bytes", body.map(|body| body.bytes.clone())),
        Set::new("piece", body.and_then(|body| body.piece)),
    ]
}

/// Inserts records, those that have their result and whose name is free. No name may come twice.
pub(in crate::storage) fn insert_records(rows: &[&RecordRow]) -> Statement {
    let all = rows.iter().map(|row| {
        let record = write::new_record(row).into_iter();
        record.chain(body(row)).collect()
    });
    let columns = columns(all);
    let (record, _body) = columns.split_at(columns.len() - 3);
    let mut out = given(&columns);
    out.push(", made AS (INSERT INTO records (result_row");
    for column in record {
        out.push(", ").push(column.name);
    }
    out.push(") SELECT results.row_id");
    for column in record {
        value(out.push(", "), column);
    }
    out.push(" FROM given JOIN results ON results.id = given.result_id AND results.parent = ");
    out.push("given.parent ORDER BY place ON CONFLICT DO NOTHING ");
    out.push("RETURNING row_id, parent, result_id, id), ");
    out.push("packed AS (INSERT INTO bodies (record_row, codec, bytes, piece) ");
    out.push("SELECT row_id, codec, bytes, piece FROM made JOIN given ");
    out.push("USING (parent, result_id, id) WHERE codec IS NOT NULL) ");
    out.push("SELECT place FROM made JOIN given USING (parent, result_id, id)");
    out
}

/// Replaces records, those that have the etag that is expected.
pub(in crate::storage) fn replace_records(rows: &[(&Etag, &RecordRow)]) -> Statement {
    let all = rows.iter().map(|(expect, row)| {
        let name = &row.record.name;
        let key = [
            Set::new("parent", name.result().parent().as_str()),
            Set::new("result_id", name.result().id()),
            Set::new("id", name.id()),
            Set::new("expected", expect.as_str()),
        ];
        let state = write::record_state(row);
        key.into_iter().chain(state).chain(body(row)).collect()
    });
    let columns = columns(all);
    let state = &columns[4..columns.len() - 3];
    let mut out = given(&columns);
    out.push(", held AS (SELECT records.row_id, place FROM given JOIN results ON results.id = ");
    out.push("given.result_id AND results.parent = given.parent JOIN records ON records.id = ");
    out.push("given.id AND records.result_row = results.row_id AND records.etag = expected ");
    out.push("ORDER BY place FOR NO KEY UPDATE OF records), kept AS (UPDATE records SET ");
    for (at, column) in state.iter().enumerate() {
        out.push(comma(at)).push(column.name);
        value(out.push(" = "), column);
    }
    out.push(" FROM held JOIN given USING (place) WHERE records.row_id = held.row_id ");
    out.push("RETURNING records.row_id, place), ");
    out.push("packed AS (INSERT INTO bodies (record_row, codec, bytes, piece) ");
    out.push("SELECT row_id, codec, bytes, piece FROM kept JOIN given USING (place) ");
    out.push("WHERE codec IS NOT NULL").push(TAKE_NEW_BODY);
    out.push("), emptied AS (DELETE FROM bodies WHERE record_row IN (SELECT row_id FROM kept ");
    out.push("JOIN given USING (place) WHERE codec IS NULL)) SELECT place FROM kept");
    out
}

/// Inserts results, those whose name is free. No name may come twice.
pub(in crate::storage) fn insert_results(values: &[&RunResult]) -> Statement {
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
pub(in crate::storage) fn taken_records(rows: &[&RecordRow]) -> Statement {
    let all = rows.iter().map(|row| {
        let name = &row.record.name;
        vec![
            Set::new("parent", name.result().parent().as_str()),
            Set::new("result_id", name.result().id()),
            Set::new("id", name.id()),
        ]
    });
    let mut out = given(&columns(all));
    out.push(" SELECT place FROM given JOIN results ON results.id = given.result_id AND ");
    out.push("results.parent = given.parent JOIN records ON records.id = given.id AND ");
    out.push("records.result_row = results.row_id");
    out
}

/// Gives the places of those results whose name is taken.
pub(in crate::storage) fn taken_results(values: &[&RunResult]) -> Statement {
    let all = values.iter().map(|value| {
        vec![
            Set::new("parent", value.name.parent().as_str()),
            Set::new("id", value.name.id()),
        ]
    });
    let mut out = given(&columns(all));
    out.push(" SELECT place FROM given JOIN results USING (parent, id)");
    out
}
