//! Measuring many rows: what makes a group, what is added up, and how exact it is.
//!
//! Engines add up what they can by themselves and hand over [`Sums`]; a [`Tally`] merges them,
//! whoever made them and in whatever order, so that the same rows give the same answer on every
//! engine. Nothing here reads a row or a database.

mod calendar;
mod samples;
mod sums;

pub use calendar::{Calendar, Unit};
pub use samples::{EXACT, RELATIVE_ERROR, Samples};
pub use sums::{
    Amount, DAY, Depth, Group, MAX_GROUPS, MAX_SAMPLES, Shape, Sums, Tally, TooManyGroups,
};

/// What the rows of a group share. Ordered so that answers without an order are stable: nothing
/// first, then by kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The rows lack it.
    Missing,
    /// A value of JSON that is `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// A number that is not whole, as the shortest text that reads back as it.
    Decimal(String),
    /// A text, compared by its bytes.
    Text(String),
    /// A time, or the start of a bucket of the calendar, in microseconds since 1970.
    Time(i64),
}

#[cfg(test)]
mod tests;
