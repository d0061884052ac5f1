//! What the ledger tells of its runs: how many there are, and which are lost or not stored.

use std::collections::BTreeMap;

use hindsight_run::Kind;
use jiff::Timestamp;
use serde::Serialize;

use super::Ledger;
use crate::ledger::{entry::Entry, uid::Uid};
use crate::plan::Annotations;

/// How many lost runs are kept by name; older ones are only counted.
const LOST_KEPT: usize = 1000;

/// A run that was not, or not wholly, stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unstored {
    /// UID of the run in the cluster.
    pub uid: Uid,
    /// Kind of the run, such as `TaskRun`.
    pub kind: &'static str,
    /// Namespace of the run; empty for kinds outside of namespaces.
    pub namespace: String,
    /// Name of the run, unique only within kind and namespace.
    pub name: String,
    /// Since when that is so.
    pub since: Timestamp,
    /// Why, as far as it is known.
    pub reason: String,
}

/// A run that would be deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Announced {
    /// UID of the run in the cluster.
    pub uid: Uid,
    /// Kind of the run, such as `TaskRun`.
    pub kind: &'static str,
    /// Namespace of the run; empty for kinds outside of namespaces.
    pub namespace: String,
    /// Name of the run, unique only within kind and namespace.
    pub name: String,
}

impl Ledger {
    /// Forgets a run of which nothing was stored, and keeps that it was lost.
    pub fn lose(&mut self, uid: &Uid, reason: &'static str, now: Timestamp) {
        let Some(entry) = self.remove(uid) else {
            return;
        };
        self.count("lost", entry.kind);
        if self.lost.len() == LOST_KEPT {
            self.lost.pop_front();
        }
        let mut lost = unstored(uid, &entry, now);
        lost.reason = match entry.error {
            Some(error) => format!("{reason} ({error})"),
            None => reason.to_owned(),
        };
        self.lost.push_back(lost);
    }

    /// How many runs are in each state, by state and kind. The states of runs that have left
    /// (`collected`, `lost`, and `left` for those that others deleted) only ever grow.
    pub fn counts(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        let mut counts = self.left.clone();
        for entry in self.entries.values() {
            *counts
                .entry((entry.state().name(), entry.kind.kind))
                .or_default() += 1;
        }
        counts
    }

    /// Runs that would have been deleted, if deleting were not only tried; by UID.
    pub fn announced(&self) -> Vec<Announced> {
        let announced = self.entries.iter().filter(|(_, entry)| entry.announced);
        let mut all: Vec<Announced> = announced
            .map(|(uid, entry)| Announced {
                uid: uid.clone(),
                kind: entry.kind.kind,
                namespace: entry.namespace.to_string(),
                name: entry.name.to_string(),
            })
            .collect();
        all.sort();
        all
    }

    /// How many stored runs the cluster takes no annotations on.
    pub fn unmarked(&self) -> usize {
        let all = self.entries.values();
        all.filter(|entry| entry.remembered.annotations == Annotations::Refused)
            .count()
    }

    /// The newest of the runs that were lost, at most `limit`.
    pub fn lost(&self, limit: usize) -> Vec<Unstored> {
        self.lost.iter().rev().take(limit).cloned().collect()
    }

    pub(super) fn count(&mut self, how: &'static str, kind: &Kind) {
        *self.left.entry((how, kind.kind)).or_default() += 1;
    }
}

pub(super) fn unstored(uid: &Uid, entry: &Entry, since: Timestamp) -> Unstored {
    Unstored {
        uid: uid.clone(),
        kind: entry.kind.kind,
        namespace: entry.namespace.to_string(),
        name: entry.name.to_string(),
        since,
        reason: entry.error.as_deref().unwrap_or("not tried yet").to_owned(),
    }
}
