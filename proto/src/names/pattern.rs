//! What a list may ask for: an exact name, or `-` for every one.

use std::{fmt, str::FromStr};

use super::{Parent, ParseNameError, ResultName, result, segment};

/// The parents a list covers (AIP-159).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParentPattern {
    /// Every parent, written as `-`.
    Any,
    /// The one parent of this name.
    Exact(Parent),
}

impl FromStr for ParentPattern {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "-" {
            Ok(Self::Any)
        } else {
            text.parse().map(Self::Exact)
        }
    }
}

impl fmt::Display for ParentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("-"),
            Self::Exact(parent) => parent.fmt(f),
        }
    }
}

/// The results whose records a list covers; each half may be `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResultPattern {
    /// The parents whose results are covered.
    pub parent: ParentPattern,
    /// The last part of the result's name; `None` covers every result.
    pub id: Option<String>,
}

/// This result alone.
impl From<&ResultName> for ResultPattern {
    fn from(name: &ResultName) -> Self {
        Self {
            parent: ParentPattern::Exact(name.parent().clone()),
            id: Some(name.id().to_owned()),
        }
    }
}

impl FromStr for ResultPattern {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &str| ParseNameError::new(text, result::WHAT, result::WANT, why);
        let (parent, id) = text
            .rsplit_once("/results/")
            .ok_or_else(|| refuse("it has no `/results/`"))?;
        let parent = parent.parse().map_err(|e: ParseNameError| refuse(&e.why))?;
        if id == "-" {
            return Ok(Self { parent, id: None });
        }
        segment(id).map_err(|why| refuse(&why))?;
        Ok(Self {
            parent,
            id: Some(id.to_owned()),
        })
    }
}

impl fmt::Display for ResultPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/results/{}",
            self.parent,
            self.id.as_deref().unwrap_or("-")
        )
    }
}
