//! The log of writes and deletes.

use std::path::PathBuf;

use hindsight_config::{BadValue, Value};

/// Where writes and deletes are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditLog {
    /// Writes and deletes are not logged.
    Off,
    /// They are written to standard output, a line for each.
    Stdout,
    /// At the end of a file.
    File(PathBuf),
}

impl Value for AuditLog {
    const WORD: &'static str = "PLACE";

    fn read(text: &str) -> Result<Self, BadValue> {
        Ok(match text {
            "off" => Self::Off,
            "stdout" => Self::Stdout,
            path => Self::File(PathBuf::read(path)?),
        })
    }

    fn show(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Stdout => "stdout".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}
