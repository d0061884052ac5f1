//! Why a pass ended before there was nothing left to do.

use hindsight_cluster::ClusterError;

/// Why a pass ended before there was nothing to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Interrupted {
    /// What was known is not the newest.
    #[error("it was changed at the same time")]
    Overtaken,
    /// The API server does not do what it was asked.
    #[error(transparent)]
    Cluster(ClusterError),
    /// The object is not what it should be.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl From<ClusterError> for Interrupted {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Moved => Self::Overtaken,
            error => Self::Cluster(error),
        }
    }
}
