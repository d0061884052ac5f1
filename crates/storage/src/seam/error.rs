//! Why a store did not do what it was asked.

use hindsight_filter::{measure::TooManyGroups, model::Etag};
use hindsight_runtime::error::{ErrorKind, HasKind, report};

/// Why a store did not do what it was asked. One variant for each thing a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row to change, or the result to put a record into, is not there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// The name is taken.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The row has another etag than expected.
    #[error("the etag mismatches: `{name}` changed since `{expected}`; read it again and retry")]
    Stale {
        /// Full name of the result or record.
        name: String,
        /// The etag that was expected.
        expected: Etag,
    },
    /// The database does not answer, is full, or refuses writes for now; try later.
    #[error("the database is not available: {what}")]
    Unavailable {
        /// What it was doing.
        what: &'static str,
        /// What the database driver reported as the cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database worked on one statement for as long as it may.
    #[error(
        "the database took longer than db_statement_timeout for one statement: {what}; ask for \
         less, or for what an index answers (`hindsight explain` tells)"
    )]
    TooSlow {
        /// What it was doing.
        what: &'static str,
        /// What the database driver reported about the cancelled statement.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The object store, where big bodies lie, does not answer or refuses; try later.
    #[error("the object store is not available: {what} `{object}`")]
    ObjectStoreUnavailable {
        /// What it was doing.
        what: &'static str,
        /// Place of the object that the call was about.
        object: String,
        /// What the client of the object store reported.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object that holds a body is gone, or is another one.
    #[error("{0}")]
    MissingObject(String),
    /// What is stored cannot be understood; nothing is repaired by guess.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The database is not one of ours, or of another version.
    #[error("{0}")]
    Incompatible(String),
    /// An aggregate has more groups than can be kept.
    #[error(transparent)]
    Groups(#[from] TooManyGroups),
    /// Changes after the place from which a feed was asked for are not kept any more, or the place cannot be read any more.
    #[error(
        "expired: changes after this cursor are not kept any more (changes_retention), or it was sealed \
         under another page_token_key; list again, and follow from a new cursor"
    )]
    Expired,
    /// Lines of a log come before those that are to be appended, and are not stored.
    #[error("lines {next} to {given} of the log come first; append from line {next} on")]
    OutOfSequence {
        /// The number of the line that is the next one.
        next: i64,
        /// The first line that was given.
        given: i64,
    },
    /// A line that is stored already has another time than the one that was given: it is another line.
    #[error(
        "line {0} of the log is stored with another time; read what is stored, and append after it"
    )]
    OtherLine(i64),
    /// Nothing may follow in a log.
    #[error("the log was sealed after line {0}; nothing can be appended to it")]
    Sealed(i64),
    /// Anything else the database said.
    #[error("the database refused: {what}")]
    Database {
        /// What it was doing.
        what: &'static str,
        /// What the database driver reported as the cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The same error for another caller.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::Missing(name) => Self::Missing(name.clone()),
            Self::Corrupt(why) => Self::Corrupt(why.clone()),
            Self::MissingObject(why) => Self::MissingObject(why.clone()),
            Self::ObjectStoreUnavailable {
                what,
                object,
                source,
            } => Self::ObjectStoreUnavailable {
                what,
                object: object.clone(),
                source: source.to_string().into(),
            },
            Self::Unavailable { what, source } => Self::Unavailable {
                what,
                source: source.to_string().into(),
            },
            Self::TooSlow { what, source } => Self::TooSlow {
                what,
                source: source.to_string().into(),
            },
            other => Self::Database {
                what: "writing together with others",
                source: report(other).into(),
            },
        }
    }
}

impl From<hindsight_logs::Damaged> for Error {
    fn from(damaged: hindsight_logs::Damaged) -> Self {
        Self::Corrupt(damaged.to_string())
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing(_) => ErrorKind::Missing,
            Self::Exists(_) => ErrorKind::Exists,
            Self::Stale { .. }
            | Self::OutOfSequence { .. }
            | Self::OtherLine(_)
            | Self::Sealed(_) => ErrorKind::StaleEtag,
            Self::Unavailable { .. } | Self::ObjectStoreUnavailable { .. } => {
                ErrorKind::Unavailable
            }
            Self::TooSlow { .. } => ErrorKind::Timeout,
            Self::MissingObject(_) => ErrorKind::Lost,
            Self::Expired => ErrorKind::Expired,
            Self::Groups(_) => ErrorKind::Exhausted,
            Self::Corrupt(_) | Self::Incompatible(_) | Self::Database { .. } => ErrorKind::Internal,
        }
    }
}
