//! Files that say how far an import or an export is, so that it goes on where it was interrupted.

use std::{
    fmt::Display,
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use hindsight_run::json;
use serde_json::Value;

use super::failure::Failure;

/// What the file at `path` holds; none if there is no file. Fails if it cannot be read or is no JSON.
pub(super) fn read(path: &Path) -> Result<Option<Value>, Failure> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| no_cursor(path, &error))?,
    };
    let value = json::parse(&text).map_err(|error| no_cursor(path, &error))?;
    Ok(Some(value))
}

/// The failure of a file that is something else.
pub(super) fn no_cursor(path: &Path, why: &dyn Display) -> Failure {
    Failure::usage(format!("`{}` is not a cursor: {why}", path.display()))
}

/// Writes the file, all of it or nothing.
pub(super) fn write(path: &Path, text: &dyn Display) -> Result<(), Failure> {
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
