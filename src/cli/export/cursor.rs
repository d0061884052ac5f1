//! How far an export is, in a file, so that it goes on where it was interrupted.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::cli::{cursor, failure::Failure};

/// How far an export is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Cursor {
    /// What is exported; an export of something else does not go on from here.
    pub(super) export: String,
    /// The filter in CEL, with the times that words meant when the export began.
    pub(super) filter: String,
    /// Continues the list.
    pub(super) after: String,
    /// Bytes of the file that are whole, if the output is a file.
    pub(super) bytes: u64,
    pub(super) done: bool,
    /// What the names of the files of a directory begin with.
    pub(super) id: String,
    /// The number of the next of those files.
    pub(super) part: u64,
}

impl Cursor {
    /// Reads a cursor; none if there is no file. It fails if the file is something else.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let Some(value) = cursor::read(path)? else {
            return Ok(None);
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let whole = || {
            Some(Self {
                export: text("export")?,
                filter: text("filter")?,
                after: text("after")?,
                bytes: value.get("bytes")?.as_u64()?,
                done: value.get("done")?.as_bool()?,
                id: text("id").unwrap_or_default(),
                part: value
                    .get("part")
                    .and_then(Value::as_u64)
                    .unwrap_or_default(),
            })
        };
        let whole = whole().ok_or_else(|| cursor::no_cursor(path, &"a field is missing"))?;
        Ok(Some(whole))
    }

    /// Writes the cursor, all of it or nothing.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string(self).map_err(|e| Failure::other(e.to_string()))?;
        cursor::write(path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cursor");
        assert_eq!(Cursor::read(&path).unwrap(), None);
        let cursor = Cursor {
            export: "runs".to_owned(),
            after: "token".to_owned(),
            bytes: 7,
            ..Cursor::default()
        };
        cursor.save(&path).unwrap();
        assert_eq!(Cursor::read(&path).unwrap(), Some(cursor));
        std::fs::write(&path, "{\"export\": 1}").unwrap();
        let why = Cursor::read(&path).unwrap_err().to_string();
        assert!(why.contains("is not a cursor: a field is missing"), "{why}");
    }
}
