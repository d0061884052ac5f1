//! The feed of changes: which rows it names, and the records in them.
//!
//! PostgreSQL keeps the number of the transaction beside each change. Changes are read up to the
//! oldest transaction that is still going on, so that one that commits late is not passed over.
//! SQLite has one writer, so numbers are in the order of commits. A record's state is that of a change
//! if both have the same time of update, which grows with every change.

use super::{
    dialect::Dialect,
    read,
    row::SqlRow,
    statement::{Bind, Statement},
    thin,
};
use crate::seam::{Error, FeedPosition, Projection, RecordColumns};
use jiff::Timestamp;

/// The statement that gives the last transaction of which changes were removed, and the last of which
/// changes can be read.
pub(crate) fn bounds(dialect: Dialect) -> Statement {
    Statement::new(match dialect {
        Dialect::Sqlite => {
            "SELECT coalesce((SELECT min(row_id) FROM changes), 1) - 1, \
             coalesce((SELECT max(row_id) FROM changes), 0)"
        }
        Dialect::Postgres => {
            "SELECT xid, pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 \
             FROM changes_floor"
        }
    })
}

/// Whether changes after a place were removed, where those up to `floor` were.
pub(crate) fn is_pruned(dialect: Dialect, after: FeedPosition, floor: i64) -> bool {
    match dialect {
        Dialect::Sqlite => after.transaction < floor,
        Dialect::Postgres => after < FeedPosition::after(floor),
    }
}

/// A change without its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) position: FeedPosition,
    pub(crate) record_row: i64,
    /// The time of update that the row has if no later change wrote it.
    pub(crate) update_us: i64,
}

/// The statement that gives at most `limit` changes after a place, up to the transaction `last`.
pub(crate) fn noted(dialect: Dialect, after: FeedPosition, last: i64, limit: i64) -> Statement {
    let mut out;
    match dialect {
        Dialect::Sqlite => {
            // Each change is a transaction of one record.
            out = Statement::new("SELECT row_id, 9223372036854775807, record_row, update_us ");
            out.push("FROM changes WHERE row_id > ")
                .bind(after.transaction);
            out.push(" AND row_id <= ").bind(last);
            out.push(" ORDER BY row_id LIMIT ").bind(limit);
        }
        Dialect::Postgres => {
            // What is left of the transaction before, and the next ones whole: each row has a change, so
            // that as many rows are enough.
            out = Statement::new("SELECT xid, r, r, max(update_us) FROM (");
            out.push("(SELECT xid, record_rows, updates_us FROM changes WHERE xid = ")
                .bind(after.transaction);
            out.push(") UNION ALL (SELECT xid, record_rows, updates_us FROM changes WHERE xid > ")
                .bind(after.transaction);
            out.push(" AND xid <= ").bind(last);
            out.push(" ORDER BY xid FETCH FIRST (").bind(limit);
            out.push(
                ") ROWS WITH TIES)) AS noted \
                 CROSS JOIN unnest(record_rows, updates_us) AS one (r, update_us) WHERE xid > ",
            )
            .bind(after.transaction);
            out.push(" OR r > ").bind(after.row);
            out.push(" GROUP BY xid, r ORDER BY xid, r LIMIT ")
                .bind(limit);
        }
    }
    out
}

/// The change in a row of [`noted`].
pub(crate) fn noted_in(row: &impl SqlRow) -> Result<Noted, Error> {
    let int = |at| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    Ok(Noted {
        position: FeedPosition {
            transaction: int(0)?,
            row: int(1)?,
        },
        record_row: int(2)?,
        update_us: int(3)?,
    })
}

/// The statement that reads records of these rows with the columns of their payloads.
pub(crate) fn records(dialect: Dialect, rows: Vec<i64>) -> Statement {
    let mut out = Statement::new("SELECT ");
    read::record_fields(&mut out);
    out.push(", update_us");
    thin::fields(&mut out, dialect, Projection::ALL);
    out.push(" FROM records WHERE row_id");
    dialect.one_of(&mut out, false, Bind::Ints(rows));
    out
}

/// The record in a row of [`records`], with the number of its row and its time of update.
pub(crate) fn record_in(row: &impl SqlRow) -> Result<(i64, i64, RecordColumns), Error> {
    let number = row.int(0)?.unwrap_or_default();
    let update_us = row.int(read::RECORD_KEYS)?.unwrap_or_default();
    Ok((number, update_us, thin::columns(row, 1, Projection::ALL)?))
}

/// The statements that remove changes which were noted before a time, of the oldest `most`; the first
/// says with its rows how many went. The last change that can be read stays on SQLite, where numbers
/// would begin again otherwise.
pub(crate) fn prune(dialect: Dialect, before: Timestamp, most: i64) -> Vec<Statement> {
    match dialect {
        Dialect::Sqlite => {
            let mut out = Statement::new("DELETE FROM changes WHERE row_id <= ");
            out.push("(SELECT max(row_id) FROM (SELECT row_id, at_s FROM changes ");
            out.push("WHERE row_id < (SELECT max(row_id) FROM changes) ORDER BY row_id LIMIT ");
            out.bind(most).push(") WHERE at_s < ");
            out.bind(before.as_second()).push(")");
            vec![out]
        }
        Dialect::Postgres => {
            let mut out = Statement::new("WITH due AS (SELECT max(xid) AS xid FROM ");
            out.push("(SELECT xid, at FROM changes WHERE ");
            out.push("xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ");
            out.push("ORDER BY xid LIMIT ").bind(most);
            out.push(") AS oldest WHERE at < to_timestamp(");
            out.bind(before.as_second()).push("::bigint)), ");
            out.push("raised AS (UPDATE changes_floor AS f SET xid = greatest(f.xid, due.xid) ");
            out.push("FROM due WHERE due.xid IS NOT NULL) ");
            out.push("DELETE FROM changes USING due WHERE changes.xid <= due.xid");
            vec![out, of_another_counter()]
        }
    }
}

/// The statement that removes changes which a restored dump brought from a server whose transactions
/// had greater numbers: they would be read once this server's come that far.
fn of_another_counter() -> Statement {
    Statement::new(
        "DELETE FROM changes \
         WHERE xid > pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000",
    )
}
