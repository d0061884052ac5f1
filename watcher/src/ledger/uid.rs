//! A run's UID: cheap to copy, as everything is keyed by it.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// The UID of an object: the one thing about it that is never used twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

impl Uid {
    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, not copied.
    pub fn share(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
