//! Patterns of what must not be stored in logs.

use hindsight_config::{BadValue, Value};
use hindsight_logs::Redaction;

/// Regular expressions of texts that are not stored, in the syntax RE2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redactions(Vec<String>);

impl Redactions {
    /// The expressions, as they are applied.
    pub fn compiled(&self) -> Redaction {
        // Each was compiled when it was read.
        Redaction::new(&self.0).unwrap_or_default()
    }
}

impl Value for Redactions {
    const WORD: &'static str = "PATTERNS";

    fn read(text: &str) -> Result<Self, BadValue> {
        // A comma may be part of an expression, so one is a line, or what is between two spaces.
        let patterns: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        let problem = |why: String| BadValue::not_valid(text, "list of regular expressions", &why);
        if patterns.is_empty() {
            return Err(problem(
                "one expression or more, with spaces between them".to_owned(),
            ));
        }
        match Redaction::new(&patterns) {
            Ok(_) => Ok(Self(patterns)),
            Err(wrong) => Err(problem(format!("each in the syntax RE2; one {wrong}"))),
        }
    }

    fn show(&self) -> String {
        self.0.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_compiled_when_they_are_read() {
        let read = Redactions::read(r"gh[ps]_\w{36}  (?i)password=\S+").unwrap();
        assert_eq!(read.show(), r"gh[ps]_\w{36} (?i)password=\S+");
        assert!(!read.compiled().is_empty());
        for bad in ["", "  ", "(", "a{999999}"] {
            assert!(Redactions::read(bad).is_err(), "{bad}");
        }
    }
}
