//! The order of a list, and a place in it.

/// What a list can be ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderField {
    /// When the server stored it first.
    CreateTime,
    /// When the server stored its last change.
    UpdateTime,
    /// `summary.start_time`; results only.
    SummaryStartTime,
    /// `summary.end_time`; results only.
    SummaryEndTime,
}

/// The order of a list. Rows without a value come last in either direction; equal values are
/// ordered by the row's id in the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Order {
    /// What to order by.
    pub field: OrderField,
    /// Largest first.
    pub descending: bool,
}

impl Order {
    /// Newest first: what a list gives unless asked otherwise.
    pub const NEWEST_FIRST: Self = Self {
        field: OrderField::CreateTime,
        descending: true,
    };
}

/// A place in an ordered list: the last row that was given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The row's value of the order field in microseconds since 1970, if it has one.
    pub key: Option<i64>,
    /// The row's id in its store.
    pub id: i64,
}
