//! Records.

use bytes::Bytes;
use jiff::Timestamp;

use super::{Etag, RecordName, memo::Memo};

/// One stored object, such as a run, with its name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Full name, `<parent>/results/<id>/records/<id>`, which never changes.
    pub name: RecordName,
    /// Identifier given by the server.
    pub uid: String,
    /// Version of the record, which each update changes.
    pub etag: Etag,
    /// When it was stored first.
    pub create_time: Timestamp,
    /// When its last change was stored.
    pub update_time: Timestamp,
    /// The object; a record without one is legal.
    pub data: Option<Payload>,
}

impl Record {
    /// How many bytes it takes in a message, about; never fewer.
    pub fn weight(&self) -> usize {
        let data = self.data.as_ref();
        1024 + data.map_or(0, |data| data.data_type.len() + data.value.len())
    }
}

/// The bytes of a record, with the type that its client declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// What `value` is, such as `tekton.dev/v1.TaskRun`.
    pub data_type: String,
    /// The bytes exactly as they were sent.
    pub value: Bytes,
    pub(crate) memo: Memo,
}

impl Payload {
    /// Bytes of a type.
    pub fn new(data_type: String, value: Bytes) -> Self {
        Self {
            data_type,
            value,
            memo: Memo::default(),
        }
    }
}
