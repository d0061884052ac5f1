//! Where a record is kept.

/// The tier that a record is kept in. Results are in the database whatever the tier of their records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// The database.
    Hot,
    /// A file of the archive.
    Cold,
}

impl Tier {
    /// As filters write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}
