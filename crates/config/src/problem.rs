//! What can be wrong with a configuration, and where.

use std::fmt;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table of keys.
    Default,
    /// The file of configuration.
    File {
        /// The path, as it was given.
        path: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable, which overrides the file.
    Environment {
        /// Name of the variable.
        variable: String,
    },
    /// A flag on the command line, which overrides variables and the file.
    Flag {
        /// Name of the flag, without the dashes.
        flag: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path} line {line}"),
            Self::Environment { variable } => write!(f, "{variable} in environment"),
            Self::Flag { flag } => write!(f, "--{flag}"),
        }
    }
}

/// Why a text is not a value of its key: what was found and what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct BadValue {
    text: String,
}

impl BadValue {
    /// A complaint in words of its own.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The complaint that `text` is not a valid `what`, and what to give instead.
    #[must_use]
    pub fn not_valid(text: &str, what: &str, want: impl fmt::Display) -> Self {
        Self::new(format!("`{text}` is not a valid {what}; want {want}"))
    }
}

/// One thing that is wrong, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {text}")]
pub struct Problem {
    place: String,
    text: String,
}

impl Problem {
    /// A problem at a place that is not a key.
    #[must_use]
    pub fn at(place: impl fmt::Display, text: impl Into<String>) -> Self {
        Self {
            place: place.to_string(),
            text: text.into(),
        }
    }

    /// A problem of a value, at the place that the value came from.
    #[must_use]
    pub fn of_key(key: &str, origin: &Origin, text: impl Into<String>) -> Self {
        match origin {
            Origin::Default => Self::at(format_args!("{key} by default"), text),
            Origin::File { .. } => Self::at(format_args!("{key} in {origin}"), text),
            Origin::Environment { .. } | Origin::Flag { .. } => Self::at(origin, text),
        }
    }
}

/// Everything that is wrong, one line each. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// The value, unless there is a problem.
    ///
    /// # Errors
    /// The problems, if there are any.
    pub fn unless<T>(list: Vec<Problem>, value: T) -> Result<T, Self> {
        if list.is_empty() {
            Ok(value)
        } else {
            Err(Self { list })
        }
    }

    /// The problems, in the order of sources and keys.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.list.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
