//! What must not be stored: what patterns match is replaced, line by line.

use std::borrow::Cow;

use super::{Lines, MAX_LINE, Pattern, PatternError, ends};

/// What stands in the place of what was matched.
const MARK: &[u8] = b"***";

/// Patterns of what must not be stored.
#[derive(Debug, Clone, Default)]
pub struct Redaction(Vec<Pattern>);

impl Redaction {
    /// Compiles regular expressions. It fails with the first that is none.
    pub fn new(patterns: &[String]) -> Result<Self, PatternError> {
        let patterns = patterns.iter().map(|text| Pattern::configured(text));
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    /// Whether there are no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces in each line what matches, and says how often. The line feed of a line stays.
    pub fn apply(&self, lines: &mut Lines) -> u64 {
        if !self.0.iter().any(|pattern| pattern.is_in(&lines.text)) {
            return 0;
        }
        let (mut count, mut from) = (0, 0);
        let mut text = Vec::with_capacity(lines.text.len());
        for end in ends(&lines.text) {
            let line = &lines.text[from..end];
            from = end;
            let (line, feed) = match line.strip_suffix(b"\n") {
                Some(line) => (line, &b"\n"[..]),
                None => (line, &b""[..]),
            };
            let mut line = Cow::Borrowed(line);
            for pattern in &self.0 {
                count += replace(pattern, &mut line);
            }
            text.extend_from_slice(&line);
            text.extend_from_slice(feed);
        }
        lines.text = text.into();
        count
    }
}

fn replace(pattern: &Pattern, line: &mut Cow<'_, [u8]>) -> u64 {
    let (mut count, mut from, mut made) = (0, 0, Vec::new());
    // What is almost a whole piece keeps its length: shorter or longer it would be other lines.
    let keeps_length = line.len() + 1 > MAX_LINE / MARK.len();
    for found in pattern.all(line) {
        // What is empty hides nothing.
        if found.is_empty() {
            continue;
        }
        made.extend_from_slice(&line[from..found.start]);
        if keeps_length {
            made.resize(made.len() + found.len(), b'*');
        } else {
            made.extend_from_slice(MARK);
        }
        from = found.end;
        count += 1;
    }
    if count > 0 {
        made.extend_from_slice(&line[from..]);
        *line = Cow::Owned(made);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(patterns: &[&str], text: &'static str) -> (String, u64) {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        let times = vec![0; ends(text.as_bytes()).count()];
        let mut lines = Lines::new(0, text.into(), times, Vec::new()).unwrap();
        let count = Redaction::new(&patterns).unwrap().apply(&mut lines);
        (String::from_utf8(lines.text.to_vec()).unwrap(), count)
    }

    #[test]
    fn what_matches_is_replaced_within_its_line() {
        let text = "token=abc ok\npassword: x1\nfine\n";
        let patterns = ["token=\\S+", "password:.*", "x*"];
        let (text, count) = redacted(&patterns, text);
        assert_eq!((text.as_str(), count), ("*** ok\n***\nfine\n", 2));
        let spanning = redacted(&["a\\s+b"], "a\nb\n");
        assert_eq!(spanning, ("a\nb\n".to_owned(), 0));
        assert!(Redaction::new(&["(".to_owned()]).is_err());
    }

    #[test]
    fn pieces_of_a_long_line_stay_as_many_lines() {
        let long = ["a".repeat(MAX_LINE + 5), "secret\nb\n".to_owned()].concat();
        let wide = ["s".repeat(MAX_LINE - 1), "\n".to_owned()].concat();
        let text = [long, wide].concat();
        let count = ends(text.as_bytes()).count();
        let mut lines = Lines::new(0, text.into(), vec![0; count], Vec::new()).unwrap();
        let redaction = Redaction::new(&["aaa|secret|s".to_owned()]).unwrap();
        assert!(redaction.apply(&mut lines) > 1000);
        assert_eq!(ends(&lines.text).count(), count);
        assert!(
            !lines
                .text
                .windows(2)
                .any(|two| two == b"se" || two == b"ss")
        );
    }
}
