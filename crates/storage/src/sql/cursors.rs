//! Cursors of those that follow the feed on behalf of a receiver: the place of each, and which server
//! sends for it until when. Times are those of the database.

use super::{dialect::Dialect, row::SqlRow, statement::Statement};
use crate::seam::{Error, FeedPosition};

/// Now in milliseconds, in the terms of the database.
fn now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        Dialect::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    }
}

/// The statement that reads a cursor: its place.
pub(crate) fn place(name: &str) -> Statement {
    let mut out = Statement::new("SELECT after_transaction, after_row FROM event_cursors WHERE ");
    out.push("name = ").bind(name);
    out
}

/// The place in a row of [`place`].
pub(crate) fn place_in(row: &impl SqlRow) -> Result<FeedPosition, Error> {
    let int = |at| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    Ok(FeedPosition {
        transaction: int(0)?,
        row: int(1)?,
    })
}

/// The statement that makes a cursor which is held by no server, unless it is there.
pub(crate) fn create(name: &str, place: FeedPosition) -> Statement {
    let mut out = Statement::new("INSERT INTO event_cursors ");
    out.push("(name, after_transaction, after_row, holder, held_until_ms) VALUES (");
    out.bind(name).push(", ").bind(place.transaction);
    out.push(", ").bind(place.row);
    out.push(", '', 0) ON CONFLICT DO NOTHING");
    out
}

/// The statement that gives a cursor to `holder` for so long, if it is theirs or not held; it changes
/// one row if so.
pub(crate) fn hold(dialect: Dialect, name: &str, holder: &str, for_ms: i64) -> Statement {
    let mut out = Statement::new("UPDATE event_cursors SET holder = ");
    out.bind(holder).push(", held_until_ms = ");
    out.push(now(dialect)).push(" + ").bind(for_ms);
    out.push(" WHERE name = ").bind(name);
    out.push(" AND (holder = ").bind(holder);
    out.push(" OR held_until_ms <= ")
        .push(now(dialect))
        .push(")");
    out
}

/// The statement that moves a cursor of `holder` and lets them hold it for so long; it changes one row
/// if it is theirs.
pub(crate) fn advance(
    dialect: Dialect,
    name: &str,
    holder: &str,
    place: FeedPosition,
    for_ms: i64,
) -> Statement {
    let mut out = Statement::new("UPDATE event_cursors SET after_transaction = ");
    out.bind(place.transaction).push(", after_row = ");
    out.bind(place.row).push(", held_until_ms = ");
    out.push(now(dialect)).push(" + ").bind(for_ms);
    out.push(" WHERE name = ").bind(name);
    out.push(" AND holder = ").bind(holder);
    out
}
