//! What is known about one run besides its object, and how each fact changes it.

use jiff::Timestamp;
use serde_json::Value;

use hindsight_proto::{names::RecordName, run::View};

use crate::{content::Digest, policy::Tightening};

/// A copy that the server has confirmed to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// Where.
    pub record: RecordName,
    /// What.
    pub digest: Digest,
    /// The version of the object that it was made of.
    pub resource_version: String,
    /// It is of a finished run.
    pub is_final: bool,
}

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
    /// A run that would go with it and is not stored yet; filled in by whoever knows the
    /// others.
    pub waits_for: Option<String>,
    /// How many finished runs of the same pipeline are newer; filled in like `waits_for`, if it
    /// matters.
    pub newer: usize,
    /// What its namespace asks for; filled in like `waits_for`.
    pub namespace: Tightening,
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
            released: false,
            deleted: false,
            gone: false,
            closed: false,
            unprotected: false,
            waits_for: None,
            newer: 0,
            namespace: Tightening::default(),
        }
    }

    /// The run was seen; `is_first` if never before.
    pub fn saw(&mut self, is_final: bool, is_first: bool, now: Timestamp) {
        if is_final && self.final_since.is_none() {
            self.final_since = Some(now);
            self.born_final = is_first;
        }
    }

    /// The server holds `object` as `record`.
    pub fn stored(&mut self, record: RecordName, object: &Value) {
        let view = View::new(object);
        self.copy = Some(StoredCopy {
            record,
            digest: Digest::of(object),
            resource_version: view.resource_version().unwrap_or_default().to_owned(),
            is_final: view.finish().done,
        });
    }

    /// The server was asked for `record` and gave `copy`.
    ///
    /// A copy of another run under our name is none of ours: the UID would tell, as it is
    /// part of what is compared.
    pub fn answered(&mut self, record: RecordName, copy: Option<&Value>) {
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
