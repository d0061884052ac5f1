//! How a store would answer a list, for people who ask why it is slow.

/// How a store would answer a list. Nothing is listed to find out, but rows may be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the database says that it would do, in its own words.
    pub steps: Vec<String>,
    /// The indexes that it would use, each once.
    pub indexes: Vec<String>,
    /// How many rows the condition accepts.
    pub rows: Estimate,
    /// What the database thinks that the first page costs, in units of its own.
    pub cost: Option<f64>,
}

/// A number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// All matching rows were counted.
    Exactly(u64),
    /// Counting stopped here, at the limit that the caller gave.
    AtLeast(u64),
    /// About so many, as the database guesses from its statistics.
    About(u64),
}

impl Estimate {
    /// The number, whether it is exact, a bound or a guess.
    pub fn rows(self) -> u64 {
        match self {
            Self::Exactly(rows) | Self::AtLeast(rows) | Self::About(rows) => rows,
        }
    }
}
