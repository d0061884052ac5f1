//! An archive file in a bucket, as its reader reads it.

use std::{
    io,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use hindsight_archive::Source;
use tokio::runtime::Handle;

use crate::{codec::objects::Bucket, seam::Error};

/// How much is read of the end of a file when it is opened: its footer and Bloom filters, mostly.
const END: u64 = 64 << 10;
/// Most bytes of a file that is read at once where it is known to have rows: one request takes less time than four
/// that follow each other, and clients of buckets join parts that are not farther apart.
const WHOLE: u64 = 1 << 20;

/// A file of which parts are kept in memory while it is read. It is read on threads that may block.
pub(super) struct Object {
    bucket: Arc<Bucket>,
    path: String,
    size: u64,
    is_whole: bool,
    runtime: Handle,
    parts: Mutex<Vec<(Range<u64>, Bytes)>>,
    /// Why the bucket did not give a part.
    failed: Mutex<Option<Error>>,
}

impl Object {
    pub(super) fn new(bucket: &Arc<Bucket>, path: &str, size: u64, runtime: Handle) -> Self {
        Self {
            bucket: Arc::clone(bucket),
            path: path.to_owned(),
            size,
            is_whole: false,
            runtime,
            parts: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// The same of one that is read at once, unless it is large.
    pub(super) fn whole(self) -> Self {
        Self {
            is_whole: self.size <= WHOLE,
            ..self
        }
    }

    /// Whether it is read at once.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Reads the end, which says where everything is, or all of it.
    pub(super) fn want_end(&self) -> io::Result<()> {
        let bytes = if self.is_whole { self.size } else { END };
        let end = self.size.saturating_sub(bytes)..self.size;
        self.want(std::slice::from_ref(&end))
    }

    /// Why the bucket did not give a part; otherwise what was read is damaged.
    pub(super) fn explain(&self, error: &hindsight_archive::Error) -> Error {
        let failed = self.failed.lock();
        let failed = failed.unwrap_or_else(PoisonError::into_inner).take();
        failed.unwrap_or_else(|| {
            let why = hindsight_runtime::error::report(error);
            Error::Corrupt(format!("the archive file `{}`: {why}", self.path))
        })
    }

    fn read(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Bytes>> {
        let read = self.bucket.get_ranges(&self.path, ranges);
        self.runtime.block_on(read).map_err(|error| {
            let told = io::Error::other(error.to_string());
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            told
        })
    }

    fn known(&self, wanted: &Range<u64>) -> Option<Bytes> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let holds =
            |part: &&(Range<u64>, Bytes)| part.0.start <= wanted.start && wanted.end <= part.0.end;
        let (range, bytes) = parts.iter().find(holds)?;
        let at = |place: u64| usize::try_from(place - range.start).ok();
        Some(bytes.slice(at(wanted.start)?..at(wanted.end)?))
    }
}

impl Source for Object {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> io::Result<Bytes> {
        if let Some(bytes) = self.known(&range) {
            return Ok(bytes);
        }
        let read = self.read(std::slice::from_ref(&range))?;
        let bytes = read.into_iter().next().unwrap_or_default();
        match bytes.len() as u64 == range.end - range.start {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn want(&self, parts: &[Range<u64>]) -> io::Result<()> {
        let missing = parts.iter().filter(|part| self.known(part).is_none());
        let missing: Vec<_> = missing.cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let read = self.read(&missing)?;
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.extend(missing.into_iter().zip(read));
        Ok(())
    }
}
