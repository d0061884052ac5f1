//! Why a statement has no answer, and with which exit code the program ends.

use datafusion::error::DataFusionError;
use hindsight_connect::Failure;

/// Why a statement has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong, or is not one that is allowed.
    #[error("{0}")]
    Statement(String),
    /// What the server answered.
    #[error("{}", .0.message())]
    Server(#[source] tonic::Status),
    /// No scheduler or executor of a cluster answers.
    #[error("{0}")]
    Unreachable(String),
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
    /// It takes more than it may have.
    #[error("{0}")]
    Limit(String),
    /// Something else went wrong.
    #[error("{0}")]
    Other(String),
}

/// An answer of the server within an error of the engine.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
pub(crate) struct Answered(pub(crate) tonic::Status);

/// Why nothing of a cluster answers, within an error of the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(pub(crate) String);

impl From<tonic::Status> for Error {
    fn from(status: tonic::Status) -> Self {
        Self::Server(status)
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(found) = cause {
            if let Some(Answered(status)) = found.downcast_ref() {
                return Self::Server(status.clone());
            }
            if let Some(Unreachable(why)) = found.downcast_ref() {
                return Self::Unreachable(why.clone());
            }
            cause = found.source();
        }
        let text = said(&error);
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Limit(format!(
                "{text}; narrow the statement by parent or create_time, or allow more with --memory"
            )),
            DataFusionError::ObjectStore(_)
            | DataFusionError::ParquetError(_)
            | DataFusionError::IoError(_) => Self::File(text),
            DataFusionError::Plan(_)
            | DataFusionError::SQL(..)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Diagnostic(..) => Self::Statement(text),
            DataFusionError::Execution(_) | DataFusionError::ArrowError(..) => {
                Self::Statement(text)
            }
            _ => Self::Other(text),
        }
    }
}

/// The text of an error without what its kinds are called.
fn said(error: &DataFusionError) -> String {
    let mut text = error.strip_backtrace();
    for kind in [
        "Error during planning: ",
        "Schema error: ",
        "SQL error: ",
        "Execution error: ",
        "External error: ",
        "Resources exhausted: ",
        "Arrow error: ",
        "This feature is not implemented: ",
    ] {
        text = text.replace(kind, "");
    }
    text
}

impl Error {
    /// How the program ends, which asked the server at `server`.
    pub fn failure(&self, server: &str) -> Failure {
        match self {
            Self::Statement(text) => Failure::usage(text.clone()),
            Self::Server(status) => {
                let denied = status.code() == tonic::Code::PermissionDenied;
                let remedy = "; ask for one parent with `-n PARENT` or `WHERE parent = 'PARENT'`";
                let more = if denied { remedy } else { "" };
                Failure::status(server, status, hindsight_connect::FLAGS).with(more)
            }
            Self::Unreachable(text) => Failure::unreachable(text.clone()),
            Self::File(_) | Self::Limit(_) | Self::Other(_) => Failure::other(self.to_string()),
        }
    }

    /// The same as a client of Flight SQL is told.
    pub(crate) fn status(&self) -> tonic::Status {
        match self {
            Self::Statement(text) => tonic::Status::invalid_argument(text),
            Self::Server(status) => {
                let denied = status.code() == tonic::Code::PermissionDenied;
                let more = if denied {
                    "; ask for one parent by the header `hindsight-parent` or `WHERE parent = 'PARENT'`"
                } else {
                    ""
                };
                tonic::Status::new(status.code(), format!("{}{more}", status.message()))
            }
            Self::Limit(text) => tonic::Status::resource_exhausted(text),
            Self::Unreachable(text) => tonic::Status::unavailable(text),
            Self::File(text) | Self::Other(text) => tonic::Status::internal(text),
        }
    }
}
