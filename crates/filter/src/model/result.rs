//! Results.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Etag, RecordName, ResultName};

/// A group of records. `Result` on the wire; the prelude owns that name here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// Full name, `<parent>/results/<id>`, which never changes.
    pub name: ResultName,
    /// Identifier given by the server.
    pub uid: String,
    /// Version of the result, which each update changes.
    pub etag: Etag,
    /// When it was stored first.
    pub create_time: Timestamp,
    /// When its last change was stored.
    pub update_time: Timestamp,
    /// Key-value pairs that clients choose; filters may ask for them.
    pub annotations: BTreeMap<String, String>,
    /// What became of the run it is about.
    pub summary: Option<Summary>,
}

impl RunResult {
    /// How many bytes it takes in a message, about; never fewer.
    pub fn weight(&self) -> usize {
        let summary = self.summary.as_ref();
        let pairs = summary.map(|summary| &summary.annotations);
        // Each pair is framed by three tags and lengths, which may take five bytes each.
        let pairs = pairs.into_iter().flatten().chain(&self.annotations);
        let pairs: usize = pairs.map(|(key, value)| 16 + key.len() + value.len()).sum();
        1024 + summary.map_or(0, |summary| 1024 + summary.data_type.len()) + pairs
    }
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The record that is summed up.
    pub record: RecordName,
    /// The type of that record's data, such as `tekton.dev/v1.TaskRun`.
    pub data_type: String,
    /// When the run began.
    pub start_time: Option<Timestamp>,
    /// When the run ended.
    pub end_time: Option<Timestamp>,
    /// Number of `RecordSummary.Status`; unknown numbers are kept as they came.
    pub status: i32,
    /// Key-value pairs that clients choose, apart from the result's own.
    pub annotations: BTreeMap<String, String>,
}
