//! Where writes and deletes are told.

use std::path::PathBuf;

use super::{problem::BadValue, value::Value};

/// Where writes and deletes are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditLog {
    /// Nowhere.
    Off,
    /// On standard output.
    Stdout,
    /// At the end of a file.
    File(PathBuf),
}

impl Value for AuditLog {
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
