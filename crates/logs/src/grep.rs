//! Searches: which lines have a text, or match a regular expression, in time that grows with the bytes alone.

use std::ops::Range;

use regex_automata::{Input, meta::Regex, util::syntax};

use super::{Lines, ends};

/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 1024;
/// Largest compiled pattern of a search, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// Largest of the configuration, where `\w{36}` is common: it takes some MiB, because letters are those of Unicode.
const MAX_CONFIGURED: usize = 16 << 20;

/// What is looked for. It matches within a line; bytes need not be UTF-8.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is longer than a pattern may be, or empty.
    #[error("has {0} bytes; want 1 to {MAX_PATTERN}")]
    Length(usize),
    /// It is not written as one, or too large.
    #[error("is no regular expression of the syntax RE2: {0}")]
    Syntax(String),
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The place of the line, counted from the first.
    pub at: usize,
    /// Where the line is in the text, without its line feed.
    pub line: Range<usize>,
    /// Where the first match is in the line.
    pub found: Range<usize>,
}

impl Pattern {
    /// A text to look for, or with `regex` an expression.
    pub fn new(text: &str, regex: bool, ignore_case: bool) -> Result<Self, PatternError> {
        Self::within(text, regex, ignore_case, MAX_COMPILED)
    }

    /// An expression of the configuration.
    pub(crate) fn configured(text: &str) -> Result<Self, PatternError> {
        Self::within(text, true, false, MAX_CONFIGURED)
    }

    fn within(
        text: &str,
        regex: bool,
        ignore_case: bool,
        most: usize,
    ) -> Result<Self, PatternError> {
        if text.is_empty() || text.len() > MAX_PATTERN {
            return Err(PatternError::Length(text.len()));
        }
        let text = match regex {
            true => text.to_owned(),
            false => escaped(text),
        };
        let syntax = syntax::Config::new()
            .multi_line(true)
            .utf8(false)
            .case_insensitive(ignore_case);
        let config = Regex::config()
            .utf8_empty(false)
            .nfa_size_limit(Some(most))
            .hybrid_cache_capacity(most);
        let built = Regex::builder()
            .syntax(syntax)
            .configure(config)
            .build(&text);
        let built = built.map_err(|error| {
            let text = match error.syntax_error() {
                Some(syntax) => syntax.to_string(),
                None => "it is too large".to_owned(),
            };
            // The cause is drawn over several lines, of which the last says what is wrong.
            let last = text.lines().last().unwrap_or_default();
            PatternError::Syntax(last.trim_start_matches("error: ").to_owned())
        })?;
        Ok(Self(built))
    }

    /// Whether anything matches, also over the end of a line.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// All matches in a line, in order.
    pub(crate) fn all(&self, line: &[u8]) -> Vec<Range<usize>> {
        self.0.find_iter(line).map(|found| found.range()).collect()
    }

    /// The lines that match, in order, from the place `from` on.
    #[must_use]
    pub fn find(&self, lines: &Lines, from: usize) -> Vec<Hit> {
        let text = &*lines.text;
        let mut hits = Vec::new();
        // Where each line ends is counted only as far as there are hits.
        let (mut counted, mut count) = (ends(text), 0_usize);
        let mut line_end = 0;
        let mut begins = 0;
        for _ in 0..from {
            begins = counted.next().unwrap_or(text.len());
            count += 1;
        }
        let mut at = begins;
        // A pattern whose matches go over ends of lines may look at all of the text for each line.
        let mut line_by_line = false;
        while at < text.len() {
            let end = match line_by_line {
                true => ends(&text[at..]).next().map_or(text.len(), |end| at + end),
                false => text.len(),
            };
            let Some(found) = self.0.search(&Input::new(text).range(at..end)) else {
                if end == text.len() {
                    break;
                }
                at = end;
                continue;
            };
            // The line in which the match begins.
            while line_end <= found.start() {
                let Some(end) = counted.next() else {
                    return hits;
                };
                (begins, line_end) = (line_end.max(begins), end);
                count += 1;
            }
            let line = begins..line_end - usize::from(text[line_end - 1] == b'\n');
            let inside = match found.end() <= line.end {
                true => Some(found.range()),
                false => {
                    line_by_line = true;
                    let within = Input::new(text).range(line.clone());
                    self.0.search(&within).map(|found| found.range())
                }
            };
            if let Some(found) = inside {
                hits.push(Hit {
                    at: count - 1,
                    found: found.start - line.start..found.end - line.start,
                    line,
                });
            }
            at = line_end;
        }
        hits
    }
}

/// A text as an expression that matches it alone.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Most bytes of a sequence that steers a terminal.
const SEQUENCE: usize = 64;

/// Where the sequence ends that begins before a place in a line and goes on behind it, and where it begins; none if
/// there is none of at most [`SEQUENCE`] bytes.
fn sequence_across(line: &[u8], at: usize) -> Option<Range<usize>> {
    let before = &line[at.saturating_sub(SEQUENCE)..at];
    let start = at - before.len() + before.iter().rposition(|byte| *byte == 0x1b)?;
    let rest = &line[start + 1..line.len().min(start + SEQUENCE)];
    let length = match rest.first()? {
        b'[' => {
            1 + rest[1..]
                .iter()
                .position(|byte| (0x40..0x7f).contains(byte))?
        }
        // Titles and links end with BEL, or with the escape and a backslash.
        b']' => rest.iter().position(|byte| matches!(byte, 0x07 | b'\\'))?,
        _ => 0,
    };
    let end = start + 1 + length + 1;
    (end > at).then_some(start..end)
}

/// At most `most` bytes of a line around a match, and where that is in them. A sequence that steers a terminal is left out
/// rather than cut, unless the match is in it.
#[must_use]
pub fn excerpt(line: &[u8], found: &Range<usize>, most: usize) -> (Range<usize>, Range<usize>) {
    if line.len() <= most {
        return (0..line.len(), found.clone());
    }
    let length = found.len().min(most);
    let from = found.start.saturating_sub((most - length) / 2);
    let from = from.min(line.len() - most);
    let (mut start, mut end) = (from, from + most);
    if let Some(sequence) = sequence_across(line, start) {
        start = sequence.end.min(found.start);
    }
    if let Some(sequence) = sequence_across(line, end) {
        end = sequence.start.max(found.end.min(end));
    }
    (start..end, found.start - start..found.end.min(end) - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &'static str, pattern: &str, regex: bool) -> Vec<(usize, String)> {
        let times = vec![0; ends(text.as_bytes()).count()];
        let lines = Lines::new(0, text.into(), times, Vec::new()).unwrap();
        let pattern = Pattern::new(pattern, regex, false).unwrap();
        let text = |hit: &Hit| {
            let line = &lines.text[hit.line.clone()];
            String::from_utf8(line[hit.found.clone()].to_vec()).unwrap()
        };
        let hits = pattern.find(&lines, 0);
        let all: Vec<_> = hits.iter().map(|hit| (hit.at, text(hit))).collect();
        for from in 0..lines.len() {
            let later: Vec<_> = hits.iter().filter(|hit| hit.at >= from).cloned().collect();
            assert_eq!(pattern.find(&lines, from), later, "from {from}");
        }
        all
    }

    #[test]
    fn lines_that_match_are_found_once_each() {
        let text = "ok\nerror: a error: b\n\nfine\nerror";
        let hits = found(text, "error", false);
        assert_eq!(hits, [(1, "error".into()), (4, "error".into())]);
        let hits = found(text, "^f.*e$", true);
        assert_eq!(hits, [(3, "fine".into())]);
        assert_eq!(found(text, "a.b", false), []);
        assert_eq!(found("a.b\n", "a.b", false).len(), 1);
    }

    #[test]
    fn a_match_stays_within_its_line() {
        assert_eq!(found("a\nb\n", "a\\s*b", true), []);
        assert_eq!(
            found("xa\n\nab\n", "a\\s*b?", true),
            [(0, "a".into()), (2, "ab".into()),]
        );
        assert_eq!(found("a\n\nb\n", "^$", true), [(1, String::new())]);
    }

    #[test]
    fn a_pattern_that_goes_over_lines_does_not_read_all_of_them_for_each() {
        let search = |lines: usize| {
            let text = "a\n".repeat(lines) + "q\n";
            let lines = Lines::new(0, text.into(), vec![0; lines + 1], Vec::new()).unwrap();
            let pattern = Pattern::new("[^q]*q", true, false).unwrap();
            let began = std::time::Instant::now();
            assert_eq!(pattern.find(&lines, 0).len(), 1);
            began.elapsed()
        };
        // Twenty times as long, and 400 times if each line reads all that follow.
        let few = search(5_000).max(std::time::Duration::from_millis(1));
        assert!(search(100_000) < few * 100);
    }

    #[test]
    fn bytes_that_are_no_text_are_searched() {
        let bytes = bytes::Bytes::from_static(b"\xff\x00err\xfe\nno\n");
        let lines = Lines::new(0, bytes, vec![0, 0], Vec::new()).unwrap();
        for (pattern, regex) in [("err", false), ("(?-u)\\xffx?\\x00e", true)] {
            let pattern = Pattern::new(pattern, regex, true).unwrap();
            assert_eq!(pattern.find(&lines, 0).len(), 1);
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_one_line() {
        for bad in ["(", "a{1000000}", "\\p{Nope}", "(?:a{999}){999}"] {
            let error = Pattern::new(bad, true, false).unwrap_err().to_string();
            assert!(!error.contains('\n') && error.len() > 40, "{error}");
        }
        assert_eq!(
            Pattern::new("", false, false).unwrap_err(),
            PatternError::Length(0)
        );
        assert!(Pattern::new(&"x".repeat(2000), false, false).is_err());
    }

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let line = [vec![b'a'; 5000], b"hit".to_vec(), vec![b'b'; 5000]].concat();
        let (cut, found) = excerpt(&line, &(5000..5003), 100);
        assert_eq!(&line[cut.clone()][found.clone()], b"hit");
        assert_eq!(cut.len(), 100);
        let (cut, found) = excerpt(&line, &(0..9000), 100);
        assert_eq!((cut, found), (0..100, 0..100));
        let (cut, found) = excerpt(&line, &(10_002..10_003), 100);
        assert_eq!((cut, found), (9903..10_003, 99..100));
        assert_eq!(excerpt(b"ab", &(1..2), 100), (0..2, 1..2));
    }

    #[test]
    fn a_sequence_that_steers_a_terminal_is_not_cut() {
        let colour = b"\x1b[1;31m";
        let title = b"\x1b]0;title\x07";
        for sequence in [&colour[..], title, b"\x1bM"] {
            for shift in 0..40 {
                let line = [
                    &b"a".repeat(980 + shift)[..],
                    sequence,
                    &b"b".repeat(20)[..],
                    b"hit",
                    &b"c".repeat(20)[..],
                    sequence,
                    &b"d".repeat(1000)[..],
                ]
                .concat();
                let at = 1000 + shift + sequence.len();
                let (cut, found) = excerpt(&line, &(at..at + 3), 63);
                let text = &line[cut];
                assert_eq!(&text[found], b"hit");
                let count = |text: &[u8], part: &[u8]| {
                    text.windows(part.len()).filter(|it| *it == part).count()
                };
                let whole = count(text, sequence);
                assert_eq!(
                    count(text, b"\x1b"),
                    whole,
                    "{:?}",
                    text.escape_ascii().to_string()
                );
                let rest = text
                    .iter()
                    .filter(|byte| !b"abcdhit".contains(byte))
                    .count();
                let of_one = sequence
                    .iter()
                    .filter(|byte| !b"abcdhit".contains(byte))
                    .count();
                assert_eq!(rest, whole * of_one);
            }
        }
        // A match in a sequence is shown nonetheless.
        let line = [&b"x".repeat(500)[..], b"\x1b[31mred"].concat();
        let (cut, found) = excerpt(&line, &(503..504), 10);
        assert_eq!(&line[cut][found], b"1");
    }
}
