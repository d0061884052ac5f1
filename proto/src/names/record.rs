//! The name of a record.

use std::{fmt, str::FromStr};

use super::{ParseNameError, ResultName, segment};

const WHAT: &str = "record name";
const WANT: &str = "<parent>/results/<result>/records/<record>";

/// The full name of a record: `<parent>/results/<id>/records/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName {
    result: ResultName,
    id: String,
}

impl RecordName {
    /// Names the record `id` of `result`.
    ///
    /// # Errors
    /// If `id` is not a legal id.
    pub fn new(result: ResultName, id: &str) -> Result<Self, ParseNameError> {
        segment(id).map_err(|why| ParseNameError::new(id, WHAT, WANT, why))?;
        Ok(Self {
            result,
            id: id.to_owned(),
        })
    }

    /// The result it belongs to.
    pub fn result(&self) -> &ResultName {
        &self.result
    }

    /// The last part of the name.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl ResultName {
    /// Names a record of this result.
    ///
    /// # Errors
    /// If `id` is not a legal id.
    pub fn record(&self, id: &str) -> Result<RecordName, ParseNameError> {
        RecordName::new(self.clone(), id)
    }
}

impl FromStr for RecordName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &str| ParseNameError::new(text, WHAT, WANT, why);
        let (result, id) = text
            .rsplit_once("/records/")
            .ok_or_else(|| refuse("it has no `/records/`"))?;
        let result = result.parse().map_err(|e: ParseNameError| refuse(&e.why))?;
        segment(id).map_err(|why| refuse(&why))?;
        Ok(Self {
            result,
            id: id.to_owned(),
        })
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/records/{}", self.result, self.id)
    }
}
