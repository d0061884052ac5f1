//! Why a request about a pipeline is not done, in the words that clients of Kubeflow know.

use hindsight_runtime::error::{ErrorKind, HasKind};

/// Why a request is not done. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A refusal with a reason that clients read.
    #[error("{outer}{short}")]
    Refused {
        /// What a client can do about it.
        kind: ErrorKind,
        /// The bare reason, which details of errors have.
        short: String,
        /// What was not done because of it, up to the reason: empty, or ends in `: `.
        outer: String,
    },
    /// The database did not do it.
    #[error(transparent)]
    Store(#[from] hindsight_storage::Error),
}

impl Error {
    /// A refusal of this kind.
    pub fn new(kind: ErrorKind, short: impl Into<String>) -> Self {
        Self::Refused {
            kind,
            short: short.into(),
            outer: String::new(),
        }
    }

    /// The request is wrong in itself.
    pub fn invalid(short: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, short)
    }

    /// Something that the store needs does not answer.
    pub fn unavailable(short: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, short)
    }

    /// There is no pipeline of this id.
    #[must_use]
    pub fn no_pipeline(id: &str) -> Self {
        Self::new(ErrorKind::Missing, format!("Pipeline {id} not found"))
    }

    /// There is no pipeline of this name in the namespace.
    #[must_use]
    pub fn no_pipeline_named(namespace: &str, name: &str) -> Self {
        let short = format!("Namespace/Pipeline {namespace}/{name} not found");
        Self::new(ErrorKind::Missing, short)
    }

    /// There is no version of this id, or it belongs to another pipeline.
    #[must_use]
    pub fn no_version(id: &str) -> Self {
        Self::new(
            ErrorKind::Missing,
            format!("PipelineVersion {id} not found"),
        )
    }

    /// The namespace has a pipeline of this name.
    #[must_use]
    pub fn pipeline_exists(name: &str) -> Self {
        let short = format!(
            "Failed to create a new pipeline. The name {name} already exists. Please specify a new name"
        );
        Self::new(ErrorKind::Exists, short)
    }

    /// The pipeline has a version of this name.
    #[must_use]
    pub fn version_exists(name: &str) -> Self {
        let short = format!(
            "Failed to create a new pipeline version. The name {name} already exist. Specify a new name"
        );
        Self::new(ErrorKind::Exists, short)
    }

    /// A pipeline is to be deleted without its versions, of which `version` is one.
    #[must_use]
    pub fn has_versions(id: &str, version: &str) -> Self {
        Self::invalid(format!(
            "Failed to delete pipeline with id {id} as it has existing pipeline versions (e.g. {version}). Set \
             cascade=true to delete all versions"
        ))
    }

    /// The same, as the reason why `what` was not done.
    #[must_use]
    pub fn within(self, what: &str) -> Self {
        match self {
            Self::Refused { kind, short, outer } => Self::Refused {
                kind,
                short,
                outer: format!("{what}: {outer}"),
            },
            Self::Store(_) => self,
        }
    }

    /// The bare reason, of a refusal.
    #[must_use]
    pub fn short(&self) -> Option<&str> {
        match self {
            Self::Refused { short, .. } => Some(short),
            Self::Store(_) => None,
        }
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { kind, .. } => *kind,
            Self::Store(error) => error.kind(),
        }
    }

    fn reason(&self) -> Option<&str> {
        self.short()
    }
}
