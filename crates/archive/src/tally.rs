//! Whether two sets of rows are the same.

use std::fmt;

use hindsight_filter::model::{Etag, RunResult};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::Row;

/// The number of rows and the sum of their digests, whatever order they come in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    rows: u64,
    sum: [u64; 4],
}

impl Tally {
    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row: every byte of the record, its payload and its result.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        let digest = digest(row);
        for (sum, part) in self.sum.iter_mut().zip(digest.as_chunks().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*part));
        }
    }
}

impl fmt::Display for Tally {
    /// The number, and the sum as 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.rows)?;
        self.sum
            .iter()
            .try_for_each(|part| write!(f, "{part:016x}"))
    }
}

fn digest(row: &Row) -> [u8; 32] {
    let mut parts = Parts(Sha256::new());
    let Row { record, result, .. } = row;
    parts.text(&record.name.to_string());
    parts.version(&record.uid, &record.etag);
    parts.time(Some(record.create_time));
    parts.time(Some(record.update_time));
    parts.count(record.data.iter().len());
    if let Some(data) = &record.data {
        parts.text(&data.data_type);
        parts.bytes(&data.value);
    }
    parts.result(result);
    parts.0.finalize().into()
}

/// Values that are digested one after the other, each with its length.
struct Parts(Sha256);

impl Parts {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn time(&mut self, time: Option<Timestamp>) {
        let time = time.map(|time| time.as_nanosecond().to_le_bytes());
        self.bytes(time.as_ref().map_or(&[], |bytes| bytes));
    }

    fn version(&mut self, uid: &str, etag: &Etag) {
        self.text(uid);
        self.text(etag.as_str());
    }

    fn pairs<'p>(&mut self, pairs: impl ExactSizeIterator<Item = (&'p String, &'p String)>) {
        self.count(pairs.len());
        for (key, value) in pairs {
            self.text(key);
            self.text(value);
        }
    }

    fn result(&mut self, result: &RunResult) {
        self.text(&result.name.to_string());
        self.version(&result.uid, &result.etag);
        self.time(Some(result.create_time));
        self.time(Some(result.update_time));
        self.pairs(result.annotations.iter());
        self.count(result.summary.iter().len());
        if let Some(summary) = &result.summary {
            self.text(&summary.record.to_string());
            self.text(&summary.data_type);
            self.time(summary.start_time);
            self.time(summary.end_time);
            self.0.update(summary.status.to_le_bytes());
            self.pairs(summary.annotations.iter());
        }
    }
}
