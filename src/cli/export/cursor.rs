//! How far an export is, in a file, so that it goes on where it was interrupted.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use hindsight_run::json;
use serde::Serialize;
use serde_json::Value;

use crate::cli::failure::Failure;

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
}

impl Cursor {
    /// Reads a cursor; none if there is no file. It fails if the file is something else.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let said = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("`{}` is not a cursor: {why}", path.display()))
        };
        let text = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| said(&error))?,
        };
        let value = json::parse(&text).map_err(|error| said(&error))?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let whole = || {
            Some(Self {
                export: text("export")?,
                filter: text("filter")?,
                after: text("after")?,
                bytes: value.get("bytes")?.as_u64()?,
                done: value.get("done")?.as_bool()?,
            })
        };
        whole().map(Some).ok_or_else(|| said(&"a field is missing"))
    }

    /// Writes the cursor, all of it or nothing.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string(self).map_err(|e| Failure::other(e.to_string()))?;
        let mut next = path.as_os_str().to_owned();
        next.push(".new");
        let write = || {
            let mut file = fs::File::create(&next)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            fs::rename(&next, path)
        };
        write().map_err(|error| Failure::other(format!("`{}`: {error}", path.display())))
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
        fs::write(&path, "{\"export\": 1}").unwrap();
        let why = Cursor::read(&path).unwrap_err().to_string();
        assert!(why.contains("is not a cursor: a field is missing"), "{why}");
    }
}
