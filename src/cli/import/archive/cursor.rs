//! How far an import is, in a file, so that it goes on where it was interrupted.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::{cursor, failure::Failure};

/// How far an import is; without a file it is not kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    file: Option<PathBuf>,
    /// What is imported; an import of something else does not go on from here.
    import: String,
    /// The key of the last row of which all before are stored.
    pub(super) after: Option<String>,
    pub(super) done: bool,
}

impl Cursor {
    /// What the file says, or the beginning if there is none. It fails if the file is something else.
    pub(super) fn open(file: Option<&Path>, import: &str) -> Result<Self, Failure> {
        let mut cursor = Self {
            file: file.map(Path::to_owned),
            import: import.to_owned(),
            after: None,
            done: false,
        };
        let Some(path) = file else { return Ok(cursor) };
        let Some(value) = cursor::read(path)? else {
            return Ok(cursor);
        };
        let said = |why: &str| cursor::no_cursor(path, &why);
        let other = value.get("import").and_then(Value::as_str);
        match other.ok_or_else(|| said("it names no import"))? {
            other if other == import => {}
            other => return Err(said(&format!("it is that of an import of {other}"))),
        }
        cursor.after = value
            .get("after")
            .and_then(Value::as_str)
            .map(str::to_owned);
        cursor.done = value.get("done") == Some(&Value::Bool(true));
        Ok(cursor)
    }

    /// Notes that all rows up to this key are stored.
    pub(super) fn reach(&mut self, after: String) -> Result<(), Failure> {
        self.after = Some(after);
        self.save()
    }

    /// Notes that nothing is left.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.done = true;
        self.save()
    }

    fn save(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let text = json!({"import": self.import, "after": self.after, "done": self.done});
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
        let mut cursor = Cursor::open(Some(&path), "Argo").unwrap();
        assert_eq!((cursor.after.as_deref(), cursor.done), (None, false));
        cursor.reach("k".to_owned()).unwrap();
        assert_eq!(Cursor::open(Some(&path), "Argo").unwrap(), cursor);
        cursor.end().unwrap();
        assert!(Cursor::open(Some(&path), "Argo").unwrap().done);
        let why = Cursor::open(Some(&path), "KubeArchive").unwrap_err();
        assert!(why.to_string().contains("an import of Argo"), "{why}");
        std::fs::write(&path, "{}").unwrap();
        let why = Cursor::open(Some(&path), "Argo").unwrap_err();
        assert!(why.to_string().contains("names no import"), "{why}");
    }
}
