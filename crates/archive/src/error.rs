//! Why a file cannot be written or read.

use parquet::errors::ParquetError;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no Parquet file, it is damaged, or it cannot be reached.
    #[error("it cannot be read or written as Parquet")]
    Parquet(#[from] ParquetError),
    /// It is damaged, so that it cannot be decoded.
    #[error("it is damaged")]
    Damaged,
    /// It is a Parquet file of something else.
    #[error(
        "it has no `{}` among its metadata, so it was not written by hindsight",
        crate::VERSION_KEY
    )]
    Foreign,
    /// It was written by a later release.
    #[error(
        "its columns are of version {0}, of which this release knows up to {known}; read it with the \
         release that wrote it, or a later one",
        known = crate::VERSION
    )]
    Version(String),
    /// A column is not what this version says.
    #[error("its column `{column}` {why}")]
    Column {
        /// The path of the column in the schema of the file.
        column: String,
        /// What is wrong, as the end of a sentence.
        why: String,
    },
    /// A value is not what was written.
    #[error("record `{record}`: {why}")]
    Corrupt {
        /// Name of the record, or its place in the file.
        record: String,
        /// What is wrong with it.
        why: String,
    },
    /// The rows are not those that were written.
    #[error("its rows add up to `{found}`, where `{written}` was written")]
    Tally {
        /// The tally of what was read.
        found: String,
        /// The tally in its metadata.
        written: String,
    },
}
