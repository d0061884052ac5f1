//! The key of page tokens.

use hindsight_config::{BadValue, Kind, Secret, Value};

/// Fewest characters of a key.
const LEAST: usize = 32;

/// A key of page tokens that is long enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTokenKey(Secret);

impl PageTokenKey {
    /// The key itself. Do not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl Value for PageTokenKey {
    const WORD: &'static str = "SECRET";
    const KIND: Kind = Kind::Secret;

    /// The text of a refusal never holds the key.
    fn read(text: &str) -> Result<Self, BadValue> {
        let length = text.chars().count();
        if length < LEAST {
            return Err(BadValue::new(format!(
                "the key has {length} characters; want at least {LEAST}, as `openssl rand -hex 32` \
                 makes them"
            )));
        }
        Ok(Self(Secret::new(text)))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}
