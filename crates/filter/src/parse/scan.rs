//! A look over the text before it is parsed, because the parser recurses along chains such as
//! `a + a + a` and `a.b.c` as well as into brackets, and a text must not decide how deep.
//!
//! The scan finds the ends of texts and comments by the same rules as the parser's lexer. Where
//! the two might disagree it refuses, so that nothing can hide from the count.

use std::{iter::Peekable, str::CharIndices};

use crate::{
    error::{FilterError, Place},
    limits::MAX_DEPTH,
};

/// Refuses texts that would make the parser recurse too deep, and those with a text that does
/// not end. Otherwise gives the number of its tokens.
pub(super) fn check(text: &str) -> Result<usize, FilterError> {
    Scan {
        text,
        chars: text.char_indices().peekable(),
        levels: vec![Level::default()],
    }
    .run()
}

/// How deep the part of the text between two brackets is so far.
#[derive(Default)]
struct Level {
    /// Operators since the last separator.
    chain: usize,
    /// Questions since the last comma: their last branch is nested in them.
    questions: usize,
}

struct Scan<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    levels: Vec<Level>,
}

impl Scan<'_> {
    fn run(mut self) -> Result<usize, FilterError> {
        let mut tokens = 0;
        while let Some((at, c)) = self.chars.next() {
            tokens += usize::from(!c.is_whitespace());
            match c {
                '"' | '\'' => self.quoted(at, c, false)?,
                '`' => self.escaped_name(at)?,
                '/' if self.eat('/') => while self.chars.next_if(|&(_, c)| c != '\n').is_some() {},
                c if c.is_ascii_alphanumeric() || c == '_' => self.word(at)?,
                '&' | '|' if self.eat(c) => {
                    let level = self.level();
                    level.chain = level.questions;
                }
                ',' => *self.level() = Level::default(),
                '?' => {
                    let level = self.level();
                    level.questions += 1;
                    level.chain += 1;
                    self.measure(at)?;
                }
                '(' | '[' | '{' => {
                    self.level().chain += 1;
                    self.measure(at)?;
                    self.levels.push(Level::default());
                }
                ')' | ']' | '}' if self.levels.len() > 1 => {
                    self.levels.pop();
                }
                '=' | '<' | '>' | '!' => {
                    while self.chars.next_if(|(_, c)| "=<>!".contains(*c)).is_some() {}
                    self.operator(at)?;
                }
                '.' | '+' | '-' | '*' | '/' | '%' => self.operator(at)?,
                _ => {}
            }
        }
        Ok(tokens)
    }

    fn level(&mut self) -> &mut Level {
        self.levels
            .last_mut()
            .expect("the outermost level is never left")
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.chars.next_if(|&(_, c)| c == wanted).is_some()
    }

    fn operator(&mut self, at: usize) -> Result<(), FilterError> {
        self.level().chain += 1;
        self.measure(at)
    }

    fn measure(&self, at: usize) -> Result<(), FilterError> {
        if self.levels.iter().map(|level| level.chain).sum::<usize>() > MAX_DEPTH {
            return Err(FilterError::TooDeep {
                place: Place::of(self.text, at),
            });
        }
        Ok(())
    }

    /// A name, a keyword, a number, or the prefix of a text.
    fn word(&mut self, start: usize) -> Result<(), FilterError> {
        while self
            .chars
            .next_if(|&(_, c)| c.is_ascii_alphanumeric() || c == '_')
            .is_some()
        {}
        let end = self.chars.peek().map_or(self.text.len(), |&(at, _)| at);
        let word = &self.text[start..end];
        if word == "in" {
            return self.operator(start);
        }
        if let Some((at, quote)) = self.chars.next_if(|&(_, c)| c == '"' || c == '\'') {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(self.syntax(at, "a text cannot follow a number".to_owned()));
            }
            let raw = matches!(word, "r" | "R" | "br" | "bR" | "Br" | "BR");
            self.quoted(at, quote, raw)?;
        }
        Ok(())
    }

    /// The rest of a text whose first quote was just read.
    fn quoted(&mut self, start: usize, quote: char, raw: bool) -> Result<(), FilterError> {
        let triple = [quote; 3].iter().collect::<String>();
        let long = self.text[start..].starts_with(&triple);
        if long {
            self.chars.nth(1);
        }
        while let Some((at, c)) = self.chars.next() {
            match c {
                '\\' if !raw => self.escape(at)?,
                '\n' | '\r' if !long => break,
                c if c == quote && !long => return Ok(()),
                c if c == quote && self.text[at..].starts_with(&triple) => {
                    self.chars.nth(1);
                    return Ok(());
                }
                _ => {}
            }
        }
        let wanted = if long { triple } else { quote.to_string() };
        Err(self.syntax(
            start,
            format!("the text that begins here has no closing `{wanted}`"),
        ))
    }

    /// The rest of an escape whose backslash was just read.
    fn escape(&mut self, at: usize) -> Result<(), FilterError> {
        let hex = |c: char| c.is_ascii_hexdigit();
        let octal = |c: char| ('0'..='7').contains(&c);
        let whole = match self.chars.next() {
            Some((_, 'x' | 'X')) => self.digits(2, hex),
            Some((_, 'u')) => self.digits(4, hex),
            Some((_, 'U')) => self.digits(8, hex),
            Some((_, '0'..='3')) => self.digits(2, octal),
            Some((_, c)) => "abfnrtv\"'\\?`".contains(c),
            None => false,
        };
        if whole {
            return Ok(());
        }
        let what = "this escape is unknown; write `\\\\` for a backslash, or put `r` before the \
                    text";
        Err(self.syntax(at, what.to_owned()))
    }

    fn digits(&mut self, count: usize, is_digit: impl Fn(char) -> bool) -> bool {
        (0..count).all(|_| self.chars.next_if(|&(_, c)| is_digit(c)).is_some())
    }

    /// The rest of a name in backticks.
    fn escaped_name(&mut self, start: usize) -> Result<(), FilterError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let mut empty = true;
        while self.chars.next_if(|&(_, c)| legal(c)).is_some() {
            empty = false;
        }
        if empty || !self.eat('`') {
            let what = "a name in backticks holds letters, digits, `_.-/` and blanks, and ends \
                        with a backtick; for other names write `[\"name\"]`";
            return Err(self.syntax(start, what.to_owned()));
        }
        Ok(())
    }

    fn syntax(&self, at: usize, what: String) -> FilterError {
        FilterError::Syntax {
            place: Place::of(self.text, at),
            what,
        }
    }
}
