//! A file that counts the bytes that are read of it.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parquet::{
    errors::Result,
    file::reader::{ChunkReader, Length},
};

type Counter = Arc<AtomicU64>;

/// A file, and the counter that others may share.
#[derive(Debug)]
pub(crate) struct Counted {
    file: File,
    counter: Counter,
}

impl Counted {
    pub(crate) fn counter() -> Counter {
        Counter::default()
    }

    pub(crate) fn taken(counter: &Counter) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    pub(crate) fn open(path: &Path, counter: &Counter) -> Self {
        Self {
            file: File::open(path).unwrap(),
            counter: Arc::clone(counter),
        }
    }
}

impl Length for Counted {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Counted {
    type T = Counting;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Counting(
            self.file.get_read(start)?,
            Arc::clone(&self.counter),
        ))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.counter.fetch_add(length as u64, Ordering::Relaxed);
        self.file.get_bytes(start, length)
    }
}

/// What is read one after the other.
#[derive(Debug)]
pub(crate) struct Counting(BufReader<File>, Counter);

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
