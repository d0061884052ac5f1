//! What a row of a Parquet file is made of, and is read as.

use std::sync::Arc;

use hindsight_filter::columns::{ObjectColumns, object_columns};
use hindsight_filter::model::{Record, RunResult};

/// A record with its payload, and the result that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The record, with its payload if that was read.
    pub record: Record,
    /// The result of that name.
    pub result: Arc<RunResult>,
    /// What the store knew of the record beyond its payload.
    pub stored: Option<Stored>,
}

/// What a store knows of a record that neither its name nor its payload tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The number of its row, which decides among rows that are equal in the order of a list.
    pub number: i64,
    /// The key of the signature of its failure, which the end of a log may have told.
    pub signature: Option<String>,
    /// What it says of its end.
    pub message: Option<String>,
}

impl Row {
    /// How many bytes its payload has.
    pub fn payload_bytes(&self) -> usize {
        let data = self.record.data.as_ref();
        data.map_or(0, |data| data.value.len())
    }

    /// What columns keep of the payload.
    pub(crate) fn object(&self) -> ObjectColumns {
        let mut object = self
            .record
            .data
            .as_ref()
            .map(object_columns)
            .unwrap_or_default();
        if let Some(stored) = &self.stored {
            object.signature.clone_from(&stored.signature);
            object.message.clone_from(&stored.message);
        }
        object
    }
}
