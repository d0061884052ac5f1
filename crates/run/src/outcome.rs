//! How a run ended.

/// How a run ended. The numbers are those of `RecordSummary.Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum Outcome {
    /// Not finished, or not known.
    Unknown = 0,
    /// It did what it should.
    Success = 1,
    /// It ended without doing what it should.
    Failure = 2,
    /// It ran out of time.
    Timeout = 3,
    /// It was stopped by a user.
    Cancelled = 4,
}
