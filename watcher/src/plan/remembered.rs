//! What is known about one run besides its object, and how each fact changes it.

use jiff::Timestamp;

use hindsight_proto::names::RecordName;
use hindsight_run::{Lifetime, View};

use super::stored::{CopyEnd, ServerCopy, StoredCopy};
use crate::policy::Tightening;

/// What is known about other runs, as far as the plan for a run depends on that; found out anew
/// for each plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// A run that would go with it and is not stored yet.
    pub waits_for: Option<String>,
    /// How many finished runs of the same pipeline are newer, if it matters.
    pub newer: usize,
    /// What its namespace asks for.
    pub namespace: Tightening,
    /// Its logs are read, and not all of them are stored yet.
    pub logs_open: bool,
}

/// No other run matters.
const NONE: &Others = &Others {
    waits_for: None,
    newer: 0,
    namespace: Tightening {
        paused: false,
        grace: None,
        keep_last: 0,
    },
    logs_open: false,
};

/// Whether a run is in the cluster, and whether this watcher asked for its deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is in the cluster.
    Present,
    /// It is in the cluster, and the API server has accepted our delete.
    DeleteRequested,
    /// It is no longer in the cluster.
    Gone,
    /// It is no longer in the cluster, after our delete.
    Collected,
}

impl Presence {
    /// Whether it is no longer in the cluster.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Gone | Self::Collected)
    }

    /// Whether this watcher asked for the deletion.
    pub fn is_delete_requested(self) -> bool {
        matches!(self, Self::DeleteRequested | Self::Collected)
    }

    /// The run left the cluster, or is there although that was said.
    pub fn set_gone(&mut self, is_gone: bool) {
        *self = match (is_gone, self.is_delete_requested()) {
            (false, false) => Self::Present,
            (false, true) => Self::DeleteRequested,
            (true, false) => Self::Gone,
            (true, true) => Self::Collected,
        };
    }

    /// The API server has accepted our delete.
    pub fn request_delete(&mut self) {
        *self = match self.is_gone() {
            true => Self::Collected,
            false => Self::DeleteRequested,
        };
    }
}

/// Whether a run was seen finished, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// It was seen unfinished, or not at all.
    No,
    /// It was finished when it was seen first, so that an earlier watcher may have stored it.
    AtFirstSight(Timestamp),
    /// It was seen before it finished.
    Later(Timestamp),
}

impl Finished {
    /// When it was first seen finished.
    pub fn since(self) -> Option<Timestamp> {
        match self {
            Self::No => None,
            Self::AtFirstSight(since) | Self::Later(since) => Some(since),
        }
    }
}

/// What is known about the record of a run's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRecord {
    /// The server is not known to hold it.
    Unknown,
    /// The server holds it under the name that this watcher gives.
    Own,
    /// The server holds it under a name that another watcher gave.
    Foreign,
    /// The server holds what the cluster told until this time, of a run that goes on.
    Until(Timestamp),
}

/// What became of our annotations on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotations {
    /// They were not written yet.
    Unwritten,
    /// They are on the run, or were.
    Written,
    /// The cluster refuses them on this run, and would refuse them again.
    Refused,
}

/// What became of our finalizer on a run. Whether it is on is read off the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalizerState {
    /// It may be put on.
    Open,
    /// The cluster refuses to put it on.
    Refused,
    /// It was taken off, because the run is stored.
    Released,
}

/// What is known about one run. It is lost at a restart; nothing wrong may follow from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// Whether it was seen finished.
    pub finished: Finished,
    /// What ends it, by its kind.
    pub lifetime: Lifetime,
    /// Whether it is in the cluster.
    pub presence: Presence,
    /// What the server holds of it.
    pub server: ServerCopy,
    /// What the server holds of its events.
    pub events: EventRecord,
    /// Whether our annotations are on it.
    pub annotations: Annotations,
    /// Whether our finalizer may be put on it.
    pub finalizer: FinalizerState,
    /// Filled in for a plan from what is known about other runs; apart, because it is not remembered.
    pub others: Option<Box<Others>>,
}

impl Remembered {
    /// Nothing is known but that the run was seen.
    pub fn new(now: Timestamp) -> Self {
        Self {
            first_seen: now,
            finished: Finished::No,
            lifetime: Lifetime::UntilFinished,
            presence: Presence::Present,
            server: ServerCopy::Unknown,
            events: EventRecord::Unknown,
            annotations: Annotations::Unwritten,
            finalizer: FinalizerState::Open,
            others: None,
        }
    }

    /// The copy that the server has confirmed to hold.
    pub fn copy(&self) -> Option<&StoredCopy> {
        match &self.server {
            ServerCopy::Stored(copy) => Some(copy),
            _ => None,
        }
    }

    /// Whether the server holds its final state.
    pub fn is_safe(&self) -> bool {
        self.copy().is_some_and(StoredCopy::is_final)
    }

    /// Whether it says of itself that it is stored, which was not verified yet.
    pub fn is_trusted(&self) -> bool {
        self.server == ServerCopy::Trusted
    }

    /// What is known about other runs.
    pub fn others(&self) -> &Others {
        self.others.as_deref().unwrap_or(NONE)
    }

    /// The run was seen; `is_first` if never before.
    pub fn saw(&mut self, is_final: bool, is_first: bool, now: Timestamp) {
        if is_final && self.finished == Finished::No {
            self.finished = match is_first {
                true => Finished::AtFirstSight(now),
                false => Finished::Later(now),
            };
        }
    }

    /// The server holds the object of `view` as `record`.
    pub fn stored(&mut self, record: &RecordName, view: &View<'_>) {
        self.server = ServerCopy::Stored(StoredCopy::new(record, view));
    }

    /// The server was asked for `record` and gave `copy`.
    ///
    /// A copy of another run under our name is none of ours: the UID would tell, as it is
    /// part of what is compared.
    pub fn answered(&mut self, record: &RecordName, copy: Option<&View<'_>>) {
        match copy {
            Some(copy) => self.stored(record, copy),
            None => self.server = ServerCopy::Absent,
        }
        // What is not stored any more may need protection again.
        if self.finalizer == FinalizerState::Released && !self.is_safe() {
            self.finalizer = FinalizerState::Open;
        }
    }

    /// It says of itself that it is stored as it is.
    pub fn trust(&mut self) {
        if self.server == ServerCopy::Unknown {
            self.server = ServerCopy::Trusted;
        }
    }

    /// Its result says that it was not seen to finish.
    pub fn close(&mut self) {
        if let ServerCopy::Stored(copy) = &mut self.server
            && copy.end == CopyEnd::Open
        {
            copy.end = CopyEnd::Closed;
        }
    }

    /// The cluster refuses to put our finalizer on it.
    pub fn refuse_finalizer(&mut self) {
        if self.finalizer == FinalizerState::Open {
            self.finalizer = FinalizerState::Refused;
        }
    }

    /// Whether an earlier watcher may have stored what we have not.
    pub(super) fn may_be_stored_already(&self, is_long_lived: bool) -> bool {
        let was_not_asked = matches!(self.server, ServerCopy::Unknown | ServerCopy::Trusted);
        let may_be_stored = is_long_lived || matches!(self.finished, Finished::AtFirstSight(_));
        was_not_asked && may_be_stored
    }
}
