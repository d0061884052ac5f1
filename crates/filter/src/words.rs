//! What people type into a search box or on a command line, as a filter of records.
//!
//! `failed pipeline:release took>10m since:24h label:team=web` is short for CEL. Words are joined
//! by *and*, values between commas by *or*; `-` or `not:` before a word excludes what it selects.
//! Every word becomes tests that stores answer from columns, so that no payload is read.
//!
//! A text is CEL instead if it begins with `cel:`, or if `==`, `!=`, `&&`, `||`, `(` or `[` is in
//! it outside of quotes. No word has one of these there. What is neither is an error that says
//! how to write it.

mod error;
mod kind;
mod lex;
mod meaning;
mod status;
mod test;
mod time;

use jiff::{Timestamp, tz::TimeZone};

pub use self::error::WordsError;
use self::{lex::Lexer, meaning::Meaning};

#[cfg(test)]
mod tests;

/// Longest text that is read as words, in bytes.
pub const MAX_BYTES: usize = 4_096;
/// Most words of a text.
pub const MAX_WORDS: usize = 32;
/// Most values of all words together, so that stores answer every test.
pub const MAX_VALUES: usize = 128;

/// What begins a text that is CEL whatever is in it.
const CEL: &str = "cel:";
/// What makes a text CEL.
const MARKS: [&str; 6] = ["==", "!=", "&&", "||", "(", "["];

/// When and where a text is read, which gives `since:24h` and `since:2026-03-02` their meaning.
#[derive(Debug, Clone)]
pub struct Now {
    /// The present time.
    pub time: Timestamp,
    /// The zone of dates and of times without an offset.
    pub zone: TimeZone,
}

/// A text as a filter of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The filter in CEL; empty if the text is. What was CEL is not checked.
    pub cel: String,
    /// Why the text was taken for CEL; none if it is words.
    pub mark: Option<Mark>,
}

/// What made a text CEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The mark itself, such as `==`.
    pub text: &'static str,
    /// Where it begins in the text, in bytes.
    pub at: usize,
}

/// Reads `text`, which is words or CEL. Fails with the first word that has no meaning.
pub fn read(text: &str, now: &Now) -> Result<Query, WordsError> {
    if let Some(mark) = mark(text) {
        let cel = text.trim();
        return Ok(Query {
            cel: cel.strip_prefix(CEL).unwrap_or(cel).trim().to_owned(),
            mark: Some(mark),
        });
    }
    if text.len() > MAX_BYTES {
        let what = format!(
            "{} bytes, at most {MAX_BYTES} are read; write a long filter in CEL, after `{CEL}`",
            text.len()
        );
        return Err(WordsError::new(text, 0..0, what));
    }
    let mut meaning = Meaning::new(now);
    for word in Lexer::new(text) {
        let word = word.map_err(|fault| fault.of(text))?;
        meaning.add(&word).map_err(|fault| fault.of(text))?;
    }
    Ok(Query {
        cel: meaning.cel(),
        mark: None,
    })
}

/// A text as a string of CEL, which JSON's strings are: no text ends the literal.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text as one value of a word: in quotes, unless it stands for itself without them.
pub fn value(text: &str) -> String {
    shielded(text, !text.is_empty() && text.chars().all(is_plain))
}

/// What the flag of a command takes as the values of a word, such as `a,b*`: as they are, or in quotes as one
/// value if something in them would end the word or mark CEL.
pub fn values(text: &str) -> String {
    let is_plain = |c| is_plain(c) || matches!(c, '*' | ',');
    shielded(text, text.chars().all(is_plain))
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "._-/:+@".contains(c)
}

fn shielded(text: &str, is_plain: bool) -> String {
    if is_plain {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// The first mark outside of quotes.
fn mark(text: &str) -> Option<Mark> {
    let blanks = text.len() - text.trim_start().len();
    if text[blanks..].starts_with(CEL) {
        return Some(Mark {
            text: CEL,
            at: blanks,
        });
    }
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, _) => {
                let mark = MARKS.into_iter().find(|mark| text[at..].starts_with(mark));
                if let Some(text) = mark {
                    return Some(Mark { text, at });
                }
            }
        }
    }
    None
}
