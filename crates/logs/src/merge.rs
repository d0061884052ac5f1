//! How chunks grow: what is appended is merged with the chunks before it that are not greater.
//!
//! The last chunks of a log have ever smaller sizes, so that they are few, and each byte is
//! written again only as often as the size of its chunk doubles.

use super::{Head, Lines, ends};

/// Most bytes of text of one chunk, unless its only line has more.
pub const MAX_CHUNK: usize = 1 << 20;
/// Most bytes of text of chunks that stay as they are, likewise.
pub const MAX_PACKED: usize = 4 << 20;
/// So many lines of several chunks become one at most: the time of a line takes eight bytes in memory.
pub const MAX_PACKED_LINES: i64 = 1 << 17;

/// From which line on chunks are to be written anew when so many bytes are appended after them; `last`
/// are the heads of the last chunks, in order. With `all`, for a log that is sealed, also those that are
/// greater. A chunk that ends within a line stays as it is.
#[must_use]
pub fn first_merged(last: &[Head], bytes: usize, all: bool) -> Option<i64> {
    let most = i64::try_from(MAX_CHUNK).unwrap_or(i64::MAX);
    let mut sum = i64::try_from(bytes).unwrap_or(i64::MAX);
    let mut from = None;
    for head in last.iter().rev() {
        let fits = head.bytes.saturating_add(sum) <= most || sum == 0;
        if !head.is_closed || head.bytes >= most || !fits || (!all && head.bytes > sum) {
            break;
        }
        sum += head.bytes;
        from = Some(head.first_line);
    }
    from
}

/// The chunks that lines become. One ends before it has more than `most` bytes.
#[must_use]
pub fn chunks_of(lines: &Lines, most: usize) -> Vec<Lines> {
    let (mut chunks, mut from, mut began, mut before) = (Vec::new(), 0, 0, 0);
    let mut count = 0;
    for (at, end) in ends(&lines.text).enumerate() {
        if end - began > most && at > from {
            chunks.push(lines.slice(from..at));
            (from, began) = (at, before);
        }
        before = end;
        count = at + 1;
    }
    if count > from {
        chunks.push(lines.slice(from..count));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(first_line: i64, bytes: i64) -> Head {
        Head {
            first_line,
            lines: 1,
            first_byte: 0,
            bytes,
            min_us: 0,
            max_us: 0,
            is_closed: true,
        }
    }

    /// Appends pieces of so many bytes; says how many chunks there are, and how many bytes were written.
    fn appended(pieces: usize, size: i64) -> (usize, i64) {
        let (mut chunks, mut written, mut next) = (Vec::<Head>::new(), 0, 0);
        for _ in 0..pieces {
            let mut new = head(next, size);
            if let Some(from) = first_merged(&chunks, usize::try_from(size).unwrap(), false) {
                let kept = chunks.partition_point(|chunk| chunk.first_line < from);
                for merged in chunks.split_off(kept) {
                    new.bytes += merged.bytes;
                    new.first_line = new.first_line.min(merged.first_line);
                }
            }
            written += new.bytes;
            chunks.push(new);
            next += 1;
        }
        (chunks.len(), written)
    }

    #[test]
    fn many_small_appends_become_few_chunks_and_are_written_a_few_times() {
        let (chunks, written) = appended(10_000, 1024);
        assert!(chunks < 35, "{chunks}");
        assert!(written < 10_000 * 1024 * 12, "{written}");
    }

    #[test]
    fn a_sealed_log_has_no_small_chunks_side_by_side() {
        let last = [head(0, 600 << 10), head(1, 300 << 10), head(2, 10)];
        assert_eq!(first_merged(&last, 0, true), Some(0));
        assert_eq!(first_merged(&last, 5, false), None);
        assert_eq!(first_merged(&last, 10, false), Some(2));
        assert_eq!(first_merged(&[head(0, 2 << 20)], 0, true), None);
        let cut = Head {
            is_closed: false,
            ..head(0, 10)
        };
        assert_eq!(first_merged(&[cut, head(1, 5)], 20, false), Some(1));
    }

    #[test]
    fn chunks_are_cut_between_lines() {
        let line = ["x".repeat(99), "\n".to_owned()].concat();
        let count = MAX_CHUNK / 100 * 2 + 5;
        let all = Lines::new(3, line.repeat(count).into(), vec![1; count], Vec::new()).unwrap();
        let chunks = chunks_of(&all, MAX_CHUNK);
        assert_eq!(chunks.len(), 3);
        assert!(chunks.iter().all(|chunk| chunk.text.len() <= MAX_CHUNK));
        assert_eq!(Lines::joined(&chunks), all);
        assert_eq!(chunks_of(&Lines::default(), MAX_CHUNK), []);
    }
}
