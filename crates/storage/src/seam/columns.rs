//! Records of a list with what columns keep of their payloads, for callers that show many.

use bytes::Bytes;
use hindsight_filter::columns::{ObjectColumns, object_columns};
use hindsight_filter::model::Record;

/// A record without the bytes of its payload, and the columns of that payload.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordColumns {
    /// The record; of its data only the type is there.
    pub record: Record,
    /// What stores keep of the payload, the same as [`object_columns`] reads from it.
    pub object: ObjectColumns,
}

impl RecordColumns {
    /// What stores keep of `record`, which has its payload.
    pub fn of(mut record: Record) -> Self {
        let object = record.data.as_ref().map(object_columns).unwrap_or_default();
        if let Some(data) = &mut record.data {
            data.value = Bytes::new();
        }
        Self { record, object }
    }

    /// How many bytes it takes in a message, about; never fewer.
    pub fn weight(&self) -> usize {
        self.record.weight() + self.object.weight()
    }
}
