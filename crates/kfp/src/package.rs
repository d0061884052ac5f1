//! Files that are uploaded or downloaded as the text of the pipeline in them: YAML and JSON by their names, zip and
//! tar.gz by how they begin. Nothing is unpacked to disk, and every size is bounded.

mod tar;
#[cfg(test)]
mod tests;
mod zip;

use std::{borrow::Cow, io::Read};

/// Most bytes of a file, and of the text in it.
pub const LARGEST: usize = 32 << 20;

/// Most entries of an archive.
const MAX_ENTRIES: usize = 1000;

/// Longest name of an entry.
const LONGEST_NAME: usize = 1024;

/// The entry that is taken wherever it stands.
const PREFERRED: &str = "pipeline.yaml";

/// How refusals begin, in the words of Kubeflow.
const UNEXPECTED: &str = "Unexpected pipeline file format. Support";
pub(crate) const TOO_LARGE: &str = "File size too large";
const UNREAD: &str = "Failed to read a pipeline spec file";

/// Why there is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Neither the name nor the content tells what it is.
    #[error("{} .zip, .tar.gz, .json or YAML; got {0}", UNEXPECTED)]
    Format(String),
    /// The file, or what is in it, is too large.
    #[error("{} ({0} bytes). Maximum supported size: {LARGEST}. {1}", TOO_LARGE)]
    TooLarge(String, &'static str),
    /// The archive is broken, or holds what it should not.
    #[error("{}: {0}", UNREAD)]
    Archive(String),
}

/// The text in a file of this name.
///
/// # Errors
/// If the file or the text has more than [`LARGEST`] bytes, is of another kind, or the archive has no pipeline, too
/// many entries, or one whose name leads out of it.
pub fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
    check_size(bytes.len())?;
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    if extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json")) {
        return Ok(Cow::Borrowed(bytes));
    }
    match bytes {
        [b'P', b'K', ..] => zip::text(bytes).map(Cow::Owned),
        [0x1f, 0x8b, ..] => tar::text(bytes).map(Cow::Owned),
        _ => Err(Error::Format(shown(name))),
    }
}

/// Whether a file may have so many bytes.
///
/// # Errors
/// [`Error::TooLarge`] if not.
pub fn check_size(bytes: usize) -> Result<(), Error> {
    match bytes > LARGEST {
        true => Err(Error::TooLarge(bytes.to_string(), "Upload a smaller file")),
        false => Ok(()),
    }
}

fn archive(why: impl std::fmt::Display) -> Error {
    Error::Archive(why.to_string())
}

/// A name in an error.
fn shown(name: &str) -> String {
    let name: String = name.chars().take(100).collect();
    format!("`{}`", name.escape_debug())
}

/// The name of an entry without `./`. Names that lead out of the archive are refused, though nothing is unpacked.
fn entry_name(name: &str) -> Result<&str, Error> {
    let refused = |why| archive(format_args!("the entry {} {why}", shown(name)));
    if name.len() > LONGEST_NAME {
        return Err(refused("has too long a name"));
    }
    if name.contains(['\\', '\0', ':']) || name.starts_with('/') {
        return Err(refused("has a name that is not a relative path"));
    }
    if name.split('/').any(|part| part == "..") {
        return Err(refused("leads out of the archive"));
    }
    Ok(name.strip_prefix("./").unwrap_or(name))
}

/// Which entry is taken, while names are read in their order.
#[derive(Default)]
struct Choice {
    first: Option<String>,
    read: usize,
}

impl Choice {
    /// Whether the entry of this name may be the one: the first, or one that is always taken.
    fn is_candidate(&mut self, name: &str) -> Result<bool, Error> {
        self.read += 1;
        if self.read > MAX_ENTRIES {
            return Err(archive(format_args!("more than {MAX_ENTRIES} entries")));
        }
        let is_first = self.first.is_none();
        if is_first {
            self.first = Some(name.to_owned());
        }
        Ok(name == PREFERRED || (is_first && is_yaml(name)))
    }

    /// Why there is no candidate.
    fn nothing(&self) -> Error {
        match &self.first {
            None => archive("the archive has no files"),
            Some(first) => archive(format_args!(
                "the archive has no {PREFERRED}, and its first file is {}; want one that ends in .yaml or .yml",
                shown(first)
            )),
        }
    }
}

fn is_yaml(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml"))
}

/// Reads what an entry holds.
fn content(entry: impl Read) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    entry
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut text)
        .map_err(archive)?;
    match text.len() > LARGEST {
        true => {
            let size = format!("more than {LARGEST}");
            Err(Error::TooLarge(
                size,
                "The file in the archive counts as it is once unpacked",
            ))
        }
        false => Ok(text),
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        Self::invalid(error.to_string())
    }
}
