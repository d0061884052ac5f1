//! Lines as they are kept: the text and the times compressed apart from each other.
//!
//! A body is the length of the first part (4 bytes, little endian), a frame of zstd with the text, and
//! one with the times: the differences between them, then the number of holes and the differences
//! between those. Frames have a checksum.

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

use super::{Lines, ends, varint};

/// How hard zstd tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// For chunks that are soon merged with others: 150 MB/s.
    Quick,
    /// For chunks that stay as they are: 20 MB/s, and a fifth smaller; see docs/adr/0050.
    Thorough,
}

impl Effort {
    fn level(self) -> i32 {
        match self {
            Self::Quick => 3,
            Self::Thorough => 12,
        }
    }
}

/// What is known of a chunk without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of its first line.
    pub first_line: i64,
    /// How many lines it has.
    pub lines: i64,
    /// How many bytes of the log come before it.
    pub first_byte: i64,
    /// How many bytes its text has.
    pub bytes: i64,
    /// The earliest time of its lines, in microseconds.
    pub min_us: i64,
    /// The latest one.
    pub max_us: i64,
    /// Whether its last line is whole, so that lines may be added to it.
    pub is_closed: bool,
}

impl Head {
    /// What is known of lines that begin at this byte of their log.
    #[must_use]
    pub fn of(lines: &Lines, first_byte: i64) -> Self {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Self {
            first_line: lines.first,
            lines: count(lines.len()),
            first_byte,
            bytes: count(lines.text.len()),
            min_us: lines.times.iter().copied().min().unwrap_or_default(),
            max_us: lines.times.iter().copied().max().unwrap_or_default(),
            is_closed: lines.is_closed(),
        }
    }

    /// The number of the line after it.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.first_line.saturating_add(self.lines)
    }
}

/// A chunk as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What is known of it.
    pub head: Head,
    /// Its lines, as [`encode`] makes them.
    pub body: Bytes,
}

/// What is kept is no chunk, or another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a chunk of a log does not open: {0}")]
pub struct Damaged(pub String);

/// Lines as they are kept. It fails where zstd gets no memory.
pub fn encode(lines: &Lines, effort: Effort) -> Result<Vec<u8>, Damaged> {
    let mut times = Vec::with_capacity(lines.len() * 2);
    let mut before = 0_i64;
    for time in &lines.times {
        varint::put(&mut times, time.wrapping_sub(before));
        before = *time;
    }
    varint::put(
        &mut times,
        i64::try_from(lines.holes.len()).unwrap_or_default(),
    );
    before = lines.first;
    for hole in &lines.holes {
        varint::put(&mut times, hole - before);
        before = *hole;
    }
    let frame = |bytes: &[u8]| -> std::io::Result<Vec<u8>> {
        let mut zstd = Compressor::new(effort.level())?;
        zstd.include_checksum(true)?;
        zstd.compress(bytes)
    };
    let failed = |error: std::io::Error| Damaged(error.to_string());
    let text = frame(&lines.text).map_err(failed)?;
    let times = frame(&times).map_err(failed)?;
    let length = u32::try_from(text.len()).map_err(|_long| Damaged("it is too long".to_owned()))?;
    Ok([&length.to_le_bytes()[..], &text, &times].concat())
}

/// The lines of a chunk. It fails if they are not those that its head speaks of.
pub fn decode(chunk: &Chunk) -> Result<Lines, Damaged> {
    let damaged = |why: &str| Damaged(why.to_owned());
    let (length, rest) = chunk
        .body
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged("it is too short"))?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (text, times) = rest
        .split_at_checked(length)
        .ok_or_else(|| damaged("its first part is cut off"))?;
    let bytes = usize::try_from(chunk.head.bytes).map_err(|_odd| damaged("its size is odd"))?;
    let count = usize::try_from(chunk.head.lines).map_err(|_odd| damaged("its lines are odd"))?;
    if count > bytes {
        return Err(damaged("it has more lines than bytes"));
    }
    let text: Bytes = opened(text, bytes)?.into();
    let wanted = said(times)?;
    // A number takes ten bytes at most, and each line has a time and may be a hole.
    if wanted > count.saturating_mul(20) + 10 {
        return Err(damaged("it has more times than lines"));
    }
    let numbers = opened(times, wanted)?;
    let mut numbers = &*numbers;
    let mut next = || varint::take(&mut numbers).ok_or_else(|| damaged("a time is missing"));
    let first = chunk.head.first_line;
    let (mut lines, mut before) = (Vec::with_capacity(count), 0_i64);
    for _ in 0..count {
        before = before.wrapping_add(next()?);
        lines.push(before);
    }
    let mut holes = Vec::new();
    let mut hole = first;
    for _ in 0..next()? {
        hole = hole.wrapping_add(next()?);
        holes.push(hole);
    }
    if ends(&text).count() != count {
        return Err(damaged("it has other lines than were stored"));
    }
    Ok(Lines {
        first,
        text,
        times: lines,
        holes,
    })
}

/// How many bytes a frame says that it has.
fn said(frame: &[u8]) -> Result<usize, Damaged> {
    let size = get_frame_content_size(frame).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| Damaged("a part is no frame".to_owned()))
}

fn opened(frame: &[u8], bytes: usize) -> Result<Vec<u8>, Damaged> {
    // Looked at first, so that no damaged number decides how much memory is taken.
    if said(frame)? != bytes {
        return Err(Damaged("its size differs".to_owned()));
    }
    Decompressor::new()
        .and_then(|mut zstd| zstd.decompress(frame, bytes))
        .map_err(|error| Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(lines: &Lines) -> Chunk {
        Chunk {
            head: Head::of(lines, 0),
            body: encode(lines, Effort::Quick).unwrap().into(),
        }
    }

    proptest! {
        #[test]
        fn lines_come_back(
            first in 0..i64::MAX / 2,
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300),
            times in proptest::collection::vec(any::<i64>(), 300),
            every in 1_i64..20,
        ) {
            let count = ends(&text).count();
            let last = first + i64::try_from(count).unwrap();
            let holes = (first..last).filter(|line| line % every == 0).collect();
            let lines = Lines::new(first, text.into(), times[..count].to_vec(), holes).unwrap();
            prop_assert_eq!(decode(&chunk(&lines)).unwrap(), lines);
        }
    }

    #[test]
    fn damage_is_found_and_takes_no_memory() {
        let text = "line of a build\n".repeat(100);
        let lines = Lines::new(7, text.into(), vec![5; 100], vec![8]).unwrap();
        let whole = chunk(&lines);
        for at in 0..whole.body.len() {
            let mut body = whole.body.to_vec();
            body[at] ^= 0x40;
            let spoilt = Chunk {
                body: body.into(),
                ..whole.clone()
            };
            if let Ok(read) = decode(&spoilt) {
                assert_eq!(read, lines, "byte {at}");
            }
        }
        for bytes in [0, 1 << 50, -1] {
            let mut odd = whole.clone();
            odd.head.bytes = bytes;
            assert!(decode(&odd).is_err());
        }
        assert!(
            decode(&Chunk {
                body: Bytes::new(),
                ..whole
            })
            .is_err()
        );
    }
}
