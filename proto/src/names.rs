//! Names of resources, as types: what text may name a parent, a result or a record, and
//! which patterns a list may ask for.
//!
//! A name is parsed once, on arrival. `-` is a wildcard and therefore never a name.
//!
//! Grammar (a superset of what Tekton Results accepts):
//!
//! ```text
//! parent  = segment *( "/" segment )      not containing the segments `results` or `records`
//! result  = parent "/results/" id
//! record  = result "/records/" id
//! log     = result "/logs/" id
//! segment = id = 1 to 63 of A-Z a-z 0-9 . _ ~ -     but not "-", "." or ".."
//! ```

mod log;
mod parent;
mod pattern;
mod record;
mod result;

pub use log::LogName;
pub use parent::Parent;
pub use pattern::{ParentPattern, ResultPattern};
pub use record::RecordName;
pub use result::ResultName;

/// Which of the two resources a list, a filter or an order is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Results, which are named `<parent>/results/<id>`.
    Results,
    /// Records, which are named `<result>/records/<id>`.
    Records,
}

/// Longest segment or id, in bytes.
pub const MAX_SEGMENT: usize = 63;

/// Most segments a parent may have.
pub const MAX_PARENT_SEGMENTS: usize = 8;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {what}: {why}; want `{want}`")]
pub struct ParseNameError {
    given: String,
    what: &'static str,
    want: &'static str,
    why: String,
}

impl ParseNameError {
    fn new(given: &str, what: &'static str, want: &'static str, why: impl Into<String>) -> Self {
        // A hostile name may be megabytes long; the error repeats only what identifies it.
        let mut shown: String = given.chars().take(120).collect();
        if shown.len() < given.len() {
            shown.push('…');
        }
        Self {
            given: shown,
            what,
            want,
            why: why.into(),
        }
    }
}

/// Checks one segment or id; the error says why not.
fn segment(text: &str) -> Result<(), String> {
    match text {
        "" => return Err("a part is empty".into()),
        "-" => return Err("`-` is the wildcard of lists and cannot name anything".into()),
        "." | ".." => return Err(format!("`{text}` means a folder in paths")),
        _ => {}
    }
    if text.len() > MAX_SEGMENT {
        return Err(format!(
            "a part has {} bytes, at most {MAX_SEGMENT} are allowed",
            text.len()
        ));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '-');
    match text.chars().find(|c| !allowed(*c)) {
        Some(bad) => Err(format!("it contains `{}`", bad.escape_default())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
