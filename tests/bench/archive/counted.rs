//! A file that counts the bytes that are read of it.

use std::{
    fs::File,
    io,
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use hindsight_archive::Source;

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

impl Source for Counted {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.counter
            .fetch_add(range.end - range.start, Ordering::Relaxed);
        self.file.read_at(range)
    }
}
