//! Lines of one source that are gathered in memory, as chunks: of a log that is kept elsewhere.

use async_trait::async_trait;
use bytes::BytesMut;
use sha2::{Digest as _, Sha256};

use super::{
    Chunk, Chunks, Damaged, Effort, Head, Lines, MAX_CHUNK, MAX_LINE, Redaction, Window, chunks_of,
    encode, ends,
};

/// Lines that are gathered.
#[derive(Debug, Default)]
pub struct Gatherer {
    pending: BytesMut,
    /// Where in `pending` each write begins, and the time of its lines.
    times: Vec<(usize, i64)>,
    is_hole: bool,
    digest: Sha256,
    redactions: u64,
    done: Gathered,
}

/// Lines that were gathered.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// The chunks, in order.
    pub chunks: Vec<Chunk>,
    /// How many lines there are.
    pub lines: i64,
    /// How many bytes those have.
    pub bytes: i64,
    /// When the first line was written, in microseconds.
    pub first_us: Option<i64>,
    /// When the last line was written.
    pub last_us: Option<i64>,
    /// How many lines stand for lines that are missing.
    pub holes: i64,
    /// SHA-256 of all bytes.
    pub sha256: Vec<u8>,
    /// Bytes that the chunks take.
    pub stored_bytes: usize,
}

impl Gatherer {
    /// Takes the next bytes, which need not end with a line.
    pub fn write(
        &mut self,
        time_us: i64,
        text: &[u8],
        redaction: &Redaction,
    ) -> Result<(), Damaged> {
        if text.is_empty() {
            return Ok(());
        }
        self.times.push((self.pending.len(), time_us));
        self.pending.extend_from_slice(text);
        if self.pending.len() >= MAX_CHUNK {
            self.flush(false, redaction)?;
        }
        Ok(())
    }

    /// Takes a line that stands for lines that are missing, and says why.
    pub fn hole(&mut self, time_us: i64, why: &str, redaction: &Redaction) -> Result<(), Damaged> {
        if self.pending.last().is_some_and(|last| *last != b'\n') {
            self.write(time_us, b"\n", redaction)?;
        }
        self.flush(true, redaction)?;
        self.is_hole = true;
        self.write(time_us, format!("{why}\n").as_bytes(), redaction)?;
        let flushed = self.flush(true, redaction);
        self.is_hole = false;
        flushed
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pending.len() + self.times.len() * size_of::<(usize, i64)>() + self.done.stored_bytes
    }

    /// How many texts were replaced.
    #[must_use]
    pub fn redactions(&self) -> u64 {
        self.redactions
    }

    /// Ends the source; returns its chunks and how many texts were redacted.
    pub fn finish(mut self, redaction: &Redaction) -> Result<(Gathered, u64), Damaged> {
        self.flush(true, redaction)?;
        self.done.sha256 = self.digest.finalize().to_vec();
        Ok((self.done, self.redactions))
    }

    /// Makes chunks of whole lines, and at the end of what is left.
    fn flush(&mut self, is_end: bool, redaction: &Redaction) -> Result<(), Damaged> {
        let mut whole = 0;
        for end in ends(&self.pending) {
            let is_whole = self.pending[end - 1] == b'\n' || end - whole == MAX_LINE;
            if is_whole || is_end {
                whole = end;
            }
        }
        if whole == 0 {
            return Ok(());
        }
        let text = self.pending.split_to(whole).freeze();
        let (mut times, mut from, mut at) = (Vec::new(), 0, 0);
        for end in ends(&text) {
            while self
                .times
                .get(at + 1)
                .is_some_and(|(begins, _)| *begins <= from)
            {
                at += 1;
            }
            times.push(self.times.get(at).map_or(0, |(_, time)| *time));
            from = end;
        }
        self.rest_of_times(whole);
        let first = self.done.lines;
        let holes = if self.is_hole { vec![first] } else { vec![] };
        let lines = Lines::new(first, text, times, holes);
        let mut lines = lines.map_err(|wrong| Damaged(wrong.to_string()))?;
        self.redactions += redaction.apply(&mut lines);
        for part in chunks_of(&lines, MAX_CHUNK) {
            self.keep(&part)?;
        }
        Ok(())
    }

    /// Times of what is left after so many bytes.
    fn rest_of_times(&mut self, whole: usize) {
        let passed = self.times.partition_point(|(begins, _)| *begins <= whole);
        // The write that goes on over that place is one of the rest.
        let from = match self.pending.is_empty() {
            true => self.times.len(),
            false => passed.saturating_sub(1),
        };
        self.times.drain(..from);
        for (begins, _) in &mut self.times {
            *begins = begins.saturating_sub(whole);
        }
    }

    fn keep(&mut self, part: &Lines) -> Result<(), Damaged> {
        let done = &mut self.done;
        self.digest.update(&part.text);
        let chunk = Chunk {
            head: Head::of(part, done.bytes),
            body: encode(part, Effort::Quick)?.into(),
        };
        done.first_us = done.first_us.or_else(|| part.times.first().copied());
        done.last_us = part.times.last().copied().or(done.last_us);
        done.lines = part.end();
        done.bytes += chunk.head.bytes;
        done.holes += i64::try_from(part.holes.len()).unwrap_or_default();
        done.stored_bytes += chunk.body.len() + size_of::<Chunk>();
        done.chunks.push(chunk);
        Ok(())
    }
}

impl Gathered {
    /// The first chunk with a line of this number or a greater one that touches the window.
    #[must_use]
    pub fn chunk(&self, line: i64, window: Window) -> Option<&Chunk> {
        let from = self
            .chunks
            .partition_point(|chunk| chunk.head.end() <= line);
        let mut rest = self.chunks[from..].iter();
        rest.find(|chunk| window.touches(&chunk.head))
    }
}

#[async_trait]
impl Chunks for Gathered {
    type Error = Damaged;

    async fn next(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
        Ok(self.chunk(line, window).cloned())
    }

    async fn before(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
        let to = self
            .chunks
            .partition_point(|chunk| chunk.head.first_line < line);
        let mut before = self.chunks[..to].iter().rev();
        Ok(before.find(|chunk| window.touches(&chunk.head)).cloned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode;

    fn all(gathered: &Gathered) -> Lines {
        let parts: Vec<_> = gathered
            .chunks
            .iter()
            .map(|chunk| decode(chunk).unwrap())
            .collect();
        Lines::joined(&parts)
    }

    proptest! {
        #[test]
        fn bytes_come_back_whichever_way_they_are_cut(
            parts in proptest::collection::vec("[ab\n]{0,6}", 0..30),
            often in 0_usize..4,
        ) {
            let none = Redaction::default();
            let mut gatherer = Gatherer::default();
            let (mut text, mut expected, mut begins) = (String::new(), Vec::new(), true);
            for (at, part) in parts.iter().enumerate() {
                let time = i64::try_from(at).unwrap();
                gatherer.write(time, part.as_bytes(), &none).unwrap();
                for c in part.chars() {
                    if begins {
                        expected.push(time);
                    }
                    begins = c == '\n';
                }
                text += part;
                if often > 0 && at % often == 0 {
                    gatherer.flush(false, &none).unwrap();
                }
            }
            let (gathered, _) = gatherer.finish(&none).unwrap();
            let lines = all(&gathered);
            prop_assert_eq!(&lines.text[..], text.as_bytes());
            prop_assert_eq!(&lines.times, &expected);
            prop_assert_eq!(gathered.sha256, Sha256::digest(&text).to_vec());
        }
    }

    #[test]
    fn a_hole_is_a_line_of_its_own_and_secrets_are_left_out() {
        let redaction = Redaction::new(&["secret".to_owned()]).unwrap();
        let mut gatherer = Gatherer::default();
        gatherer.write(5, b"a\nsecret b", &redaction).unwrap();
        gatherer.hole(7, "the rest", &redaction).unwrap();
        let (gathered, count) = gatherer.finish(&redaction).unwrap();
        let lines = all(&gathered);
        assert_eq!(&lines.text[..], b"a\n*** b\nthe rest\n");
        assert_eq!((lines.holes, lines.times), (vec![2], vec![5, 5, 7]));
        assert_eq!((gathered.holes, count), (1, 1));
    }

    #[test]
    fn long_logs_become_chunks() {
        let none = Redaction::default();
        let mut gatherer = Gatherer::default();
        let text = "0123456789abcdef\n".repeat(200_000);
        for part in text.as_bytes().chunks(70_000) {
            gatherer.write(1, part, &none).unwrap();
        }
        assert!(gatherer.memory() < 1 << 20);
        let (gathered, _) = gatherer.finish(&none).unwrap();
        assert_eq!(gathered.lines, 200_000);
        assert!(gathered.chunks.len() > 3);
        let found = gathered.chunk(150_000, Window::default()).unwrap();
        assert!(found.head.first_line <= 150_000 && found.head.end() > 150_000);
        assert!(all(&gathered).text == text);
    }
}
