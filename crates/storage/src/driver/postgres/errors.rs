//! What PostgreSQL's codes mean to a caller. No other file here knows a code.

use super::place::Place;
use crate::seam::Error;

fn is(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}

/// Whether a name was taken: unique_violation.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    is(error, &["23505"])
}

/// Whether what a row belongs to is gone: foreign_key_violation.
pub(super) fn is_orphan(error: &sqlx::Error) -> bool {
    is(error, &["23503"])
}

/// Whether what a body refers to is gone: its dictionary, or its object, of which a
/// trigger says so.
pub(super) fn is_referring_to_nothing(error: &sqlx::Error) -> bool {
    let key = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::constraint);
    is(error, &["HS001"]) || is_orphan(error) && key == Some("bodies_dictionary_fkey")
}

/// Whether one row of many is to blame.
pub(super) fn is_about_a_row(error: &sqlx::Error) -> bool {
    is_taken(error) || is_orphan(error) || is_referring_to_nothing(error)
}

/// Whether the transaction lost against another and may be tried again: serialization_failure,
/// deadlock_detected.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    is(error, &["40001", "40P01"])
}

/// Whether a lock was waited for in vain: lock_not_available.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    is(error, &["55P03"])
}

/// Whether a statement took longer than it may: query_canceled, which operators do too.
pub(super) fn is_too_slow(error: &sqlx::Error) -> bool {
    let message = error.as_database_error().map(|error| error.message());
    is(error, &["57014"]) && message.is_some_and(|text| text.contains("timeout"))
}

/// The error for a caller.
pub(super) fn classify(what: &'static str, error: sqlx::Error) -> Error {
    if is_too_slow(&error) {
        return Error::TooSlow {
            what,
            source: error.into(),
        };
    }
    let class = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .map(|code| code.get(..2).unwrap_or_default().to_owned());
    match (class.as_deref(), &error) {
        // Connection exceptions, lost races, insufficient resources (disk full, too many
        // connections), intervention of an operator, errors of the system, read-only for now.
        (Some("08" | "40" | "53" | "57" | "58" | "25"), _)
        | (
            None,
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed,
        ) => Error::Unavailable {
            what,
            source: error.into(),
        },
        (Some("55"), _) if is_locked(&error) => Error::Unavailable {
            what,
            source: error.into(),
        },
        // data_corrupted, index_corrupted.
        (Some("XX"), _) if is(&error, &["XX001", "XX002"]) => {
            Error::Corrupt(format!("{what}: {error}"))
        }
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            Error::Corrupt(format!("{what}: {error}"))
        }
        _ => Error::Database {
            what,
            source: error.into(),
        },
    }
}

/// The error for somebody who wants to open a database.
pub(super) fn refused(place: &Place, error: sqlx::Error) -> Error {
    if is(&error, &["28P01", "28000"]) {
        return Error::Incompatible(format!(
            "{place} refuses the user `{}`: {error}; check user and password",
            place.user
        ));
    }
    if is(&error, &["3D000"]) {
        return Error::Incompatible(format!("{place} does not exist; make it with `createdb`"));
    }
    if is(&error, &["42501"]) {
        return Error::Incompatible(format!(
            "{place} does not let the user `{}` do what is needed: {error}",
            place.user
        ));
    }
    match classify("opening the database", error) {
        Error::Unavailable { what, source } => Error::Unavailable {
            what,
            source: Box::new(Silent {
                place: place.to_string(),
                source,
            }),
        },
        other => other,
    }
}

/// A database that does not answer, with its address.
#[derive(Debug, thiserror::Error)]
#[error("{place} does not answer")]
struct Silent {
    place: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}
