//! What is said when an object store does not do what it was asked.

use object_store::Error as StoreError;

use crate::seam::Error;

/// The error for a caller who wanted something of an object.
pub(super) fn failed(what: &'static str, object: String, error: StoreError) -> Error {
    Error::ObjectStoreUnavailable {
        what,
        object,
        source: error.into(),
    }
}

/// An object that is not there.
pub(super) fn missing(object: &str) -> Error {
    Error::MissingObject(format!(
        "the object `{object}`, which holds a body or part of a log, is not there; put it back from a version or \
         backup of the object store, or delete the record"
    ))
}

/// An object that is not the one that was stored.
pub(super) fn damaged(object: &str, why: &str) -> Error {
    Error::MissingObject(format!(
        "the object `{object}` is not the one that was stored: {why}; put it back from a version \
         or backup of the object store, or delete the record"
    ))
}

/// An object store that cannot be used as it is configured.
pub(super) fn unfit(url: &str, error: &StoreError) -> Error {
    Error::Incompatible(format!(
        "the object store `{url}` cannot be used: {}; check objects_url and the credentials in \
         the environment",
        hindsight_runtime::error::report(error)
    ))
}

/// Whether trying again later may help.
pub(super) fn may_pass(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::NotFound { .. }
            | StoreError::PermissionDenied { .. }
            | StoreError::Unauthenticated { .. }
            | StoreError::InvalidPath { .. }
            | StoreError::NotSupported { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::UnknownConfigurationKey { .. }
    )
}
