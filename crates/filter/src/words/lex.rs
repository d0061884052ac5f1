//! From text to words: where each ends, and what of it is quoted.

use std::ops::Range;

use super::error::{Fault, shown};

/// One word: `-key:a,b`, or a text by itself.
#[derive(Debug)]
pub(super) struct Word<'t> {
    /// Where it is in the text.
    pub(super) part: Range<usize>,
    /// Whether what it selects is left out.
    pub(super) excluded: bool,
    /// What stands before the value; none of a text by itself.
    pub(super) key: Option<Key<'t>>,
    /// The values; those of a label begin after its key.
    pub(super) values: Vec<Piece>,
}

/// What stands before a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'t> {
    pub(super) name: &'t str,
    /// `:`, `<`, `<=`, `>` or `>=`.
    pub(super) sign: &'t str,
}

/// A value between commas.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) part: Range<usize>,
    /// Without quotes, and without a `*` at its ends.
    pub(super) text: String,
    /// Of `key=value` the key.
    pub(super) label: Option<String>,
    /// It begins with a `*`.
    pub(super) open_start: bool,
    /// It ends with a `*`.
    pub(super) open_end: bool,
    /// A part of it is quoted.
    pub(super) quoted: bool,
}

impl Piece {
    /// Whether it stands for one text.
    pub(super) fn is_exact(&self) -> bool {
        !self.open_start && !self.open_end
    }
}

/// Gives the words of a text, one after the other.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Result<Word<'t>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        (!self.rest().is_empty()).then(|| self.word())
    }
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn pass(&mut self, prefix: &str) -> bool {
        let passes = self.rest().starts_with(prefix);
        if passes {
            self.at += prefix.len();
        }
        passes
    }

    fn word(&mut self) -> Result<Word<'t>, Fault> {
        let begin = self.at;
        let excluded = self.pass("-") || self.pass("not:");
        if excluded && (self.pass("-") || self.pass("not:")) {
            return Err(Fault::new(
                begin..self.at,
                "this excludes twice; write one `-`, or none",
            ));
        }
        let key = self.key();
        let mut values = Vec::new();
        loop {
            let in_label = key.is_some_and(|key| key.name == "label") && values.is_empty();
            values.push(self.piece(in_label)?);
            if !self.pass(",") {
                break;
            }
        }
        Ok(Word {
            part: begin..self.at,
            excluded,
            key,
            values,
        })
    }

    fn key(&mut self) -> Option<Key<'t>> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))?;
        let sign = [":", "<=", ">=", "<", ">"]
            .into_iter()
            .find(|sign| end > 0 && rest[end..].starts_with(sign))?;
        self.at += end + sign.len();
        Some(Key {
            name: &rest[..end],
            sign,
        })
    }

    /// A value up to a comma, a blank or the end.
    fn piece(&mut self, in_label: bool) -> Result<Piece, Fault> {
        let begin = self.at;
        let mut piece = Piece::default();
        // Where a `*` stands that nothing may follow.
        let mut star = None;
        while let Some(c) = self.peek() {
            if c.is_whitespace() || c == ',' {
                break;
            }
            if in_label && c == '=' && piece.label.is_none() {
                if piece.open_start || piece.open_end {
                    let what = "the key of a label has no `*`; only its value may begin or end \
                                with one";
                    return Err(Fault::new(begin..self.at, what));
                }
                self.at += 1;
                piece.label = Some(std::mem::take(&mut piece.text));
                piece.quoted = false;
                continue;
            }
            if let Some(at) = star {
                let what = "`*` stands at the beginning or the end of a value; for both ends \
                            write two words, such as `name:a* name:*b`";
                return Err(Fault::new(at..at + 1, what));
            }
            match c {
                '"' | '\'' => {
                    self.quoted(c, &mut piece.text)?;
                    piece.quoted = true;
                }
                '*' if piece.text.is_empty() && !piece.quoted && !piece.open_start => {
                    self.at += 1;
                    piece.open_start = true;
                }
                '*' => {
                    star = Some(self.at);
                    self.at += 1;
                    piece.open_end = true;
                }
                c => {
                    self.at += c.len_utf8();
                    piece.text.push(c);
                }
            }
        }
        if piece.text.contains(char::is_control) {
            let what = "a control character; a filter for one is written in CEL, after `cel:`";
            return Err(Fault::new(begin..self.at, what));
        }
        piece.part = begin..self.at;
        Ok(piece)
    }

    /// Passes a text in quotes, in which a backslash takes the next character as it is.
    fn quoted(&mut self, quote: char, into: &mut String) -> Result<(), Fault> {
        let begin = self.at;
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(()),
                '\\' => {
                    let Some(next) = self.peek() else { break };
                    self.at += next.len_utf8();
                    into.push(next);
                }
                c => into.push(c),
            }
        }
        let what = format!(
            "the quote before `{}` is not closed; end it with `{quote}`, or write `\\{quote}` in \
             quotes for the character",
            shown(&self.text[begin + 1..])
        );
        Err(Fault::new(begin..self.at, what))
    }
}
