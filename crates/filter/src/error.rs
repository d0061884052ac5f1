//! What can be wrong with a filter, told by the place and with the remedy.

use std::fmt;

use super::limits::{MAX_CHARS, MAX_DEPTH, MAX_NODES, MAX_STEPS};

/// Why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is too long to read.
    #[error("filter of {chars} characters: at most {MAX_CHARS} are read; shorten its lists")]
    TooLong {
        /// How long it is.
        chars: usize,
    },
    /// Its parts are nested too deep.
    #[error("filter {place}: nested more than {MAX_DEPTH} deep; write it as several filters")]
    TooDeep {
        /// Where the limit was passed.
        place: Place,
    },
    /// It has too many parts.
    #[error("filter with more than {MAX_NODES} parts; shorten its lists")]
    TooManyParts,
    /// It is not written in the language.
    #[error("filter {place}: {what}")]
    Syntax {
        /// Where it stops making sense.
        place: Place,
        /// What was read and what is wanted.
        what: String,
    },
    /// It is well written, but a name, a type or a constant makes no sense.
    #[error("filter {place}: {what}")]
    Meaning {
        /// Where the offending part is.
        place: Place,
        /// What is wrong and what would work.
        what: String,
    },
    /// It costs too much before a row is read.
    #[error("filter {place}: {what}")]
    TooCostly {
        /// Which part passed the limit.
        place: Place,
        /// The limit, and what would work.
        what: String,
    },
    /// It is no selector.
    #[error("{which} {place}: {what}")]
    Selector {
        /// Which of the two kinds.
        which: &'static str,
        /// Where the offending part is.
        place: Place,
        /// What is wrong and what would work.
        what: String,
    },
}

impl FilterError {
    /// Where it is wrong, if it is at one place.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::TooLong { .. } | Self::TooManyParts => None,
            Self::TooDeep { place }
            | Self::Syntax { place, .. }
            | Self::Meaning { place, .. }
            | Self::TooCostly { place, .. }
            | Self::Selector { place, .. } => Some(*place),
        }
    }
}

/// A place in a filter's text, counted in characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line; told only if it is not the first.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
}

impl Place {
    /// The place of the byte `at` of `text`; its end if there is no such byte.
    pub(super) fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            1 => write!(f, "column {}", self.column),
            line => write!(f, "line {line} column {}", self.column),
        }
    }
}

/// A finding at a byte of the text, before the text is at hand to count columns.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) what: String,
    /// It is not wrong, but too much.
    pub(super) costly: bool,
}

impl Problem {
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
            costly: false,
        }
    }

    pub(super) fn costly(at: usize, what: impl Into<String>) -> Self {
        Self {
            costly: true,
            ..Self::new(at, what)
        }
    }

    pub(super) fn in_meaning(self, text: &str) -> FilterError {
        let place = Place::of(text, self.at);
        match self.costly {
            true => FilterError::TooCostly {
                place,
                what: self.what,
            },
            false => FilterError::Meaning {
                place,
                what: self.what,
            },
        }
    }
}

/// Why a part of a filter has no value on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    Unknown,
    Budget,
}

/// Why a row could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// One row took too much work.
    #[error(
        "filter took more than {MAX_STEPS} steps on one row; test fewer elements, or name the field \
         instead of searching for it"
    )]
    Budget,
    /// Nobody waits for the answer any more.
    #[error("the filter was given up because its request ended")]
    Cancelled,
}
