//! Records in Parquet files, as docs/archive.md describes them.
//!
//! A row is a record with its payload and the result that it belongs to, so that a file is read without any
//! other. [`Writer`] gathers rows into row groups, [`Reader`] finds rows by the statistics and Bloom filters of
//! row groups and reads payloads of those alone that were found, and [`Tally`] shows that a file has the rows
//! that were given to its writer.

mod cells;
mod columns;
mod error;
mod partition;
mod query;
mod reader;
mod row;
mod source;
mod table;
mod tally;
mod writer;

pub use self::{
    error::Error,
    partition::Partition,
    query::{Found, Place},
    reader::{Footer, Payloads, Reader},
    row::{Row, Stored},
    source::Source,
    table::{CellValue, ColumnInfo, ColumnType, RowValues, columns},
    tally::Tally,
    writer::{Limits, Writer},
};

/// The key of the metadata of a file that has the version of its columns.
pub const VERSION_KEY: &str = "hindsight.archive.version";
/// The version of the columns that are written. Columns that are added do not change it.
pub const VERSION: u32 = 1;
/// The key of the metadata of a file that has its [`Tally`].
pub const TALLY_KEY: &str = "hindsight.archive.tally";
/// What a Parquet file begins with.
pub const MAGIC: &[u8; 4] = b"PAR1";
