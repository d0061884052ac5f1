//! What is in a spool, as far as it is kept in memory.

use std::collections::{HashMap, HashSet};

use crate::{content::Digest, ledger::Uid};

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) files: HashMap<Uid, Kept>,
    /// The runs of which a state is being written: no two of one, because they may be the same file.
    pub(super) writing: HashSet<Uid>,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) version: u64,
    pub(super) digest: Digest,
}

impl Kept {
    /// Whether nothing is lost with it once the server holds the run in this state.
    pub(super) fn is_stored(&self, digest: Digest, version: u64) -> bool {
        self.digest == digest || self.version < version
    }
}

pub(super) enum Inserted {
    /// In place of another one, perhaps.
    Newest(Option<Kept>),
    /// A newer one is there.
    Outdated,
}

impl Index {
    pub(super) fn insert(&mut self, uid: Uid, kept: Kept) -> Inserted {
        if let Some(known) = self.files.get(&uid)
            && known.version >= kept.version
        {
            return Inserted::Outdated;
        }
        self.bytes += kept.size;
        let old = self.files.insert(uid, kept);
        self.bytes -= old.as_ref().map_or(0, |old| old.size);
        Inserted::Newest(old)
    }

    pub(super) fn remove(&mut self, uid: &Uid) -> Option<Kept> {
        let kept = self.files.remove(uid)?;
        self.bytes -= kept.size;
        Some(kept)
    }
}
