//! The state of the simulated server: every object, the one version counter, and the indexes by
//! which owners find their dependents. Rules about who may change what are in `lifecycle`.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    chores::Chore,
    history::{Event, History},
    kinds::Kind,
    objects::{Key, KindId, Stored},
    snapshot::Snapshot,
    webhook::Webhook,
};

/// A kind and its objects.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) kind: Arc<Kind>,
    pub(crate) objects: BTreeMap<Key, Arc<Stored>>,
}

/// Every object of the simulated cluster.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) shelves: BTreeMap<KindId, Shelf>,
    pub(crate) history: History,
    /// The version of the newest change.
    pub(crate) version: u64,
    /// The moment of what happens now.
    pub(crate) now: Timestamp,
    /// How many bytes etcd may have, if that is bounded.
    pub(crate) quota: Option<usize>,
    /// What discovery tells of, where it lags.
    pub(crate) discovered: Option<Vec<Arc<Kind>>>,
    /// What controllers still have to do, when they work in steps.
    pub(crate) chores: Option<VecDeque<Chore>>,
    /// Uids of pods that went, whose logs are still to be ended.
    pub(crate) gone_pods: Vec<String>,
    /// The validating webhooks.
    pub(crate) webhooks: Vec<Webhook>,
    next_kind: KindId,
    uids: HashMap<String, (KindId, Key)>,
    dependents: HashMap<String, BTreeSet<(KindId, Key)>>,
}

impl World {
    pub(crate) fn new(history: usize) -> Self {
        Self {
            shelves: BTreeMap::new(),
            history: History::with_capacity(history),
            version: 1,
            now: Timestamp::UNIX_EPOCH,
            quota: None,
            discovered: None,
            chores: None,
            gone_pods: Vec::new(),
            webhooks: Vec::new(),
            next_kind: 0,
            uids: HashMap::new(),
            dependents: HashMap::new(),
        }
    }

    /// Installs a kind, or another version of a kind that is already there.
    pub(crate) fn install(&mut self, kind: Kind) -> KindId {
        if let Some(id) = self.find(&kind.group, &kind.plural) {
            let shelf = self.shelves.get_mut(&id).expect("a found kind has a shelf");
            let mut versions = shelf.kind.versions.clone();
            versions.extend(
                kind.versions
                    .iter()
                    .filter(|new| !shelf.kind.serves(new))
                    .cloned(),
            );
            shelf.kind = Arc::new(Kind { versions, ..kind });
            return id;
        }
        let id = self.next_kind;
        self.next_kind += 1;
        self.shelves.insert(
            id,
            Shelf {
                kind: Arc::new(kind),
                objects: BTreeMap::new(),
            },
        );
        id
    }

    /// Takes a version of a kind away; its objects stay.
    pub(crate) fn stop_serving(&mut self, id: KindId, version: &str) {
        if let Some(shelf) = self.shelves.get_mut(&id) {
            Arc::make_mut(&mut shelf.kind)
                .versions
                .retain(|served| served != version);
            self.version += 1;
        }
    }

    /// Takes a kind away with its objects; nobody is told about each of them.
    pub(crate) fn uninstall(&mut self, id: KindId) {
        let Some(shelf) = self.shelves.remove(&id) else {
            return;
        };
        for (key, stored) in shelf.objects {
            self.unlink(id, &key, &stored);
        }
        self.version += 1;
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<KindId> {
        self.shelves
            .iter()
            .find(|(_, shelf)| shelf.kind.group == group && shelf.kind.plural == plural)
            .map(|(id, _)| *id)
    }

    pub(crate) fn kind(&self, id: KindId) -> Option<Arc<Kind>> {
        self.shelves.get(&id).map(|shelf| Arc::clone(&shelf.kind))
    }

    pub(crate) fn get(&self, id: KindId, key: &Key) -> Option<&Arc<Stored>> {
        self.shelves.get(&id)?.objects.get(key)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&(KindId, Key)> {
        self.uids.get(uid)
    }

    pub(crate) fn dependents(&self, uid: &str) -> Vec<(KindId, Key)> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Gives the next version to a write.
    pub(crate) fn tick(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Puts an object that carries the newest version in place, and remembers the change.
    pub(crate) fn put(&mut self, id: KindId, stored: Stored) -> Arc<Stored> {
        let after = Arc::new(stored);
        let shelf = self
            .shelves
            .get_mut(&id)
            .expect("objects are put on existing shelves");
        let before = shelf.objects.insert(after.key.clone(), Arc::clone(&after));
        if let Some(before) = &before {
            self.unlink(id, &after.key, before);
        }
        self.uids.insert(after.uid.clone(), (id, after.key.clone()));
        for owner in &after.owners {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.insert((id, after.key.clone()));
        }
        let version = after.version;
        let event = Event {
            version,
            at: self.now,
            kind: id,
            before,
            after: Arc::clone(&after),
            deleted: false,
        };
        self.history.push(event);
        after
    }

    /// Takes an object away; `last` is the object as it goes, at the version of the deletion.
    pub(crate) fn take(&mut self, id: KindId, last: Stored) -> Arc<Stored> {
        let after = Arc::new(last);
        let shelf = self
            .shelves
            .get_mut(&id)
            .expect("objects are taken from existing shelves");
        let before = shelf.objects.remove(&after.key);
        if shelf.kind.is_pods() {
            self.gone_pods.push(after.uid.clone());
        }
        if let Some(before) = &before {
            self.unlink(id, &after.key, before);
        }
        let version = after.version;
        let event = Event {
            version,
            at: self.now,
            kind: id,
            before,
            after: Arc::clone(&after),
            deleted: true,
        };
        self.history.push(event);
        after
    }

    /// The objects of a kind as they were at `version`, or `None` when that is forgotten.
    pub(crate) fn at(&self, id: KindId, version: u64) -> Option<Snapshot<'_>> {
        let mut undone = BTreeMap::new();
        for event in self
            .history
            .since(version)?
            .filter(|event| event.kind == id)
        {
            undone
                .entry(event.after.key.clone())
                .or_insert_with(|| event.before.clone());
        }
        Some(Snapshot::new(&self.shelves.get(&id)?.objects, undone))
    }

    /// The version that is nearest to `version` and not forgotten.
    pub(crate) fn remembered(&self, version: u64) -> u64 {
        version.clamp(self.history.forgotten(), self.version)
    }

    fn unlink(&mut self, id: KindId, key: &Key, stored: &Stored) {
        self.uids.remove(&stored.uid);
        for owner in &stored.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(&(id, key.clone()));
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }
}
