//! Versions of objects, kept without an allocation of their own where they are numbers, as those
//! of the API server are.

use std::fmt;

/// A `resourceVersion`. Equal if and only if the texts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// A number, written without anything that it does not need.
    Number(u64),
    /// Any other text, kept as it is.
    Text(Box<str>),
}

impl Version {
    /// The number, by which versions of one cluster are in order. A text that is none is older than all.
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.parse().unwrap_or_default(),
        }
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        let is_plain = text == "0" || !text.starts_with(['0', '+']);
        match text.parse() {
            Ok(number) if is_plain => Self::Number(number),
            _ => Self::Text(text.into()),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn a_version_is_the_text_that_it_was_made_of() {
        for text in [
            "",
            "0",
            "7",
            "00",
            "07",
            "+7",
            "-7",
            "1e3",
            " 7",
            "18446744073709551615",
            "18446744073709551616",
            "rv-9",
        ] {
            assert_eq!(Version::from(text).to_string(), text);
        }
        assert_ne!(Version::from("7"), Version::from("07"));
        assert!(matches!(Version::from("481516"), Version::Number(481_516)));
    }
}
