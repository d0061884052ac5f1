//! Where values came from.

use std::collections::BTreeMap;

use crate::{Origin, Secret};

/// Where values came from, and the variables that are passed on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    pub(crate) origins: BTreeMap<&'static str, Origin>,
    pub(crate) passed: BTreeMap<String, Secret>,
}

impl Given {
    /// Where the value of `key` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }

    /// The variables that begin as [`Program::passed`] says.
    #[must_use]
    pub fn passed(&self) -> &BTreeMap<String, Secret> {
        &self.passed
    }
}
