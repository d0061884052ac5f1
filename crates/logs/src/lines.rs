//! Consecutive lines of one log, and where a line ends.

use std::ops::Range;

use bytes::Bytes;
use memchr::memchr;

/// Most bytes of one line, with its line feed. What is longer counts as several lines.
pub const MAX_LINE: usize = 262_144;

/// Where each line of a text ends, its line feed included.
pub fn ends(text: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let most = text.len().min(at + MAX_LINE);
        at = memchr(b'\n', &text[at..most]).map_or(most, |feed| at + feed + 1);
        Some(at)
    })
}

/// Consecutive lines of one source, with the time of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Number of the first line in its log.
    pub first: i64,
    /// The lines, one after the other.
    pub text: Bytes,
    /// When each line was written, in microseconds since 1970.
    pub times: Vec<i64>,
    /// Numbers of the lines that stand for lines that are missing, in order.
    pub holes: Vec<i64>,
}

/// Why a text and its times are not lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// There are more or fewer times than lines.
    #[error("the text has {lines} lines and there are {times} times")]
    Times {
        /// Lines of the text.
        lines: usize,
        /// Times that came with it.
        times: usize,
    },
    /// A hole is no line of the text, or comes out of order.
    #[error("line {0} is named as a hole, and is none of the lines or out of order")]
    Hole(i64),
    /// The number of a line is below 0, or too great.
    #[error("the number of the first line, {0}, is out of range")]
    First(i64),
}

impl Lines {
    /// Lines of which each time is the distance to the one before, as messages have them. It fails where
    /// [`Lines::new`] does, with the same errors.
    pub fn of_differences(
        first: i64,
        text: Bytes,
        mut times: Vec<i64>,
        holes: Vec<i64>,
    ) -> Result<Self, Wrong> {
        let mut before = 0_i64;
        for time in &mut times {
            before = before.saturating_add(*time);
            *time = before;
        }
        Self::new(first, text, times, holes)
    }

    /// Lines with their times. It fails if those are not as many, or a hole is none of the lines.
    pub fn new(first: i64, text: Bytes, times: Vec<i64>, holes: Vec<i64>) -> Result<Self, Wrong> {
        let lines = ends(&text).count();
        if lines != times.len() {
            let times = times.len();
            return Err(Wrong::Times { lines, times });
        }
        let end = i64::try_from(lines).ok().and_then(|n| first.checked_add(n));
        let Some(end) = end.filter(|_| first >= 0) else {
            return Err(Wrong::First(first));
        };
        let mut least = first;
        for hole in &holes {
            if !(least..end).contains(hole) {
                return Err(Wrong::Hole(*hole));
            }
            least = hole + 1;
        }
        Ok(Self {
            first,
            text,
            times,
            holes,
        })
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The number of the line after the last one.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.first
            .saturating_add(i64::try_from(self.len()).unwrap_or(i64::MAX))
    }

    /// Whether the last line is whole, so that another one may follow in the same text.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        if self.text.last().is_none_or(|last| *last == b'\n') {
            return true;
        }
        let mut before = 0;
        let mut last = 0;
        for end in ends(&self.text) {
            last = end - before;
            before = end;
        }
        last == MAX_LINE
    }

    /// The lines at these places, counted from the first.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        if range == (0..self.len()) {
            return self.clone();
        }
        let (mut from, mut to) = (0, 0);
        for (at, end) in ends(&self.text).enumerate().take(range.end) {
            if at < range.start {
                from = end;
            }
            to = end;
        }
        self.cut(range, from.min(to)..to)
    }

    /// The lines at these places, whose text is these bytes.
    pub(crate) fn cut(&self, range: Range<usize>, bytes: Range<usize>) -> Self {
        let number = |at: usize| self.first + i64::try_from(at).unwrap_or(i64::MAX);
        let numbers = number(range.start)..number(range.end);
        let before = |line: i64| self.holes.partition_point(|hole| *hole < line);
        Self {
            first: numbers.start,
            text: self.text.slice(bytes),
            times: self.times[range].to_vec(),
            holes: self.holes[before(numbers.start)..before(numbers.end)].to_vec(),
        }
    }

    /// The lines from this number on.
    #[must_use]
    pub fn from(&self, line: i64) -> Self {
        let skipped = usize::try_from(line.saturating_sub(self.first)).unwrap_or_default();
        self.slice(skipped.min(self.len())..self.len())
    }

    /// These lines and those that follow them.
    #[must_use]
    pub fn joined(parts: &[Self]) -> Self {
        let text = match parts {
            [one] => one.text.clone(),
            _ => {
                let texts: Vec<&[u8]> = parts.iter().map(|part| &*part.text).collect();
                texts.concat().into()
            }
        };
        Self {
            first: parts.first().map_or(0, |part| part.first),
            text,
            times: parts.iter().flat_map(|part| &part.times).copied().collect(),
            holes: parts.iter().flat_map(|part| &part.holes).copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(first: i64, text: &'static str) -> Lines {
        let times = (0..).take(ends(text.as_bytes()).count()).collect();
        Lines::new(first, text.into(), times, Vec::new()).unwrap()
    }

    #[test]
    fn a_line_ends_after_its_line_feed_or_at_its_most() {
        let text = ["a\n\n", &"x".repeat(MAX_LINE), "\nb"].concat();
        let ends: Vec<_> = ends(text.as_bytes()).collect();
        assert_eq!(ends, [2, 3, 3 + MAX_LINE, 4 + MAX_LINE, 5 + MAX_LINE]);
        let whole = ["x".repeat(MAX_LINE - 1), "\n".to_owned()].concat();
        assert_eq!(super::ends(whole.as_bytes()).count(), 1);
    }

    #[test]
    fn parts_of_lines_are_lines() {
        let all = Lines {
            holes: vec![11, 13],
            ..lines(10, "a\nbb\nccc\nd")
        };
        let middle = all.slice(1..3);
        assert_eq!((middle.first, &*middle.text), (11, &b"bb\nccc\n"[..]));
        assert_eq!((middle.times, middle.holes), (vec![1, 2], vec![11]));
        assert_eq!(all.from(13), all.slice(3..4));
        assert_eq!(all.from(99).len(), 0);
        assert_eq!(all.slice(2..2).text.len(), 0);
        assert!(!all.is_closed() && all.slice(0..3).is_closed());
        let parts = [all.slice(0..1), all.slice(1..4)];
        assert_eq!(Lines::joined(&parts), all);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let made = |first, times: usize, holes: &[i64]| {
            Lines::new(first, "a\nb\n".into(), vec![0; times], holes.to_vec()).map(drop)
        };
        assert_eq!(made(0, 3, &[]), Err(Wrong::Times { lines: 2, times: 3 }));
        assert_eq!(made(-1, 2, &[]), Err(Wrong::First(-1)));
        assert_eq!(made(i64::MAX, 2, &[]), Err(Wrong::First(i64::MAX)));
        assert_eq!(made(5, 2, &[7]), Err(Wrong::Hole(7)));
        assert_eq!(made(5, 2, &[6, 5]), Err(Wrong::Hole(5)));
        assert_eq!(made(5, 2, &[5, 6]), Ok(()));
    }
}
