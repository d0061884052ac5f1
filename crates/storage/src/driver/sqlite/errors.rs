//! What SQLite's codes mean to a caller. No other file here knows a code.

use crate::seam::Error;

/// The primary result code, if SQLite gave one.
fn code(error: &sqlx::Error) -> Option<i32> {
    extended(error).map(|code| code & 0xff)
}

fn extended(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether a name was taken: `SQLITE_CONSTRAINT_UNIQUE` or `SQLITE_CONSTRAINT_PRIMARYKEY`.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    matches!(extended(error), Some(2067 | 1555))
}

/// Whether another connection holds the lock: `SQLITE_BUSY` or `SQLITE_LOCKED`.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(5 | 6))
}

/// Whether the file is no database, or a broken one: `SQLITE_CORRUPT` or `SQLITE_NOTADB`.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(11 | 26))
}

/// The error for a caller.
pub(super) fn classify(what: &'static str, error: sqlx::Error) -> Error {
    if is_broken(&error) {
        return Error::Corrupt(format!("{what}: {error}"));
    }
    match (code(&error), &error) {
        // BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL: none of them is the
        // caller's fault, and all may pass.
        (Some(5..=8 | 10 | 13..=15), _)
        | (
            None,
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Io(_),
        ) => Error::Unavailable {
            what,
            source: error.into(),
        },
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            Error::Corrupt(format!("{what}: {error}"))
        }
        _ => Error::Database {
            what,
            source: error.into(),
        },
    }
}
