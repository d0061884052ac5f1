//! Where rows are that were found.

/// Where a row of a file stands: its row group, and its number within that. Places are in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
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
