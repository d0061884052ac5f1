//! What is counted of objects, for whoever watches the server.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Totals;

/// What was done since the start, and what there was when it was last looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Objects that were uploaded.
    pub written: u64,
    /// Objects that were downloaded to read a payload.
    pub read: u64,
    /// Objects that were removed from the object store.
    pub removed: u64,
    /// Bytes that were uploaded.
    pub bytes_written: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Uploads, reads and removals that did not succeed.
    pub failed_writes: u64,
    /// Reads that did not succeed.
    pub failed_reads: u64,
    /// Removals that did not succeed.
    pub failed_removals: u64,
    /// What the database said when the sweeper last came by.
    pub totals: Totals,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) written: AtomicU64,
    pub(super) read: AtomicU64,
    pub(super) removed: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) bytes_read: AtomicU64,
    pub(super) failed_writes: AtomicU64,
    pub(super) failed_reads: AtomicU64,
    pub(super) failed_removals: AtomicU64,
    held: AtomicU64,
    bytes: AtomicU64,
    loose: AtomicU64,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counts {
    /// Remembers what the database says.
    pub(super) fn note(&self, totals: &Totals) {
        self.held.store(totals.held, Ordering::Relaxed);
        self.bytes.store(totals.bytes, Ordering::Relaxed);
        self.loose.store(totals.loose, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Counted {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            written: get(&self.written),
            read: get(&self.read),
            removed: get(&self.removed),
            bytes_written: get(&self.bytes_written),
            bytes_read: get(&self.bytes_read),
            failed_writes: get(&self.failed_writes),
            failed_reads: get(&self.failed_reads),
            failed_removals: get(&self.failed_removals),
            totals: Totals {
                held: get(&self.held),
                bytes: get(&self.bytes),
                loose: get(&self.loose),
            },
        }
    }
}
