//! What the ledger is asked for as a whole: which runs wait, which are not stored.

use std::collections::HashSet;

use crate::plan::Finished;

use super::{Entry, Ledger, State, Uid, Unstored, account::unstored};

impl Ledger {
    /// Those of [`Ledger::waiting`] that own the run, or own one that does, and so on.
    pub fn waiting_owners(&self, uid: &Uid) -> Vec<Uid> {
        let mut found: Vec<Uid> = Vec::new();
        let owners = |uid: &Uid| self.get(uid).map(|entry| entry.owners.to_vec());
        let mut open = owners(uid).unwrap_or_default();
        let mut known = HashSet::new();
        while let Some(owner) = open.pop() {
            if known.insert(owner.clone()) {
                open.extend(owners(&owner).unwrap_or_default());
                found.extend(self.get(&owner).is_some_and(|e| e.waits).then_some(owner));
            }
        }
        found
    }

    /// Finished runs that are not stored, the longest waiting first, at most `limit`.
    pub fn unstored_finals(&self, limit: usize) -> Vec<Unstored> {
        let since = |entry: &Entry| entry.remembered.finished.since().unwrap_or_default();
        let unstored_of = |(uid, entry): (&Uid, &Entry)| unstored(uid, entry, since(entry));
        let mut all: Vec<(&Uid, &Entry)> = self
            .entries
            .iter()
            .map(|(uid, entry)| (uid, entry.as_ref()))
            .filter(|(_, entry)| entry.state() == State::FinalSeen)
            .collect();
        // There may be very many: only those that are named are sorted and written down.
        if limit < all.len() {
            all.select_nth_unstable_by_key(limit, |(uid, entry)| (since(entry), *uid));
            all.truncate(limit);
        }
        all.sort_by_key(|(uid, entry)| (since(entry), *uid));
        all.into_iter().map(unstored_of).collect()
    }

    /// Runs that are gone from the cluster before their last state was stored.
    pub fn gone_unstored(&self) -> Vec<Uid> {
        self.that(|entry| {
            let known = &entry.remembered;
            let is_stored = known.copy().is_some() && known.finished == Finished::No;
            known.presence.is_gone() && !known.is_trusted() && !known.is_safe() && !is_stored
        })
    }
}
