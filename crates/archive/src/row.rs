//! What a row of a Parquet file is made of, and is read as.

use std::sync::Arc;

use hindsight_filter::model::{Record, RunResult};

/// A record with its payload, and the result that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The record, with its payload if that was read.
    pub record: Record,
    /// The result of that name.
    pub result: Arc<RunResult>,
}

impl Row {
    /// How many bytes its payload has.
    pub fn payload_bytes(&self) -> usize {
        let data = self.record.data.as_ref();
        data.map_or(0, |data| data.value.len())
    }
}
