//! The capture ledger: what is known about every run in the cluster, and what became of those
//! that left it. Small on purpose: no objects, a few hundred bytes for each run.
//!
//! It is the only memory of the watcher and is rebuilt from the cluster and the server after a
//! restart. It decides nothing and calls nobody.

mod account;
mod entry;
mod lists;
mod owners;
mod recency;
mod uid;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use jiff::Timestamp;

use hindsight_run::{Kind, View};

pub use entry::{Entry, State};
pub use owners::Owners;
pub use recency::{Recency, Series};
pub use uid::Uid;

use crate::{
    content::is_partial,
    plan::{Remembered, ServerCopy},
};

pub use account::{Announced, Unstored};

/// All runs in the cluster, and those that were lost.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Boxed, because a table is twice as large as what is in it, and more while it grows.
    entries: HashMap<Uid, Box<Entry>>,
    /// By a hash of kind, namespace and name: whoever looks there compares the names.
    names: HashMap<u64, Uid>,
    hasher: RandomState,
    /// Owners and what they own.
    children: BTreeSet<(Uid, Uid)>,
    /// Namespaces and parents of records.
    texts: HashSet<Arc<str>>,
    left: BTreeMap<(&'static str, &'static str), u64>,
    lost: VecDeque<Unstored>,
    recency: Recency,
}

impl Ledger {
    /// A ledger without runs, as at the start of a watcher.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a run was seen in the `list`-th list of its kind, or after it.
    ///
    /// Returns its entry, or `None` if the object has no UID or name.
    pub fn saw(
        &mut self,
        kind: &'static Kind,
        object: &View<'_>,
        list: u32,
        now: Timestamp,
    ) -> Option<(Uid, &mut Entry)> {
        let uid = self.known(object.uid()?);
        let name = object.name()?;
        let is_first = !self.entries.contains_key(&uid);
        if is_first {
            let namespace = self.text(object.namespace().unwrap_or_default());
            let key = self.key(kind, &namespace, name);
            self.names.insert(key, uid.clone());
            let remembered = Remembered {
                lifetime: kind.lifetime(),
                ..Remembered::new(now)
            };
            let entry = Entry {
                kind,
                namespace,
                name: name.into(),
                owners: Owners::None,
                remembered,
                error: None,
                reconciled: None,
                last_seen_version: 0,
                announced: false,
                has_event: false,
                turn: None,
                overdue: false,
                unselected: false,
                partial: false,
                waits: false,
                listed: list,
            };
            self.entries.insert(uid.clone(), Box::new(entry));
        }
        let owners: Owners = object.owners().map(|o| self.known(o.uid)).collect();
        let entry = self.entries.get_mut(&uid)?;
        // It may be adopted, or set free.
        if *entry.owners != *owners {
            for owner in &*entry.owners {
                self.children.remove(&(owner.clone(), uid.clone()));
            }
            let own = |owner: &Uid| (owner.clone(), uid.clone());
            self.children.extend(owners.iter().map(own));
            entry.owners = owners;
        }
        entry.partial = is_partial(object.object());
        entry.listed = list;
        entry.remembered.saw(object.finish().done, is_first, now);
        Some((uid, entry))
    }

    /// The UID as it is kept, so that it is kept once.
    fn known(&self, uid: &str) -> Uid {
        let run = self.entries.get_key_value(uid).map(|(uid, _)| uid);
        if let Some(uid) = run {
            return uid.clone();
        }
        let uid = Uid::from(uid);
        let owner = self.owned(&uid).next().map(|(owner, _)| owner.clone());
        owner.unwrap_or(uid)
    }

    /// The runs that `owner` owns, each with the owner.
    fn owned(&self, owner: &Uid) -> impl Iterator<Item = &(Uid, Uid)> {
        let first = (owner.clone(), Uid::from(""));
        let all = self.children.range(first..);
        all.take_while(move |(of, _)| of == owner)
    }

    /// The text as it is kept, so that it is kept once.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        if self.texts.len() == self.texts.capacity() {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
        }
        let text = Arc::from(text);
        self.texts.insert(Arc::clone(&text));
        text
    }

    /// Keeps where a run is stored in texts that are kept anyway.
    pub fn share(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get_mut(uid) else {
            return;
        };
        let mut server = std::mem::take(&mut entry.remembered.server);
        if let ServerCopy::Stored(copy) = &mut server {
            let parent = self.text(copy.parent());
            copy.share(parent, |id| self.known(id).share());
        }
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.remembered.server = server;
        }
    }

    fn key(&self, kind: &Kind, namespace: &str, name: &str) -> u64 {
        let name = (kind.group, kind.plural, namespace, name);
        self.hasher.hash_one(name)
    }

    /// The entry of one run; `None` if the ledger has none.
    pub fn get(&self, uid: &Uid) -> Option<&Entry> {
        self.entries.get(uid).map(AsRef::as_ref)
    }

    /// One run, to note something about it.
    pub fn get_mut(&mut self, uid: &Uid) -> Option<&mut Entry> {
        self.entries.get_mut(uid).map(AsMut::as_mut)
    }

    /// The run that has a name now.
    pub fn named(&self, kind: &Kind, namespace: &str, name: &str) -> Option<(&Uid, &Entry)> {
        let uid = self.names.get(&self.key(kind, namespace, name))?;
        let entry = self.entries.get(uid)?;
        let is_it = entry.kind == kind && &*entry.namespace == namespace && &*entry.name == name;
        is_it.then_some((uid, entry))
    }

    /// The runs of which this holds.
    fn that(&self, holds: impl Fn(&Entry) -> bool) -> Vec<Uid> {
        let found = self.entries.iter().filter(|(_, entry)| holds(entry));
        found.map(|(uid, _)| uid.clone()).collect()
    }

    /// Runs that wait for others before they may be collected.
    pub fn waiting(&self) -> Vec<Uid> {
        self.that(|entry| entry.waits)
    }

    /// The runs of `kind` that were not in its `list`-th list.
    pub fn unlisted(&self, kind: &Kind, list: u32) -> Vec<Uid> {
        self.that(|entry| entry.kind == kind && entry.listed != list)
    }

    /// The runs that would go with `uid`: those it owns, those they own, and so on.
    pub fn descendants(&self, uid: &Uid) -> Vec<Uid> {
        let mut found = Vec::new();
        let mut known = HashSet::from([uid.clone()]);
        let mut open = vec![uid.clone()];
        while let Some(owner) = open.pop() {
            for (_, child) in self.owned(&owner) {
                if known.insert(child.clone()) {
                    found.push(child.clone());
                    open.push(child.clone());
                }
            }
        }
        found
    }

    /// Forgets a run that is gone, and counts how it left.
    pub fn forget(&mut self, uid: &Uid) {
        let Some(entry) = self.remove(uid) else {
            return;
        };
        let (presence, server) = (entry.remembered.presence, &entry.remembered.server);
        let how = match server {
            _ if presence.is_delete_requested() && entry.is_safe() => State::Collected.name(),
            ServerCopy::Trusted | ServerCopy::Stored(_) if presence.is_gone() => "left",
            _ => return,
        };
        self.count(how, entry.kind);
    }

    /// How many runs are in the cluster, as far as it is known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no run is in the cluster.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Which finished runs of their pipelines are the newest.
    pub fn recency(&mut self) -> &mut Recency {
        &mut self.recency
    }

    /// The runs in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Uid> {
        self.that(|entry| &*entry.namespace == namespace)
    }

    fn remove(&mut self, uid: &Uid) -> Option<Entry> {
        self.recency.remove(uid);
        let entry = *self.entries.remove(uid)?;
        for owner in &*entry.owners {
            self.children.remove(&(owner.clone(), uid.clone()));
        }
        let key = self.key(entry.kind, &entry.namespace, &entry.name);
        // A newer run may have the name by now.
        if self.names.get(&key) == Some(uid) {
            self.names.remove(&key);
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
