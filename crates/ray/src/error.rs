//! Why a request about a cluster or a template is not done.

use hindsight_runtime::error::{ErrorKind, HasKind};

/// Why a request is not done. Nothing is changed then.
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
    /// The Kubernetes API does not answer, does not have the kind, or does not let this server in.
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

/// A refusal in the words that clients of KubeRay know.
pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::Invalid(why.into())
}

/// Likewise, of a field without a value that makes sense.
pub(crate) fn unspecified(what: &str) -> Error {
    Error::Invalid(format!("{what}. Please specify a valid value."))
}
