//! The feed of changes: which records were inserted or replaced, in an order that holds on every
//! server of a database.
//!
//! A feed is read from a position on. A record that changed several times since is given once, as it
//! is stored at the moment of the read; its next change is given after that, and no state twice.

use super::RecordColumns;

/// A place between two changes of a feed. Later places are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition {
    /// The number of the transaction that wrote the change before this place.
    pub transaction: i64,
    /// Which of the records that it wrote; [`i64::MAX`] after the last of them.
    pub row: i64,
}

impl FeedPosition {
    /// The place after everything that a transaction wrote.
    #[must_use]
    pub const fn after(transaction: i64) -> Self {
        Self {
            transaction,
            row: i64::MAX,
        }
    }
}

/// A record that was inserted or replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedRecord {
    /// The place after this change.
    pub position: FeedPosition,
    /// The record as it is stored, with the columns of its payload.
    pub columns: RecordColumns,
}

/// A part of a feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedPage {
    /// Changes in the order of their positions.
    pub changes: Vec<ChangedRecord>,
    /// The place where the next page begins; changes up to it are in this page, were superseded by
    /// later ones, or are of records that were deleted.
    pub end: FeedPosition,
    /// Whether there were changes after `end` when the page was read.
    pub more: bool,
}
