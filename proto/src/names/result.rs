//! The name of a result.

use std::{fmt, str::FromStr};

use super::{Parent, ParseNameError, segment};

pub(super) const WHAT: &str = "result name";
pub(super) const WANT: &str = "<parent>/results/<result>";

/// The full name of a result: `<parent>/results/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultName {
    parent: Parent,
    id: String,
}

impl ResultName {
    /// Names the result `id` under `parent`.
    ///
    /// # Errors
    /// If `id` is not a legal id.
    pub fn new(parent: Parent, id: &str) -> Result<Self, ParseNameError> {
        segment(id).map_err(|why| ParseNameError::new(id, WHAT, WANT, why))?;
        Ok(Self {
            parent,
            id: id.to_owned(),
        })
    }

    /// The tenant it belongs to.
    pub fn parent(&self) -> &Parent {
        &self.parent
    }

    /// The last part of the name.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl FromStr for ResultName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &str| ParseNameError::new(text, WHAT, WANT, why);
        let (parent, id) = text
            .rsplit_once("/results/")
            .ok_or_else(|| refuse("it has no `/results/`"))?;
        let parent = parent.parse().map_err(|e: ParseNameError| refuse(&e.why))?;
        segment(id).map_err(|why| refuse(&why))?;
        Ok(Self {
            parent,
            id: id.to_owned(),
        })
    }
}

impl fmt::Display for ResultName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/results/{}", self.parent, self.id)
    }
}
