//! What rows are asked for, and where they are.

use std::ops::Range;

use jiff::Timestamp;

/// A test that rows must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// The text in the column of this name.
    Is(&'static str, String),
    /// A label with this key and value.
    Label(String, String),
    /// The time in the column of this name, from the first up to but without the second.
    Within(&'static str, Range<Timestamp>),
}

/// Where a row of a file stands: its row group, and its number within that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When the record was stored first, so that places are in the order of time.
    pub create_time: Timestamp,
    pub(crate) group: usize,
    pub(crate) row: usize,
}

/// The rows that pass, and what that took.
#[derive(Debug, Default)]
pub struct Found {
    /// Where the rows are, in the order of the file.
    pub places: Vec<Place>,
    /// Row groups whose columns were read; statistics and Bloom filters excluded the others.
    pub groups_read: usize,
}
