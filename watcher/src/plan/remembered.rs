//! What is known about one run besides its object, and how each fact changes it.

use std::sync::Arc;

use jiff::Timestamp;

use hindsight_proto::names::{Parent, RecordName, ResultName};
use hindsight_run::View;

use crate::{content::Digest, policy::Tightening, version::Version};

/// A copy that the server has confirmed to hold. There is one for each stored run, so it is small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// The three parts of the name of a record. The ledger has them anyway, mostly, and shares them.
    parent: Arc<str>,
    result: Arc<str>,
    id: Arc<str>,
    /// What.
    pub digest: Digest,
    /// The version of the object that it was made of.
    pub version: Version,
    /// It is of a finished run.
    pub is_final: bool,
}

impl StoredCopy {
    /// Where it is held.
    pub fn record(&self) -> RecordName {
        let parent = self.parent.parse::<Parent>();
        let result = parent.and_then(|parent| ResultName::new(parent, &self.result));
        let record = result.and_then(|result| result.record(&self.id));
        record.expect("the parts of a name make a name")
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

/// What others have to do with a run, as far as its plan depends on that; found out anew for each
/// plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// A run that would go with it and is not stored yet.
    pub waits_for: Option<String>,
    /// How many finished runs of the same pipeline are newer, if it matters.
    pub newer: usize,
    /// What its namespace asks for.
    pub namespace: Tightening,
}

/// Nobody has anything to do with it.
const NOBODY: &Others = &Others {
    waits_for: None,
    newer: 0,
    namespace: Tightening {
        paused: false,
        grace: None,
        keep_last: 0,
    },
};

/// What is known about one run. It is lost at a restart; nothing wrong may follow from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was first seen finished.
    pub final_since: Option<Timestamp>,
    /// It was finished when it was seen first, so that an earlier watcher may have stored it.
    pub born_final: bool,
    /// Each of its states counts, and none is its end: it is of a kind that lasts.
    pub standing: bool,
    /// The server was asked what it holds.
    pub asked: bool,
    /// It said of itself that it is stored, which was not verified yet.
    pub trusted: bool,
    /// What the server is known to hold.
    pub copy: Option<StoredCopy>,
    /// The server is known to hold its events.
    pub events: bool,
    /// Our annotations were written.
    pub annotated: bool,
    /// The cluster refuses our annotations on it, and would refuse them again.
    pub unmarked: bool,
    /// Our finalizer was taken off, because it is stored.
    pub released: bool,
    /// Its deletion was asked for, by us.
    pub deleted: bool,
    /// It is no longer in the cluster.
    pub gone: bool,
    /// Its result says that it was not seen to finish.
    pub closed: bool,
    /// The cluster refuses to put our finalizer on it.
    pub unprotected: bool,
    /// Filled in for a plan by whoever knows the others; apart, because it is not remembered.
    pub others: Option<Box<Others>>,
}

impl Remembered {
    /// Nothing is known but that the run was seen.
    pub fn new(now: Timestamp) -> Self {
        Self {
            first_seen: now,
            final_since: None,
            born_final: false,
            standing: false,
            asked: false,
            trusted: false,
            copy: None,
            events: false,
            annotated: false,
            unmarked: false,
            released: false,
            deleted: false,
            gone: false,
            closed: false,
            unprotected: false,
            others: None,
        }
    }

    /// What others have to do with it.
    pub fn others(&self) -> &Others {
        self.others.as_deref().unwrap_or(NOBODY)
    }

    /// The run was seen; `is_first` if never before.
    pub fn saw(&mut self, is_final: bool, is_first: bool, now: Timestamp) {
        if is_final && self.final_since.is_none() {
            self.final_since = Some(now);
            self.born_final = is_first;
        }
    }

    /// The server holds the object of `view` as `record`.
    pub fn stored(&mut self, record: &RecordName, view: &View<'_>) {
        self.copy = Some(StoredCopy {
            parent: record.result().parent().as_str().into(),
            result: record.result().id().into(),
            id: record.id().into(),
            digest: Digest::of(view.object()),
            version: view.resource_version().unwrap_or_default().into(),
            is_final: view.finish().done,
        });
    }

    /// The server was asked for `record` and gave `copy`.
    ///
    /// A copy of another run under our name is none of ours: the UID would tell, as it is
    /// part of what is compared.
    pub fn answered(&mut self, record: &RecordName, copy: Option<&View<'_>>) {
        self.asked = true;
        match copy {
            Some(copy) => self.stored(record, copy),
            None => self.copy = None,
        }
    }

    /// Whether an earlier watcher may have stored what we have not.
    pub(super) fn may_be_stored_already(&self, is_standing: bool) -> bool {
        (self.born_final || is_standing) && !self.asked && self.copy.is_none()
    }
}
