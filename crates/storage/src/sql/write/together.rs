//! New rows that are alike as one statement, for SQLite: their indexes and what triggers do are
//! written once for all of them, and undoing a statement is prepared for once.

use super::{
    archive, body_values, give_labels, is_record, names, new_record, new_result, selected,
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
            let rows = changes.iter().filter_map(|change| change.new_result());
            Some(insert_results(rows))
        }
        PreparedChange::InsertRecord(first) if first.number.is_none() => {
            let rows = changes.iter().filter_map(|change| change.record_row());
            Some(insert_records(&rows.collect::<Vec<_>>()))
        }
        _ => None,
    }
}

fn insert_results<'c>(rows: impl Iterator<Item = &'c RunResult>) -> Statement {
    let mut out = Statement::new("INSERT INTO results (");
    for (at, value) in rows.enumerate() {
        let sets = new_result(value);
        if at == 0 {
            names(&mut out, &sets);
        }
        out.push(if at == 0 { ") VALUES (" } else { "), (" });
        values(&mut out, SQLITE, sets);
    }
    out.push(") ON CONFLICT DO NOTHING RETURNING id");
    out
}

fn insert_records(rows: &[&RecordRow]) -> Statement {
    let mut out = Statement::new("");
    give_labels(&mut out, SQLITE, rows);
    for (at, row) in rows.iter().enumerate() {
        let sets = new_record(row);
        if at == 0 {
            archive::begin_insert(&mut out, SQLITE, None, &sets);
        } else {
            out.push(" UNION ALL SELECT row_id, ");
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
    out
}
