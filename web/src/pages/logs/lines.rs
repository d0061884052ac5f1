//! Lines of one log as a page shows them: a range of numbers, or the last ones, as many as fit.

use std::collections::VecDeque;

use futures::StreamExt as _;
use hindsight_logs::ends;
use hindsight_proto::v1::{LogSource, ReadLogRequest, ReadLogResponse};
use jiff::Timestamp;

use super::sources::Source;
use crate::ansi::{Piece, pieces};
use crate::api::{Answer, log_of};
use crate::ask::Ask;
use crate::html::weight;

/// Lines of a page.
pub(super) const LINES: i64 = 1_000;
/// Bytes of lines in a page, as they are written there.
const BYTES: usize = 1 << 20;
/// Bytes of a line that are shown.
const CUT: usize = 4 << 10;
/// Bytes that are read for a page, of lines of up to 256 KiB.
const READ: usize = 8 << 20;
/// How many of the last lines are tried to be read, until they are few enough bytes.
const TAILS: [i64; 3] = [LINES, 125, 15];
/// What a line takes beside its text, and a piece of it.
const FRAME: usize = 96;
const SPAN: usize = 40;

/// A line as it is shown.
#[derive(Debug)]
pub(in crate::pages) struct Line {
    /// The number that the page shows, from 1.
    pub(in crate::pages) number: i64,
    /// When it was written, in microseconds.
    time: i64,
    /// Whether it stands for lines that are missing.
    pub(in crate::pages) is_hole: bool,
    pub(in crate::pages) pieces: Vec<Piece>,
    /// Bytes that are not shown.
    pub(in crate::pages) cut: usize,
}

/// Lines that follow one another.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) all: VecDeque<Line>,
    bytes: usize,
}

impl Line {
    fn of(number: i64, time: i64, is_hole: bool, line: &[u8]) -> Self {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut end = line.len().min(CUT);
        // A character is shown whole or not at all.
        while end < line.len() && end > CUT - 4 && line[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        Self {
            number: number.saturating_add(1),
            time,
            is_hole,
            pieces: pieces(&line[..end]),
            cut: line.len() - end,
        }
    }

    /// Bytes that it takes in a page.
    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter();
        FRAME + pieces.map(|it| SPAN + weight(&it.text)).sum::<usize>()
    }

    /// When it was written, in the zone of the page.
    pub(super) fn at(&self, ask: &Ask) -> String {
        let Ok(time) = Timestamp::from_microsecond(self.time) else {
            return String::new();
        };
        let time = time.to_zoned(ask.clock.zone.clone());
        time.strftime("%m-%d %H:%M:%S%.3f").to_string()
    }
}

/// What asks for lines of a log.
fn request(source: &Source) -> ReadLogRequest {
    let LogSource {
        pod,
        container,
        restart,
    } = source.id();
    let is_uploaded = container.is_empty();
    ReadLogRequest {
        name: log_of(&source.record),
        pod,
        containers: match is_uploaded {
            true => Vec::new(),
            false => vec![container],
        },
        restart: (!is_uploaded).then_some(restart),
        ..ReadLogRequest::default()
    }
}

/// The lines of a message that are of a source, each with its number, its time, whether it is a hole, and its text.
fn each(source: &LogSource, piece: &ReadLogResponse, mut take: impl FnMut(i64, i64, bool, &[u8])) {
    let Some(lines) = piece
        .lines
        .as_ref()
        .filter(|_| piece.source.as_ref() == Some(source))
    else {
        return;
    };
    let (mut from, mut time, mut number) = (0, 0_i64, lines.first_line);
    for (at, end) in ends(&lines.text).enumerate() {
        let later = lines.times.get(at).copied().unwrap_or_default();
        time = time.saturating_add(later);
        let is_hole = lines.holes.contains(&number);
        take(number, time, is_hole, &lines.text[from..end]);
        (from, number) = (end, number.saturating_add(1));
    }
}

impl Lines {
    /// Lines from a number on, from 0, as many as fit.
    pub(super) async fn from(ask: &Ask, source: &Source, first: i64) -> Answer<Self> {
        let mut found = Self::default();
        let asked = ReadLogRequest {
            first_line: first,
            limit: LINES,
            ..request(source)
        };
        let mut is_full = false;
        found
            .read(ask, source, asked, |lines, line| {
                is_full = is_full || lines.bytes + line.bytes() > BYTES;
                if !is_full || lines.all.is_empty() {
                    lines.bytes += line.bytes();
                    lines.all.push_back(line);
                }
                !is_full
            })
            .await?;
        Ok(found)
    }

    /// The last lines, as many as fit.
    pub(super) async fn last(ask: &Ask, source: &Source, most: i64) -> Answer<Self> {
        for tail in TAILS {
            let mut found = Self::default();
            let tail = tail.min(most);
            let asked = ReadLogRequest {
                tail,
                ..request(source)
            };
            let is_all = found
                .read(ask, source, asked, |lines, line| {
                    lines.bytes += line.bytes();
                    lines.all.push_back(line);
                    while lines.bytes > BYTES && lines.all.len() > 1 {
                        let first = lines.all.pop_front();
                        lines.bytes -= first.map_or(0, |first| first.bytes());
                    }
                    true
                })
                .await?;
            if is_all {
                return Ok(found);
            }
        }
        Ok(Self::default())
    }

    /// Reads lines while they are taken and not too many bytes are read; says whether those were all.
    async fn read(
        &mut self,
        ask: &Ask,
        source: &Source,
        asked: ReadLogRequest,
        mut take: impl FnMut(&mut Self, Line) -> bool,
    ) -> Answer<bool> {
        let (id, mut read) = (source.id(), 0);
        let mut messages = ask.api.lines(asked).await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            let mut goes_on = true;
            each(&id, &message, |number, time, is_hole, line| {
                goes_on = goes_on && take(self, Line::of(number, time, is_hole, line));
            });
            read += message.lines.map_or(0, |lines| lines.text.len());
            if !goes_on || read > READ {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Line {
        fn text(&self) -> String {
            self.pieces.iter().map(|it| it.text.as_str()).collect()
        }
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        let line = Line::of(6, 0, false, b"a\r\n");
        assert_eq!((line.number, line.text().as_str(), line.cut), (7, "a", 0));
        let long = format!("a{}\n", "é".repeat(CUT));
        let line = Line::of(0, 0, false, long.as_bytes());
        assert_eq!(line.text().len() + line.cut, long.len() - 1);
        assert!(!line.text().contains('\u{fffd}') && line.text().len() <= CUT);
        let odd = vec![0x80; CUT + 100];
        assert_eq!(Line::of(0, 0, false, &odd).cut, 104);
        assert!(Line::of(0, 0, false, b"\n").pieces.is_empty());
    }

    #[test]
    fn lines_of_a_message_have_numbers_times_and_holes() {
        let source = LogSource {
            pod: "p".to_owned(),
            ..LogSource::default()
        };
        let message = ReadLogResponse {
            source: Some(source.clone()),
            lines: Some(hindsight_proto::v1::LogLines {
                first_line: 4,
                text: b"a\nb\nc".to_vec(),
                times: vec![1_000, 5, -2],
                holes: vec![5],
            }),
        };
        let mut found = Vec::new();
        each(&source, &message, |number, time, is_hole, line| {
            found.push((number, time, is_hole, line.to_vec()));
        });
        assert_eq!(found[0], (4, 1_000, false, b"a\n".to_vec()));
        assert_eq!(found[1], (5, 1_005, true, b"b\n".to_vec()));
        assert_eq!(found[2], (6, 1_003, false, b"c".to_vec()));
        each(&LogSource::default(), &message, |_, _, _, _| {
            panic!("of another source")
        });
    }
}
