//! The bytes of an object as lines: text or JSON, compressed or not.

use std::io::{self, Write as _};

use flate2::write::MultiGzDecoder;
use hindsight_run::json;
use hindsight_storage::LogSource;
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::yield_now;

use super::{HomeError, Spool, unzstd::Unzstd};

/// How bytes of gzip and of zstd begin.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes that are unpacked at once, which may become a thousand times as many. Others have a turn after each.
const PIECE: usize = 1 << 10;
/// Longest line of JSON, in bytes.
const LINE: usize = 1 << 20;

/// What collectors call the text of a line, its time, and what it is of.
const TEXTS: [&str; 4] = ["message", "log", "msg", "MESSAGE"];
const TIMES: [&str; 4] = ["timestamp", "@timestamp", "time", "date"];
const PODS: [&str; 3] = ["/kubernetes/pod_name", "/kubernetes/pod/name", "/pod"];
const CONTAINERS: [&str; 3] = [
    "/kubernetes/container_name",
    "/kubernetes/container/name",
    "/container",
];

/// What the bytes of objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// The text of the log.
    Text,
    /// An object of JSON for each line, as Vector and Fluent Bit write it.
    Json,
}

/// How an object is packed.
enum Packed {
    /// Its first bytes have not come.
    Unknown(Vec<u8>),
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zstd(Unzstd),
}

/// Makes lines of the bytes of one object.
pub(super) struct Decoder {
    packed: Packed,
    lines: Lines,
}

/// Makes lines of the text of one object.
struct Lines {
    format: ObjectFormat,
    source: LogSource,
    modified_us: i64,
    /// A line of JSON that is not whole.
    line: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(format: ObjectFormat, source: LogSource, modified: Timestamp) -> Self {
        let lines = Lines {
            format,
            source,
            modified_us: modified.as_microsecond(),
            line: Vec::new(),
        };
        Self {
            packed: Packed::Unknown(Vec::new()),
            lines,
        }
    }

    /// Takes the next bytes of the object.
    pub(super) async fn take(&mut self, bytes: &[u8], to: &mut Spool) -> Result<(), HomeError> {
        let Packed::Unknown(first) = &mut self.packed else {
            return self.unpack(bytes, to).await;
        };
        first.extend_from_slice(bytes);
        if first.len() < ZSTD.len() {
            return Ok(());
        }
        let first = std::mem::take(first);
        self.begin(&first)?;
        self.unpack(&first, to).await
    }

    /// Takes the end of the object.
    pub(super) async fn finish(mut self, to: &mut Spool) -> Result<(), HomeError> {
        if let Packed::Unknown(first) = &mut self.packed {
            let first = std::mem::take(first);
            self.begin(&first)?;
            self.unpack(&first, to).await?;
        }
        match &mut self.packed {
            Packed::Gzip(gzip) => {
                gzip.try_finish().map_err(damaged)?;
                self.lines.take(gzip.get_mut(), to)?;
            }
            Packed::Zstd(zstd) if !zstd.is_whole() => {
                return Err(damaged(io::ErrorKind::UnexpectedEof.into()));
            }
            _ => {}
        }
        self.lines.json_line(&self.lines.line, to)
    }

    fn begin(&mut self, first: &[u8]) -> Result<(), HomeError> {
        self.packed = if first.starts_with(&ZSTD) {
            Packed::Zstd(Unzstd::new().map_err(damaged)?)
        } else if first.starts_with(&GZIP) {
            Packed::Gzip(MultiGzDecoder::new(Vec::new()))
        } else {
            Packed::Plain
        };
        Ok(())
    }

    async fn unpack(&mut self, mut bytes: &[u8], to: &mut Spool) -> Result<(), HomeError> {
        let lines = &mut self.lines;
        match &mut self.packed {
            Packed::Gzip(gzip) => {
                for piece in bytes.chunks(PIECE) {
                    if to.is_full() {
                        break;
                    }
                    gzip.write_all(piece).map_err(damaged)?;
                    lines.take(gzip.get_mut(), to)?;
                    gzip.get_mut().clear();
                    yield_now().await;
                }
                Ok(())
            }
            Packed::Zstd(zstd) => {
                while !to.is_full() {
                    let text = zstd.next(&mut bytes).map_err(damaged)?;
                    if text.is_empty() && bytes.is_empty() {
                        break;
                    }
                    lines.take(text, to)?;
                    yield_now().await;
                }
                Ok(())
            }
            Packed::Plain | Packed::Unknown(_) => lines.take(bytes, to),
        }
    }
}

impl Lines {
    fn take(&mut self, text: &[u8], to: &mut Spool) -> Result<(), HomeError> {
        if self.format == ObjectFormat::Text {
            return to.write(&self.source, self.modified_us, text);
        }
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LINE {
                let line = std::mem::take(&mut self.line);
                self.json_line(&line, to)?;
            }
        }
        Ok(())
    }

    /// Gives the line that an object of JSON tells of, and what is none as it is.
    fn json_line(&self, line: &[u8], to: &mut Spool) -> Result<(), HomeError> {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() {
            return Ok(());
        }
        let object = json::parse(trimmed).ok().filter(Value::is_object);
        let text = object
            .as_ref()
            .and_then(|object| TEXTS.iter().find_map(|key| object[*key].as_str()));
        let (Some(object), Some(text)) = (&object, text) else {
            return to.write(&self.source, self.modified_us, line);
        };
        let said = |places: &[&str]| {
            let mut found = places.iter().filter_map(|place| object.pointer(place));
            found.find_map(Value::as_str).map(str::to_owned)
        };
        let source = LogSource {
            pod: said(&PODS).unwrap_or_else(|| self.source.pod.clone()),
            container: said(&CONTAINERS).unwrap_or_else(|| self.source.container.clone()),
            restart: 0,
        };
        let times = TIMES.iter().filter_map(|key| object.get(*key));
        let time = times.filter_map(microseconds).next();
        let mut text = text.as_bytes().to_vec();
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        to.write(&source, time.unwrap_or(self.modified_us), &text)
    }
}

fn damaged(error: std::io::Error) -> HomeError {
    HomeError::Away(format!("an object does not unpack: {error}"))
}

/// A time in RFC 3339, or in seconds since 1970.
fn microseconds(time: &Value) -> Option<i64> {
    if let Some(text) = time.as_str() {
        let time: Timestamp = text.parse().ok()?;
        return Some(time.as_microsecond());
    }
    let seconds = time.as_f64()?;
    let time = Timestamp::from_second(seconds.trunc() as i64).ok()?;
    Some(time.as_microsecond() + (seconds.fract() * 1e6) as i64)
}
