//! The JSON of a payload without what a filter does not read.
//!
//! Most of a payload is passed over, at about a nanosecond a byte, and never made into values.
//!
//! Invariant: what this takes for JSON is JSON to the whole parser, and what it keeps is the
//! same. Whatever is not plain (bytes that are no UTF-8, control characters, surrogates,
//! exponents, very long numbers, deep nesting) and whatever is broken is left to that parser, so
//! that a payload that is not JSON has no fields, wherever it is broken.

use hindsight_run::json;
use serde_json::{Map, Value};

use super::reads::Reads;

/// Deepest nesting that is not left to the whole parser, which allows 127.
const MAX_DEPTH: usize = 100;
/// Longest number likewise: beyond 300 digits a number may be out of range.
const MAX_DIGITS: usize = 100;

/// What `reads` names of the JSON in `bytes`, and perhaps more; none if it has to be looked at
/// by the whole parser.
pub(super) fn prune(bytes: &[u8], reads: &Reads) -> Option<Value> {
    if reads.whole {
        return None;
    }
    if !bytes.is_ascii() {
        std::str::from_utf8(bytes).ok()?;
    }
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(Some(reads), 0)?;
    reader.blanks();
    (reader.at == bytes.len()).then_some(value)
}

/// How far it is. Every method gives nothing where the rest is not plain JSON.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Passes a byte, and the blanks before it.
    fn pass(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Whether the byte is next, after blanks; it is passed then.
    fn passes(&mut self, byte: u8) -> bool {
        self.pass(byte).is_some()
    }

    /// The next value, or null if it is not wanted.
    fn value(&mut self, reads: Option<&Reads>, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blanks();
        let from = self.at;
        match (self.next()?, reads) {
            (b'{', Some(reads)) if !reads.whole => return self.object(reads, depth),
            (b'[', Some(reads)) if !reads.whole => return self.array(reads, depth),
            (b'{', _) => self.skip_object(depth)?,
            (b'[', _) => self.skip_array(depth)?,
            (b'"', _) => drop(self.string()?),
            (b't', _) => self.word(b"true")?,
            (b'f', _) => self.word(b"false")?,
            (b'n', _) => self.word(b"null")?,
            _ => self.number()?,
        }
        match reads {
            None => Some(Value::Null),
            Some(_) => json::parse(&self.bytes[from..self.at]).ok(),
        }
    }

    fn object(&mut self, reads: &Reads, depth: usize) -> Option<Value> {
        let mut members = Map::new();
        self.pass(b'{')?;
        if self.passes(b'}') {
            return Some(Value::Object(members));
        }
        loop {
            self.blanks();
            let (from, to, escaped) = self.string()?;
            let decoded;
            let key = if escaped {
                decoded = serde_json::from_slice::<String>(&self.bytes[from - 1..=to]).ok()?;
                decoded.as_str()
            } else {
                std::str::from_utf8(&self.bytes[from..to]).ok()?
            };
            let own = reads.members.get(key);
            let wanted = match (own, reads.each.as_deref()) {
                // By its name, and as one of all.
                (Some(_), Some(_)) => Some(&ALL),
                (Some(one), None) | (None, Some(one)) => Some(one),
                (None, None) => None,
            };
            let key = wanted.map(|_| key.to_owned());
            self.pass(b':')?;
            let value = self.value(wanted, depth + 1)?;
            if let Some(key) = key {
                // Of two members of one name the last counts, as for the whole parser.
                members.insert(key, value);
            }
            if self.passes(b'}') {
                return Some(Value::Object(members));
            }
            self.pass(b',')?;
        }
    }

    fn array(&mut self, reads: &Reads, depth: usize) -> Option<Value> {
        let each = reads.each.as_deref();
        let mut items = Vec::new();
        self.pass(b'[')?;
        if self.passes(b']') {
            return Some(Value::Array(items));
        }
        loop {
            let item = self.value(each, depth + 1)?;
            if each.is_some() {
                items.push(item);
            }
            if self.passes(b']') {
                return Some(Value::Array(items));
            }
            self.pass(b',')?;
        }
    }

    fn skip(&mut self, depth: usize) -> Option<()> {
        self.value(None, depth).map(drop)
    }

    fn skip_object(&mut self, depth: usize) -> Option<()> {
        self.pass(b'{')?;
        if self.passes(b'}') {
            return Some(());
        }
        loop {
            self.blanks();
            self.string()?;
            self.pass(b':')?;
            self.skip(depth + 1)?;
            if self.passes(b'}') {
                return Some(());
            }
            self.pass(b',')?;
        }
    }

    fn skip_array(&mut self, depth: usize) -> Option<()> {
        self.pass(b'[')?;
        if self.passes(b']') {
            return Some(());
        }
        loop {
            self.skip(depth + 1)?;
            if self.passes(b']') {
                return Some(());
            }
            self.pass(b',')?;
        }
    }

    /// Where the inside of a string begins and ends, and whether anything in it is escaped.
    fn string(&mut self) -> Option<(usize, usize, bool)> {
        if self.next()? != b'"' {
            return None;
        }
        self.at += 1;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at += to_mark(&self.bytes[self.at..]);
            match self.next()? {
                b'"' => {
                    self.at += 1;
                    return Some((from, self.at - 1, escaped));
                }
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    /// Passes what follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let length = match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' => {
                let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                // Surrogates come in pairs or not at all.
                let is_surrogate = matches!(digits[0], b'd' | b'D') && digits[1] >= b'8';
                if is_surrogate || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                5
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..]
            .starts_with(word)
            .then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<usize> {
        let count = self.bytes[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        self.at += count;
        (1..=MAX_DIGITS).contains(&count).then_some(count)
    }

    fn number(&mut self) -> Option<()> {
        if self.next()? == b'-' {
            self.at += 1;
        }
        let first = self.next()?;
        if self.digits()? > 1 && first == b'0' {
            return None;
        }
        if self.next() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        (!matches!(self.next(), Some(b'e' | b'E'))).then_some(())
    }
}

/// All of a value.
const ALL: Reads = Reads {
    whole: true,
    members: std::collections::BTreeMap::new(),
    each: None,
};

/// How many bytes stand before the first quote, backslash or control character; all, if there
/// is none.
fn to_mark(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // Eight at once: the lowest byte whose top bit is set is below `n`; those above may not be.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & TOPS;
    let mut at = 0;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk has eight bytes"));
        // Zero after the exclusive or is the byte sought.
        let marks = below(word, 0x20)
            | below(word ^ (ONES * u64::from(b'"')), 1)
            | below(word ^ (ONES * u64::from(b'\\')), 1);
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
        .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
