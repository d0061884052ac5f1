//! Reads of a log: a range, the last lines, those of a time. One chunk is in memory at a time, and what lies
//! before the first line that is wanted is not read.

use async_trait::async_trait;

use super::{Chunk, Damaged, Lines, decode, ends};

/// Times of lines, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Lines from this time on.
    pub since: i64,
    /// Lines before this time.
    pub until: i64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            since: i64::MIN,
            until: i64::MAX,
        }
    }
}

impl Window {
    fn has(&self, time: i64) -> bool {
        self.since <= time && (time < self.until || self.until == i64::MAX)
    }

    /// Whether lines of a chunk may be in it.
    #[must_use]
    pub fn touches(&self, chunk: &super::Head) -> bool {
        self.since <= chunk.max_us && (chunk.min_us < self.until || self.until == i64::MAX)
    }

    fn covers(&self, chunk: &super::Head) -> bool {
        self.has(chunk.min_us) && self.has(chunk.max_us)
    }
}

/// What holds the chunks of one log.
#[async_trait]
pub trait Chunks: Send + Sync {
    /// Why a chunk was not read.
    type Error: From<Damaged> + Send;

    /// The first chunk with a line of this number or a greater one that touches the window.
    async fn next(&self, line: i64, window: Window) -> Result<Option<Chunk>, Self::Error>;

    /// The last chunk with a line of a smaller number that touches the window.
    async fn before(&self, line: i64, window: Window) -> Result<Option<Chunk>, Self::Error>;
}

/// Which lines of a log are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Lines from this number on.
    pub first_line: i64,
    /// Only the last so many of those that the rest lets through; 0 is all.
    pub tail: u64,
    /// When they were written.
    pub window: Window,
}

/// Reads the lines of a selection, in order.
#[derive(Debug, Default)]
pub struct Reader {
    next: i64,
    window: Window,
    partly: Option<Partly>,
}

/// A chunk of which some lines are in the window and others are not.
#[derive(Debug)]
struct Partly {
    lines: Lines,
    /// How many lines were looked at, and how many bytes they have.
    at: usize,
    bytes: usize,
}

impl Reader {
    /// Reads what `selection` lets through; for a tail it looks for the first line, from the end.
    pub async fn open<C: Chunks + ?Sized>(
        chunks: &C,
        selection: Selection,
    ) -> Result<Self, C::Error> {
        let next = match selection.tail {
            0 => selection.first_line,
            tail => tail_start(chunks, selection, tail).await?,
        };
        Ok(Self {
            next,
            window: selection.window,
            partly: None,
        })
    }

    /// The number of the line that is looked at next.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.next
    }

    /// The next consecutive lines, at most a chunk of them; none where there are no more by now. Asked again
    /// later, it goes on with what was appended.
    pub async fn next<C: Chunks + ?Sized>(
        &mut self,
        chunks: &C,
    ) -> Result<Option<Lines>, C::Error> {
        loop {
            if let Some(partly) = &mut self.partly {
                if let Some(lines) = partly.next(self.window) {
                    return Ok(Some(lines));
                }
                self.partly = None;
            }
            let Some(chunk) = chunks.next(self.next, self.window).await? else {
                return Ok(None);
            };
            let end = chunk.head.end();
            let lines = decode(&chunk)?.from(self.next);
            self.next = end.max(self.next.saturating_add(1));
            if self.window.covers(&chunk.head) {
                return Ok(Some(lines));
            }
            let (at, bytes) = (0, 0);
            self.partly = Some(Partly { lines, at, bytes });
        }
    }
}

impl Partly {
    /// The next consecutive lines that are in the window.
    fn next(&mut self, window: Window) -> Option<Lines> {
        let mut times = self.lines.times[self.at..].iter();
        let skipped = times.position(|time| window.has(*time))?;
        let taken = 1 + times.take_while(|time| window.has(**time)).count();
        let (first, from) = self.pass(skipped);
        let (end, to) = self.pass(taken);
        Some(self.lines.cut(first..end, from..to))
    }

    /// Goes on by so many lines, to the place that it returns.
    fn pass(&mut self, lines: usize) -> (usize, usize) {
        let rest = &self.lines.text[self.bytes..];
        if let Some(last) = lines.checked_sub(1) {
            self.bytes += ends(rest).nth(last).unwrap_or(rest.len());
        }
        self.at += lines;
        (self.at, self.bytes)
    }
}

/// The line from which on as many lines are let through.
async fn tail_start<C: Chunks + ?Sized>(
    chunks: &C,
    selection: Selection,
    tail: u64,
) -> Result<i64, C::Error> {
    let (mut left, mut before) = (tail, i64::MAX);
    while let Some(chunk) = chunks.before(before, selection.window).await? {
        let head = chunk.head;
        if head.end() <= selection.first_line {
            break;
        }
        // Chunks may be merged meanwhile, so that one has lines which were counted already.
        let is_whole = selection.window.covers(&head)
            && selection.first_line <= head.first_line
            && head.end() <= before;
        let count = u64::try_from(head.lines).unwrap_or_default();
        if is_whole && count < left {
            left -= count;
        } else {
            let lines = decode(&chunk)?;
            for (at, time) in lines.times.iter().enumerate().rev() {
                let line = lines
                    .first
                    .saturating_add(i64::try_from(at).unwrap_or(i64::MAX));
                if line >= before {
                    continue;
                }
                if line < selection.first_line {
                    break;
                }
                if selection.window.has(*time) {
                    left -= 1;
                    if left == 0 {
                        return Ok(line);
                    }
                }
            }
        }
        before = head.first_line;
    }
    Ok(selection.first_line)
}

#[cfg(test)]
mod tests {
    use std::{
        ops::Range,
        sync::atomic::{AtomicUsize, Ordering},
        time::{Duration, Instant},
    };

    use proptest::prelude::*;

    use super::*;
    use crate::{Effort, Head, encode};

    /// Chunks in memory, and how many were read.
    struct Kept(Vec<Chunk>, AtomicUsize);

    impl Kept {
        fn of(lines: &Lines, size: usize) -> Self {
            let parts = (0..lines.len()).step_by(size);
            let parts = parts.map(|at| lines.slice(at..lines.len().min(at + size)));
            let chunk = |part: Lines| Chunk {
                head: Head::of(&part, 0),
                body: encode(&part, Effort::Quick).unwrap().into(),
            };
            Self(parts.map(chunk).collect(), AtomicUsize::new(0))
        }
    }

    #[async_trait]
    impl Chunks for Kept {
        type Error = Damaged;

        async fn next(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut all = self.0.iter();
            let found = all.find(|chunk| chunk.head.end() > line && window.touches(&chunk.head));
            Ok(found.cloned())
        }

        async fn before(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut all = self.0.iter().rev();
            let found =
                all.find(|chunk| chunk.head.first_line < line && window.touches(&chunk.head));
            Ok(found.cloned())
        }
    }

    fn read(kept: &impl Chunks<Error = Damaged>, selection: Selection) -> Vec<(i64, i64)> {
        let reading = async {
            let mut reader = Reader::open(kept, selection).await.unwrap();
            let mut all = Vec::new();
            while let Some(lines) = reader.next(kept).await.unwrap() {
                assert_eq!(lines.text, text(lines.first..lines.end()));
                all.extend((lines.first..).zip(lines.times));
            }
            all
        };
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(reading)
    }

    fn text(lines: Range<i64>) -> String {
        lines
            .map(|line| "x".repeat(usize::try_from(line % 3).unwrap()) + "\n")
            .collect()
    }

    fn log(times: Vec<i64>) -> Lines {
        let end = i64::try_from(times.len()).unwrap();
        Lines::new(0, text(0..end).into(), times, Vec::new()).unwrap()
    }

    proptest! {
        #[test]
        fn a_selection_is_what_plain_filtering_gives(
            times in proptest::collection::vec(0_i64..50, 0..60),
            size in 1_usize..9,
            first_line in 0_i64..70,
            tail in 0_u64..70,
            since in 0_i64..50,
            until in prop_oneof![Just(i64::MAX), 0_i64..50],
        ) {
            let window = Window { since, until };
            let selection = Selection { first_line, tail, window };
            let all = (0..).zip(times.iter().copied());
            let wanted: Vec<_> = all
                .filter(|(line, time)| *line >= first_line && window.has(*time))
                .collect();
            let skipped = match tail {
                0 => 0,
                tail => wanted.len().saturating_sub(usize::try_from(tail).unwrap()),
            };
            let kept = Kept::of(&log(times), size);
            prop_assert_eq!(read(&kept, selection), &wanted[skipped..]);
        }
    }

    /// Chunks that are merged into one after the last of them was read.
    struct Merging(Kept, Kept);

    #[async_trait]
    impl Chunks for Merging {
        type Error = Damaged;

        async fn next(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
            self.1.next(line, window).await
        }

        async fn before(&self, line: i64, window: Window) -> Result<Option<Chunk>, Damaged> {
            match line {
                i64::MAX => self.0.before(line, window).await,
                line => self.1.before(line, window).await,
            }
        }
    }

    #[test]
    fn a_tail_of_chunks_that_are_merged_meanwhile_counts_no_line_twice() {
        let log = log((0..40).collect());
        let chunks = Merging(Kept::of(&log, 10), Kept::of(&log, 40));
        let selection = Selection {
            tail: 15,
            ..Selection::default()
        };
        let found = read(&chunks, selection);
        assert_eq!(found, (25..40).map(|n| (n, n)).collect::<Vec<_>>());
    }

    #[test]
    fn a_chunk_of_which_every_other_line_is_wanted_is_read_once() {
        const LINES: i64 = 300_000;
        let log = log((0..LINES).map(|line| line % 2).collect());
        let kept = Kept::of(&log, log.len());
        let (since, until) = (1, i64::MAX);
        let selection = Selection {
            window: Window { since, until },
            ..Selection::default()
        };
        let began = Instant::now();
        let found = read(&kept, selection);
        assert_eq!(i64::try_from(found.len()), Ok(LINES / 2));
        // From the beginning for each of them it takes more than ten minutes.
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn what_lies_before_is_not_read() {
        let kept = Kept::of(&log((0..20_000).collect()), 100);
        let from = |first_line, tail, since| Selection {
            first_line,
            tail,
            window: Window {
                since,
                ..Window::default()
            },
        };
        for (selection, count, most) in [
            (from(0, 150, i64::MIN), 150, 5),
            (from(19_950, 0, i64::MIN), 50, 2),
            (from(0, 0, 19_800), 200, 3),
        ] {
            kept.1.store(0, Ordering::Relaxed);
            assert_eq!(read(&kept, selection).len(), count);
            let asked = kept.1.load(Ordering::Relaxed);
            assert!(asked <= most, "{selection:?} reads {asked} chunks");
        }
    }
}
