//! Failures of a store.

use hindsight_runtime::error::report;
use hindsight_storage as storage;

pub(super) use hindsight_connect::Failure;

/// Why a store did not do what it was asked.
pub(super) fn of_store(error: &storage::Error) -> Failure {
    match error {
        storage::Error::Unavailable { .. } => Failure::unreachable(report(error)),
        _ => Failure::other(report(error)),
    }
}
