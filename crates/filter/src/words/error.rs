//! What can be wrong with a word.

use std::{fmt, ops::Range};

use crate::error::Place;

/// Longest part of a word that an error repeats, in characters.
const MAX_SHOWN: usize = 60;

/// Why a text is not words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct WordsError {
    /// Where the offending part begins, in bytes of the text.
    pub at: usize,
    /// The offending part, cut if it is long.
    pub word: String,
    /// What is wrong with it, and how to write it.
    pub what: String,
    /// Its place in the text, in characters.
    pub place: Place,
}

impl WordsError {
    pub(super) fn new(text: &str, part: Range<usize>, what: String) -> Self {
        let word = text.get(part.clone()).unwrap_or_default();
        Self {
            at: part.start,
            word: word.chars().take(MAX_SHOWN).collect(),
            what,
            place: Place::of(text, part.start),
        }
    }
}

impl fmt::Display for WordsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query {}: {}", self.place, self.what)
    }
}

/// A finding at a part of the text, which is not at hand.
#[derive(Debug)]
pub(super) struct Fault {
    part: Range<usize>,
    what: String,
}

impl Fault {
    pub(super) fn new(part: Range<usize>, what: impl Into<String>) -> Self {
        Self {
            part,
            what: what.into(),
        }
    }

    pub(super) fn of(self, text: &str) -> WordsError {
        WordsError::new(text, self.part, self.what)
    }
}

/// A part of a text as an error repeats it.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
