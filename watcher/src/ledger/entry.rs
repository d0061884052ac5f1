//! What is known about one run.

use std::sync::Arc;

use jiff::Timestamp;

use hindsight_run::Kind;

use super::Owners;
use crate::{
    content::Digest,
    plan::{Finished, Remembered, ServerCopy},
    version::Version,
};

/// What is known about a run, in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It was seen and is not finished.
    Seen,
    /// It is finished, and that is not stored yet.
    FinalSeen,
    /// The server confirmed to hold it; finished or, if runs are stored as they progress, not.
    Stored {
        /// The version that was stored.
        version: Version,
        /// The digest of its content.
        sha256: Digest,
    },
    /// It says of itself that it is stored; the server was not asked yet.
    Trusted,
    /// It was stored and then deleted by us.
    Collected,
    /// It left the cluster before anything of it was stored.
    Lost {
        /// Why nothing was stored.
        reason: &'static str,
    },
}

impl State {
    /// The state without its details, as metrics name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::FinalSeen => "final_seen",
            Self::Stored { .. } => "stored",
            Self::Trusted => "marked",
            Self::Collected => "collected",
            Self::Lost { .. } => "lost",
        }
    }
}

/// What the ledger knows of one run, by its UID.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The kind of the object, which says when it is finished.
    pub kind: &'static Kind,
    /// Its namespace; one text for all runs in it.
    pub namespace: Arc<str>,
    /// Name of the object in its namespace.
    pub name: Box<str>,
    /// UIDs of its owners.
    pub owners: Owners,
    /// What plans are made from.
    pub remembered: Remembered,
    /// Why the last attempt to do something about it failed.
    pub error: Option<Box<str>>,
    /// The version that was last dealt with to the end.
    pub reconciled: Option<Version>,
    /// The version that the watch showed last; what is older is outdated.
    pub last_seen_version: u64,
    /// A dry run has logged that it would be deleted.
    pub announced: bool,
    /// An event says that it cannot be stored.
    pub has_event: bool,
    /// When its turn is to be deleted.
    pub turn: Option<Timestamp>,
    /// Its finalizer came off before it was stored, which was counted.
    pub overdue: bool,
    /// Its labels are no longer those that are watched.
    pub unselected: bool,
    /// A part of it is not in its object, and would go with it.
    pub partial: bool,
    /// It could be collected, but for others that are not stored or not known yet.
    pub waits: bool,
    /// The list in which it was seen last.
    pub(super) listed: u32,
}

impl Entry {
    /// How far the run is: seen, final, stored or collected.
    pub fn state(&self) -> State {
        let finished = self.remembered.finished;
        match &self.remembered.server {
            ServerCopy::Stored(copy) if copy.is_final() || finished == Finished::No => {
                State::Stored {
                    version: copy.version.clone(),
                    sha256: copy.digest,
                }
            }
            ServerCopy::Trusted => State::Trusted,
            _ if finished == Finished::No => State::Seen,
            _ => State::FinalSeen,
        }
    }

    /// Its final state is stored.
    pub fn is_safe(&self) -> bool {
        self.remembered.is_safe()
    }
}
