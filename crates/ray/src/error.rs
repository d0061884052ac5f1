//! Errors of calls about clusters and templates.

use hindsight_runtime::error::{ErrorKind, HasKind};

/// Why a call failed. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request is wrong in itself, or the Kubernetes API refuses the object that it describes.
    #[error("{0}")]
    Invalid(String),
    /// There is no such cluster, template or namespace.
    #[error("{0}")]
    Missing(String),
    /// There is one of this name already.
    #[error("{0}")]
    Exists(String),
    /// The Kubernetes API does not answer, does not serve RayClusters, or refuses the account of this server.
    #[error("{0}")]
    Unavailable(String),
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Missing(_) => ErrorKind::Missing,
            Self::Exists(_) => ErrorKind::Exists,
            Self::Unavailable(_) => ErrorKind::Unavailable,
        }
    }
}

/// The error for a request that is not valid.
pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::Invalid(why.into())
}

/// The error for a field without a valid value, in the words of KubeRay.
pub(crate) fn unspecified(what: &str) -> Error {
    Error::Invalid(format!("{what}. Please specify a valid value."))
}
