//! From the bytes of `pods/log` with timestamps to lines.

use hindsight_proto::v1::LogLines;
use jiff::Timestamp;

/// A longer line counts as several.
pub(crate) const MAX_LINE: usize = 262_144;

/// The longest timestamp: `2006-01-02T15:04:05.000000000+00:00` and a space.
const STAMP: usize = 36;

/// One line, or a part of a long one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Microseconds since 1970; `None` if the kubelet says something of its own.
    pub(crate) time: Option<i64>,
    pub(crate) text: &'a [u8],
}

/// Cuts what is read into lines, whatever the pieces in which it comes.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// A line whose end was not read yet, with its timestamp.
    rest: Vec<u8>,
    /// The time of a long line, the first parts of which were given out.
    long: Option<Option<i64>>,
}

impl Splitter {
    /// Gives the lines to `take` that end in `bytes`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Line<'_>)) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let most = STAMP + MAX_LINE - self.rest.len().min(STAMP + MAX_LINE - 1);
            let count = end.map_or(bytes.len(), |end| end + 1).min(most);
            self.rest.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if self.rest.ends_with(b"\n") || self.rest.len() >= STAMP + MAX_LINE {
                self.give(&mut take);
            }
        }
        if self.rest.is_empty() {
            self.rest = Vec::new();
        }
    }

    /// Gives a last line without its line feed.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        while !self.rest.is_empty() {
            self.give(&mut take);
        }
        *self = Self::default();
    }

    /// Gives out what is complete, and keeps the rest.
    fn give(&mut self, take: &mut impl FnMut(Line<'_>)) {
        let is_whole = self.rest.ends_with(b"\n");
        let (time, begin) = match self.long {
            Some(time) => (time, 0),
            None => stamp(&self.rest),
        };
        let end = self.rest.len().min(begin + MAX_LINE);
        let text = &self.rest[begin..end];
        take(Line { time, text });
        self.rest.drain(..end);
        self.long = (!is_whole || !self.rest.is_empty()).then_some(time);
        if is_whole && !self.rest.is_empty() {
            self.give(take);
        }
    }
}

/// A line as a call stores it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Numbered<'a> {
    pub(crate) number: i64,
    /// Microseconds since 1970.
    pub(crate) time: i64,
    pub(crate) text: &'a [u8],
    pub(crate) is_hole: bool,
}

/// The lines of a call.
pub(crate) fn numbered(of: &LogLines) -> impl Iterator<Item = Numbered<'_>> {
    let mut time: i64 = 0;
    let lines = (of.first_line..).zip(parts(&of.text).zip(&of.times));
    lines.map(move |(number, (text, after))| {
        time = time.wrapping_add(*after);
        Numbered {
            number,
            time,
            text,
            is_hole: of.holes.contains(&number),
        }
    })
}

/// The lines of a text in which they are without their times.
fn parts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| line.chunks(MAX_LINE))
}

/// The time that a line begins with, and where its text begins.
fn stamp(line: &[u8]) -> (Option<i64>, usize) {
    let space = line.iter().take(STAMP).position(|byte| *byte == b' ');
    let time = space.and_then(|space| {
        let text = std::str::from_utf8(&line[..space]).ok()?;
        // Anything shorter is no time of a log, whatever else it may mean.
        let time: Timestamp = text.parse().ok().filter(|_| text.len() > 18)?;
        Some((Some(time.as_nanosecond().div_euclid(1_000)), space + 1))
    });
    match time {
        Some((Some(micros), begin)) => (i64::try_from(micros).ok(), begin),
        _ => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &[u8], piece: usize) -> Vec<(Option<i64>, Vec<u8>)> {
        let mut found = Vec::new();
        let mut splitter = Splitter::default();
        for piece in text.chunks(piece) {
            splitter.push(piece, |line| found.push((line.time, line.text.to_vec())));
        }
        splitter.finish(|line| found.push((line.time, line.text.to_vec())));
        found
    }

    #[test]
    fn a_line_is_its_time_and_its_bytes() {
        let text = b"1970-01-01T00:00:01.000002999Z one\n1970-01-01T01:00:02.5+01:00 \xff\0\n\
                     unable to retrieve container logs\n1970-01-01T00:00:03.000000000Z last";
        let wanted = vec![
            (Some(1_000_002), b"one\n".to_vec()),
            (Some(2_500_000), b"\xff\0\n".to_vec()),
            (None, b"unable to retrieve container logs\n".to_vec()),
            (Some(3_000_000), b"last".to_vec()),
        ];
        for piece in [1, 7, 1000] {
            assert_eq!(split(text, piece), wanted);
        }
    }

    #[test]
    fn a_long_line_is_several_of_one_time_and_only_the_last_ends() {
        let mut text = b"1970-01-01T00:00:01.000000000Z ".to_vec();
        text.resize(text.len() + 2 * MAX_LINE + 5, b'x');
        text.push(b'\n');
        text.extend_from_slice(b"1970-01-01T00:00:02.000000000Z y\n");
        let found = split(&text, 8192);
        let sizes: Vec<_> = found
            .iter()
            .map(|(time, text)| (*time, text.len()))
            .collect();
        let time = Some(1_000_000);
        assert_eq!(
            sizes,
            [
                (time, MAX_LINE),
                (time, MAX_LINE),
                (time, 6),
                (Some(2_000_000), 2)
            ]
        );
        assert!(found[2].1.ends_with(b"x\n") && !found[1].1.ends_with(b"\n"));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_whatever_the_pieces(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
            piece in 1_usize..50,
        ) {
            let mut text = Vec::new();
            let mut wanted = Vec::new();
            for (n, line) in lines.iter().enumerate() {
                let line: Vec<u8> = line.iter().copied().filter(|byte| *byte != b'\n').collect();
                text.extend_from_slice(format!("1970-01-01T00:00:{n:02}.000000000Z ").as_bytes());
                text.extend_from_slice(&line);
                text.push(b'\n');
                wanted.push((Some(n as i64 * 1_000_000), [&line[..], b"\n"].concat()));
            }
            prop_assert_eq!(split(&text, piece), wanted);
        }
    }
}
