//! Etags.

use std::fmt;

use jiff::Timestamp;

/// The version of a resource: `<uid>-<update time in ns>` when the server makes it, opaque when
/// it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Etag(String);

impl Etag {
    /// The etag of the version of `uid` that was stored at `updated`.
    pub fn new(uid: &str, updated: Timestamp) -> Self {
        Self(format!("{uid}-{}", updated.as_nanosecond()))
    }

    /// An etag that somebody sent, or that was stored.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The etag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
