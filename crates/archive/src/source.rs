//! What files are read from.

use std::{
    io::{self, Read},
    ops::Range,
    sync::Arc,
};

use bytes::{Buf as _, Bytes};
use parquet::{
    errors::{ParquetError, Result},
    file::reader::{ChunkReader, Length},
};

/// How much is read ahead where only the header of a page is wanted.
const AHEAD: u64 = 4 << 10;

/// A file of which parts are read.
pub trait Source: Send + Sync + 'static {
    /// How many bytes it has.
    fn size(&self) -> u64;

    /// Reads a part, which lies within the file. It fails if that cannot be read.
    fn read_at(&self, range: Range<u64>) -> io::Result<Bytes>;

    /// Is told of which parts something will be read next. It fails if those cannot be read.
    fn want(&self, _parts: &[Range<u64>]) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, range: Range<u64>) -> io::Result<Bytes> {
        let at = |place| usize::try_from(place).map_err(io::Error::other);
        let range = at(range.start)?..at(range.end)?;
        match range.start <= range.end && range.end <= self.len() {
            true => Ok(self.slice(range)),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Source for std::fs::File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |found| found.len())
    }

    fn read_at(&self, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        std::os::unix::fs::FileExt::read_exact_at(self, &mut bytes, range.start)?;
        Ok(bytes.into())
    }
}

/// A source as the parquet crate reads it.
pub(crate) struct Chunks<S>(pub(crate) Arc<S>);

impl<S> Clone for Chunks<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Source> Length for Chunks<S> {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl<S: Source> ChunkReader for Chunks<S> {
    type T = Ahead<S>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Ahead {
            source: self.clone(),
            at: start,
            read: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        match end.filter(|end| *end <= self.0.size()) {
            Some(end) => self.0.read_at(start..end).map_err(external),
            None => Err(ParquetError::EOF("it ends before a part of it".to_owned())),
        }
    }
}

fn external(error: io::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Reads on from a place.
pub(crate) struct Ahead<S> {
    source: Chunks<S>,
    at: u64,
    read: Bytes,
}

impl<S: Source> Read for Ahead<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            let end = self.source.0.size().min(self.at.saturating_add(AHEAD));
            if end > self.at {
                self.read = self.source.0.read_at(self.at..end)?;
                self.at = end;
            }
        }
        let count = out.len().min(self.read.len());
        self.read.copy_to_slice(&mut out[..count]);
        Ok(count)
    }
}
