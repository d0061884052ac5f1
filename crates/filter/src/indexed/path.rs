//! Paths: which part of a payload an indexed path is.

use std::{fmt, str::FromStr};

use serde_json::Value as Json;

use crate::reads::Reads;

/// Longest path, in bytes.
const MAX_BYTES: usize = 512;
/// Most steps of a path.
const MAX_STEPS: usize = 16;

/// A part of a payload, as in `data.spec.params[name=="env"].value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    steps: Vec<Step>,
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// An element of an array, counted from 0.
    At(usize),
    /// Those elements of an array whose member has this text.
    Where {
        /// Name of the member in each element.
        key: String,
        /// The text that the member must equal.
        is: String,
    },
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct PathError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong, with advice.
    pub what: String,
}

const WANT: &str = "want steps such as `.spec`, `[\"odd-key\"]`, `[0]` or `[name==\"env\"]`";

impl Path {
    /// The part that these steps lead to from the payload.
    pub(crate) fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// Whether it chooses elements by a member, so that a row may have several values.
    pub(crate) fn has_where(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Where { .. }))
    }

    /// The parts of a payload.
    pub(crate) fn values<'v>(&self, body: &'v Json) -> Vec<&'v Json> {
        let mut found = vec![body];
        for step in &self.steps {
            found = match step {
                Step::Key(key) => found
                    .into_iter()
                    .filter_map(|value| value.as_object()?.get(key))
                    .collect(),
                Step::At(at) => found
                    .into_iter()
                    .filter_map(|value| value.as_array()?.get(*at))
                    .collect(),
                Step::Where { key, is } => found
                    .into_iter()
                    .filter_map(Json::as_array)
                    .flatten()
                    .filter(|item| item.get(key).and_then(Json::as_str) == Some(is))
                    .collect(),
            };
        }
        found
    }

    /// Adds what is read of a payload to find the parts.
    pub(super) fn read(&self, reads: &mut Reads) {
        let mut node = reads;
        for step in &self.steps {
            node = match step {
                Step::Key(key) => node.members.entry(key.clone()).or_default(),
                Step::At(_) => node.each.get_or_insert_default(),
                Step::Where { key, .. } => {
                    let each = node.each.get_or_insert_default();
                    each.members.entry(key.clone()).or_default().whole = true;
                    each
                }
            };
        }
        node.whole = true;
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("data")?;
        let quoted = |text: &str| Json::from(text).to_string();
        for step in &self.steps {
            match step {
                Step::Key(key) if is_word(key) => write!(f, ".{key}")?,
                Step::Key(key) => write!(f, "[{}]", quoted(key))?,
                Step::At(at) => write!(f, "[{at}]")?,
                Step::Where { key, is } => write!(f, "[{key}=={}]", quoted(is))?,
            }
        }
        Ok(())
    }
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut reader = Reader { text, at: 0 };
        if text.len() > MAX_BYTES {
            let what = format!(
                "a path has at most {MAX_BYTES} bytes, this has {}",
                text.len()
            );
            return Err(reader.error(what));
        }
        if reader.word() != "data" {
            reader.at = 0;
            let what = "a path begins with `data`, the payload of a record, as in \
                        `data.spec.params[name==\"env\"].value`";
            return Err(reader.error(what));
        }
        let mut steps = Vec::new();
        while !reader.rest().is_empty() {
            steps.push(reader.step()?);
        }
        let path = Self { steps };
        let many = |what: &str| Err(Reader { text, at: 0 }.error(what));
        match path.steps.as_slice() {
            [] => many("`data` is the whole payload; name a part of it, as in `data.spec.a`"),
            steps if steps.len() > MAX_STEPS => many("a path has at most 16 steps"),
            steps => {
                let wheres = steps.iter().filter(|s| matches!(s, Step::Where { .. }));
                match wheres.count() {
                    0 | 1 => Ok(path),
                    _ => many("a path chooses elements by a member once at most"),
                }
            }
        }
    }
}

/// How far a text is read.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, what: impl Into<String>) -> PathError {
        PathError {
            column: self.text[..self.at].chars().count() + 1,
            what: what.into(),
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn passes(&mut self, mark: &str) -> bool {
        let passes = self.rest().starts_with(mark);
        if passes {
            self.at += mark.len();
        }
        passes
    }

    fn step(&mut self) -> Result<Step, PathError> {
        if self.passes(".") {
            return match self.word() {
                word if is_word(word) => Ok(Step::Key(word.to_owned())),
                _ => Err(self.error("a name belongs after `.`; an odd one is `[\"odd-name\"]`")),
            };
        }
        if !self.passes("[") {
            return Err(self.error(WANT));
        }
        self.blanks();
        let step = match self.rest().chars().next() {
            Some('"' | '\'') => Step::Key(self.quoted()?),
            Some(c) if c.is_ascii_digit() => {
                let from = self.at;
                let number = self.word().parse();
                let number =
                    number.map_err(|_too_large| Reader { at: from, ..*self }.error(WANT))?;
                Step::At(number)
            }
            _ => self.condition()?,
        };
        self.blanks();
        if !self.passes("]") {
            return Err(self.error("a `]` belongs here"));
        }
        Ok(step)
    }

    fn condition(&mut self) -> Result<Step, PathError> {
        let key = self.word().to_owned();
        if !is_word(&key) {
            return Err(self.error(WANT));
        }
        self.blanks();
        if !self.passes("==") {
            let what = "elements are chosen by a text that a member has, as in `[name==\"env\"]`";
            return Err(self.error(what));
        }
        self.blanks();
        let is = self.quoted()?;
        Ok(Step::Where { key, is })
    }

    fn blanks(&mut self) {
        while self.passes(" ") {}
    }

    /// A text in double quotes, with JSON's escapes, or in single ones, with none.
    fn quoted(&mut self) -> Result<String, PathError> {
        let rest = self.rest();
        if let Some(text) = rest.strip_prefix('\'') {
            let Some(end) = text.find('\'') else {
                return Err(self.error("this text has no end"));
            };
            self.at += end + 2;
            return Ok(text[..end].to_owned());
        }
        let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        match texts.next() {
            Some(Ok(text)) => {
                self.at += texts.byte_offset();
                Ok(text)
            }
            _ => Err(self.error("a text in quotes belongs here, as in `\"env\"`")),
        }
    }
}
