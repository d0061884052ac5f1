//! New rows that are alike as one statement, for SQLite: their indexes and what triggers do are
//! written once for all of them, and undoing a statement is prepared for once.

use super::{
    archive, body_values, give_all_labels, is_record, names, new_record, new_result, selected,
    stored_body, values, with_etag,
};
use crate::{
    codec::row::{PreparedChange, RecordRow},
    sql::{dialect::Dialect, statement::Statement},
};
use hindsight_filter::model::{Resource, RunResult};

const SQLITE: Dialect = Dialect::Sqlite;

/// The statement that inserts rows, of which each has the same text by itself, and gives the ids of those
/// that were inserted; none if these are no new rows. No two may have one id.
pub(crate) fn inserts(changes: &[&PreparedChange]) -> Option<Statement> {
    match changes.first()? {
        PreparedChange::InsertResult(_) => {
            insert_results(changes.iter().map(|change| match change {
                PreparedChange::InsertResult(value) => Some(value),
                _ => None,
            }))
        }
        PreparedChange::InsertRecord(_) => {
            insert_records(changes.iter().map(|change| match change {
                PreparedChange::InsertRecord(row) => Some(&**row),
                _ => None,
            }))
        }
        _ => None,
    }
}

fn insert_results<'c>(rows: impl Iterator<Item = Option<&'c RunResult>>) -> Option<Statement> {
    let mut out = Statement::new("INSERT INTO results (");
    for (at, value) in rows.enumerate() {
        let sets = new_result(value?);
        if at == 0 {
            names(&mut out, &sets);
        }
        out.push(if at == 0 { ") VALUES (" } else { "), (" });
        values(&mut out, SQLITE, sets);
    }
    out.push(") ON CONFLICT DO NOTHING RETURNING id");
    Some(out)
}

fn insert_records<'c>(rows: impl Iterator<Item = Option<&'c RecordRow>>) -> Option<Statement> {
    let rows: Vec<&RecordRow> = rows.collect::<Option<_>>()?;
    if rows.iter().any(|row| row.number.is_some()) {
        return None;
    }
    let mut out = Statement::new("");
    give_all_labels(&mut out, &rows);
    for (at, row) in rows.iter().enumerate() {
        let sets = new_record(row);
        match at {
            0 => archive::begin_insert(&mut out, SQLITE, None, &sets),
            _ => drop(out.push(" UNION ALL SELECT row_id, ")),
        }
        selected(&mut out, SQLITE, row, sets);
    }
    out.push(" ON CONFLICT DO NOTHING RETURNING id");
    let bodies = rows.iter().filter_map(|row| Some((row, stored_body(row)?)));
    let bodies: Vec<_> = bodies.collect();
    for (at, (row, body)) in bodies.iter().enumerate() {
        out.push(match at {
            0 => "; INSERT INTO bodies (record_row, codec, bytes, dictionary) SELECT row_id, ",
            _ => " UNION ALL SELECT row_id, ",
        });
        body_values(&mut out, body);
        out.push(" FROM records WHERE ");
        is_record(&mut out, &row.record.name);
        with_etag(&mut out, SQLITE, Resource::Records, Some(&row.record.etag));
    }
    if !bodies.is_empty() {
        // A record that was there with this etag has its body.
        out.push(" ON CONFLICT DO NOTHING");
    }
    Some(out)
}
