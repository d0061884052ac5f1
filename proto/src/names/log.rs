//! The name of a log.

use std::{fmt, str::FromStr};

use super::{ParseNameError, RecordName};

const WHAT: &str = "log name";
const WANT: &str = "<parent>/results/<result>/logs/<record>";

/// The full name of a log: `<parent>/results/<id>/logs/<id>`. The last part is the id of the record of its
/// run, or of the record that tells of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogName(RecordName);

impl LogName {
    /// The record with the same last part.
    pub fn record(&self) -> &RecordName {
        &self.0
    }
}

impl From<RecordName> for LogName {
    fn from(record: RecordName) -> Self {
        Self(record)
    }
}

impl FromStr for LogName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &str| ParseNameError::new(text, WHAT, WANT, why);
        let (result, id) = text
            .rsplit_once("/logs/")
            .ok_or_else(|| refuse("it has no `/logs/`"))?;
        let record = format!("{result}/records/{id}").parse::<RecordName>();
        record.map(Self).map_err(|error| refuse(&error.why))
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/logs/{}", self.0.result(), self.0.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_named_beside_the_record_of_its_run() {
        let name: LogName = "a/b/results/r/logs/x".parse().unwrap();
        assert_eq!(name.to_string(), "a/b/results/r/logs/x");
        assert_eq!(name.record().to_string(), "a/b/results/r/records/x");
        for bad in [
            "",
            "a/results/r/records/x",
            "a/results/r/logs/..",
            "a/results/r/logs/-",
            "a/logs/x",
        ] {
            let error = bad.parse::<LogName>().unwrap_err().to_string();
            assert!(error.contains(WANT), "{error}");
        }
    }
}
