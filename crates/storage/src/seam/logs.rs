//! Logs: what every durable store of them can do.
//!
//! A log belongs to a run by the name that the run's record has or will have, and goes with that record or
//! with its result.

use std::{fmt::Debug, num::NonZeroU32};

use async_trait::async_trait;
use hindsight_filter::model::{Parent, RecordName, ResultPattern};
use hindsight_filter::order::Position;
use hindsight_logs::{Chunk, Chunks, Lines, Window};
use jiff::Timestamp;

use super::Error;

/// Where lines of a log come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogKind {
    /// Lines of a container, appended as they come.
    Container,
    /// A text that was uploaded whole.
    Uploaded,
    /// An upload that is not finished, which no list has.
    Uploading,
}

/// One start of one container. Of an upload all is empty, and `pod` tells unfinished ones apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogSource {
    /// Name of the pod.
    pub pod: String,
    /// Name of the container in it.
    pub container: String,
    /// How often the container was restarted before.
    pub restart: i32,
}

/// Which lines are meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogKey {
    /// The record of the run.
    pub run: RecordName,
    /// Where they come from.
    pub kind: LogKind,
    /// Of which container.
    pub source: LogSource,
}

/// What is stored of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLog {
    /// The number by which chunks name it.
    pub row: i64,
    /// Which one it is.
    pub key: LogKey,
    /// Lines, which is the number of the next one.
    pub lines: i64,
    /// Bytes of the lines.
    pub bytes: i64,
    /// Bytes that they take.
    pub stored_bytes: i64,
    /// When the first line was written, in microseconds.
    pub first_us: Option<i64>,
    /// When the last line was written.
    pub last_us: Option<i64>,
    /// How many lines stand for lines that are missing.
    pub holes: i64,
    /// SHA-256 of all bytes, once nothing follows.
    pub sha256: Option<Vec<u8>>,
    /// Lines from the first on that lie in chunks which stay as they are.
    pub packed: i64,
    /// Changes with every change.
    pub version: i64,
    /// Whether the signature of its run is known to be that with its end.
    pub signed: bool,
}

/// Lines to append.
#[derive(Debug, Clone)]
pub struct LogAppend {
    /// Where they belong.
    pub key: LogKey,
    /// Consecutive parts, each with at least a line.
    pub parts: Vec<Lines>,
}

/// A step of the list of logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLog {
    /// The place after it.
    pub position: Position,
    /// A source; none for a result without any.
    pub log: Option<StoredLog>,
}

/// Durable storage of logs.
#[async_trait]
pub trait LogStore: Debug + Send + Sync + 'static {
    /// Every source of a run, in the order in which they began; without unfinished uploads.
    async fn logs(&self, run: &RecordName) -> Result<Vec<StoredLog>, Error>;

    /// One source of a run; `None` if nothing is stored of it.
    async fn log(&self, key: &LogKey) -> Result<Option<StoredLog>, Error>;

    /// The sources of results after a place, without unfinished uploads: those of the newest results first, those of one
    /// result in the order of their keys. A result without sources is a step of its own, so that none reads more than
    /// it gives. Fewer than `most` are the last.
    async fn list_logs(
        &self,
        scope: &ResultPattern,
        after: Option<&Position>,
        most: NonZeroU32,
    ) -> Result<Vec<ListedLog>, Error>;

    /// Appends lines of different sources, durably, and says what is stored of each afterwards. Lines that
    /// are stored already are passed over. It is [`Error::OutOfSequence`] if lines before them are missing,
    /// [`Error::OtherLine`] if what is stored under their numbers has other times, [`Error::Sealed`] if nothing may
    /// follow, and [`Error::Missing`] without the result.
    async fn append_logs(
        &self,
        appends: &[LogAppend],
        now: Timestamp,
    ) -> Vec<Result<StoredLog, Error>>;

    /// Seals a source, so that nothing can follow. [`super::Maintenance::pack_logs`] compresses it again.
    async fn seal_log(&self, key: &LogKey, now: Timestamp) -> Result<StoredLog, Error>;

    /// Makes a finished upload the one of its run, in the place of the one before.
    async fn replace_upload(&self, key: &LogKey, now: Timestamp) -> Result<StoredLog, Error>;

    /// Removes one source, and says whether it was there.
    async fn delete_log(&self, key: &LogKey) -> Result<bool, Error>;

    /// Removes unfinished uploads of a run that nothing was added to since a time.
    async fn delete_stale_uploads(&self, run: &RecordName, since: Timestamp) -> Result<u64, Error>;

    /// Removes every source of a run, and says how many there were.
    async fn delete_logs(&self, run: &RecordName) -> Result<u64, Error>;

    /// Bytes of the lines of all logs below a parent. It reads a row for each source.
    async fn log_usage(&self, parent: &Parent) -> Result<u64, Error>;

    /// The first chunk of a source with this line or a later one that touches the window.
    async fn next_chunk(&self, row: i64, line: i64, window: Window)
    -> Result<Option<Chunk>, Error>;

    /// The last chunk of a source with an earlier line that touches the window.
    async fn chunk_before(
        &self,
        row: i64,
        line: i64,
        window: Window,
    ) -> Result<Option<Chunk>, Error>;
}

/// The chunks of one source.
#[derive(Debug, Clone, Copy)]
pub struct LogChunks<'s> {
    store: &'s dyn LogStore,
    row: i64,
}

impl<'s> LogChunks<'s> {
    /// Those of the source with this number.
    #[must_use]
    pub fn new(store: &'s dyn LogStore, row: i64) -> Self {
        Self { store, row }
    }
}

#[async_trait]
impl Chunks for LogChunks<'_> {
    type Error = Error;

    async fn next(&self, line: i64, window: Window) -> Result<Option<Chunk>, Error> {
        self.store.next_chunk(self.row, line, window).await
    }

    async fn before(&self, line: i64, window: Window) -> Result<Option<Chunk>, Error> {
        self.store.chunk_before(self.row, line, window).await
    }
}
