//! What the server holds of one run.

use std::sync::Arc;

use hindsight_proto::names::{Parent, RecordName, ResultName};
use hindsight_run::View;

use crate::{content::Digest, version::Version};

/// What the server is known to hold of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerCopy {
    /// The server was not asked.
    #[default]
    Unknown,
    /// The server was not asked; the run says of itself that it is stored as it is.
    Trusted,
    /// The server was asked and holds nothing.
    Absent,
    /// The server has confirmed this copy.
    Stored(StoredCopy),
}

/// A copy that the server has confirmed to hold. There is one for each stored run, so it is small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// The three parts of the name of a record. The ledger has them anyway, mostly, and shares them.
    parent: Arc<str>,
    result: Arc<str>,
    id: Arc<str>,
    /// Of the content of the copy.
    pub digest: Digest,
    /// The version of the object that it was made of.
    pub version: Version,
    /// Whether the history tells how the run ended.
    pub end: CopyEnd,
}

/// Whether the history tells how a stored run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyEnd {
    /// The copy is of a run that is not finished.
    Open,
    /// As `Open`, and the result says that the run was not seen to finish.
    Closed,
    /// The copy is of a finished run.
    Finished,
}

impl StoredCopy {
    /// The copy of the object of `view` that is held as `record`.
    pub fn new(record: &RecordName, view: &View<'_>) -> Self {
        Self {
            parent: record.result().parent().as_str().into(),
            result: record.result().id().into(),
            id: record.id().into(),
            digest: Digest::of(view.object()),
            version: view.resource_version().unwrap_or_default().into(),
            end: match view.finish().done {
                true => CopyEnd::Finished,
                false => CopyEnd::Open,
            },
        }
    }

    /// Where it is held.
    pub fn record(&self) -> RecordName {
        let parent = self.parent.parse::<Parent>();
        let result = parent.and_then(|parent| ResultName::new(parent, &self.result));
        let record = result.and_then(|result| result.record(&self.id));
        record.expect("the parts of a name make a name")
    }

    /// Whether it is of a finished run.
    pub fn is_final(&self) -> bool {
        self.end == CopyEnd::Finished
    }

    /// The parent of the record.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Whether it is held as `record`.
    pub fn is_at(&self, record: &RecordName) -> bool {
        let result = record.result();
        let parts = (&*self.parent, &*self.result, &*self.id);
        parts == (result.parent().as_str(), result.id(), record.id())
    }

    /// Keeps its name in texts that are kept anyway.
    pub fn share(&mut self, parent: Arc<str>, id: impl Fn(&str) -> Arc<str>) {
        self.parent = parent;
        self.result = id(&self.result);
        self.id = id(&self.id);
    }
}
