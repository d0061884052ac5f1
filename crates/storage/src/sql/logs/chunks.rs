//! Statements about chunks of logs.

use std::ops::Range;

use hindsight_logs::{Chunk, Head, Window};

use super::Unpacked;
use crate::{
    seam::{Error, StoredLog},
    sql::{read::corrupt, row::SqlRow, statement::Statement},
};

/// How chunks are kept: as [`hindsight_logs::encode`] makes them.
const WHOLE: i64 = 1;
/// The same, and the last line has no end, so that no other may be added.
const OPEN: i64 = 2;
/// Added to one of these: the same in an object.
const OUTSIDE: i64 = 16;

const HEAD: &str = "first_line, lines, first_byte, bytes, min_us, max_us, codec";

/// The version of a source that a statement is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of {
    pub(crate) row: i64,
    pub(crate) version: i64,
}

impl From<&StoredLog> for Of {
    fn from(log: &StoredLog) -> Self {
        Self {
            row: log.row,
            version: log.version,
        }
    }
}

impl From<&Unpacked> for Of {
    fn from(log: &Unpacked) -> Self {
        Self {
            row: log.row,
            version: log.version,
        }
    }
}

/// The statement that removes the chunks whose first line is one of these.
pub(crate) fn remove(lines: Range<i64>, source: Of) -> Statement {
    let mut out = Statement::new("DELETE FROM log_chunks WHERE source = ");
    out.bind(source.row);
    out.push(" AND first_line >= ").bind(lines.start);
    if lines.end < i64::MAX {
        out.push(" AND first_line < ").bind(lines.end);
    }
    out.push(" AND EXISTS (SELECT 1 FROM log_sources WHERE row_id = ")
        .bind(source.row);
    out.push(" AND version = ").bind(source.version).push(")");
    out
}

/// A chunk as its row has it.
#[derive(Debug, Clone)]
pub(crate) struct ChunkRow {
    /// Its body is a reference if it lies outside.
    pub(crate) chunk: Chunk,
    pub(crate) is_outside: bool,
}

/// The statement that adds a chunk.
pub(crate) fn add(row: &ChunkRow, source: Of) -> Statement {
    let head = &row.chunk.head;
    let mut out = Statement::new("INSERT INTO log_chunks (source, ");
    out.push(HEAD).push(", body) SELECT row_id");
    let codec = if head.is_closed { WHOLE } else { OPEN };
    for number in [
        head.first_line,
        head.lines,
        head.first_byte,
        head.bytes,
        head.min_us,
        head.max_us,
        codec + if row.is_outside { OUTSIDE } else { 0 },
    ] {
        out.push(", ").bind(number);
    }
    out.push(", ").bind(Some(row.chunk.body.clone()));
    out.push(" FROM log_sources WHERE row_id = ")
        .bind(source.row);
    out.push(" AND version = ").bind(source.version);
    out
}

/// The statement that reads the heads of the chunks from a line on, in order, with the bytes of each body.
pub(crate) fn heads_from(row: i64, line: i64, most: i64) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(HEAD)
        .push(", length(body) FROM log_chunks WHERE source = ");
    out.bind(row).push(" AND first_line >= ").bind(line);
    out.push(" ORDER BY first_line LIMIT ").bind(most);
    out
}

/// The statement that reads the heads of the last chunks, the last one first, with the bytes of each body.
pub(crate) fn last_heads(row: i64, most: i64) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(HEAD)
        .push(", length(body) FROM log_chunks WHERE source = ");
    out.bind(row)
        .push(" ORDER BY first_line DESC LIMIT ")
        .bind(most);
    out
}

/// The head in a row of [`last_heads`] or [`heads_from`], and the bytes of its body.
pub(crate) fn head_and_size(row: &impl SqlRow) -> Result<(Head, i64), Error> {
    let (head, _) = head(row)?;
    Ok((head, row.int(7)?.unwrap_or_default()))
}

/// The head in a row, and whether its body lies outside.
fn head(row: &impl SqlRow) -> Result<(Head, bool), Error> {
    let int = |at| Ok::<_, Error>(row.int(at)?.unwrap_or_default());
    let codec = int(6)?;
    let is_outside = codec >= OUTSIDE;
    let is_closed = match codec - if is_outside { OUTSIDE } else { 0 } {
        WHOLE => true,
        OPEN => false,
        _ => {
            return Err(corrupt(format!(
                "a chunk of a log in the unknown codec {codec}"
            )));
        }
    };
    let head = Head {
        first_line: int(0)?,
        lines: int(1)?,
        first_byte: int(2)?,
        bytes: int(3)?,
        min_us: int(4)?,
        max_us: int(5)?,
        is_closed,
    };
    Ok((head, is_outside))
}

fn touching(out: &mut Statement, window: Window) {
    if window.since > i64::MIN {
        out.push(" AND max_us >= ").bind(window.since);
    }
    if window.until < i64::MAX {
        out.push(" AND min_us < ").bind(window.until);
    }
}

/// The statement that reads the first chunk with this line or a later one that touches the window.
pub(crate) fn next(row: i64, line: i64, window: Window) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(HEAD)
        .push(", body FROM log_chunks WHERE source = ")
        .bind(row);
    // The chunk that has the line is found by its key, and no other before it is looked at.
    out.push(" AND first_line >= coalesce((SELECT max(first_line) FROM log_chunks WHERE source = ");
    out.bind(row).push(" AND first_line <= ").bind(line);
    out.push("), 0) AND first_line + lines > ").bind(line);
    touching(&mut out, window);
    out.push(" ORDER BY first_line LIMIT 1");
    out
}

/// The statement that reads the last chunk with an earlier line that touches the window.
pub(crate) fn before(row: i64, line: i64, window: Window) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(HEAD)
        .push(", body FROM log_chunks WHERE source = ")
        .bind(row);
    out.push(" AND first_line < ").bind(line);
    touching(&mut out, window);
    out.push(" ORDER BY first_line DESC LIMIT 1");
    out
}

/// The chunk in a row of [`next`] or [`before`].
pub(crate) fn chunk(row: &impl SqlRow) -> Result<ChunkRow, Error> {
    let (head, is_outside) = head(row)?;
    let body = row.bytes(7)?.unwrap_or_default().into();
    Ok(ChunkRow {
        chunk: Chunk { head, body },
        is_outside,
    })
}
