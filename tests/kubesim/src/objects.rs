//! The state of the simulated server: every object, the one version counter, and the indexes by
//! which owners find their dependents. Rules about who may change what are in `lifecycle`.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    controllers::Chore,
    history::{Event, History},
    kinds::Kind,
    snapshot::Snapshot,
};

/// Which installed kind; never reused, so that history never speaks of a kind installed later.
pub(crate) type KindId = u32;

/// Where an object is within its kind. The order is the order of lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Empty for kinds outside of namespaces.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// An owner that a dependent names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    /// Whether the owner waits for this dependent in a foreground deletion.
    pub(crate) blocks: bool,
}

/// One version of one object: what the server looks at, and the rest as the bytes it sends.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) version: u64,
    pub(crate) uid: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleting: bool,
    /// `,"metadata":{..},"spec":{..}..}`: everything after `apiVersion` and `kind`.
    rest: Bytes,
    /// Where `metadata` ends in `rest`.
    metadata_end: usize,
}

impl Stored {
    /// Reads what the server needs out of `object`, whose `metadata` is complete.
    pub(crate) fn new(object: &Value) -> Self {
        let none = Map::new();
        let metadata = object["metadata"].as_object().unwrap_or(&none);
        let text = |field: &str| {
            metadata
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let list = |field: &str| {
            metadata
                .get(field)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default()
        };
        let mut rest = b",\"metadata\":".to_vec();
        append(&mut rest, &object["metadata"]);
        let metadata_end = rest.len();
        for (field, value) in object.as_object().into_iter().flatten() {
            if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
                rest.push(b',');
                append(&mut rest, field);
                rest.push(b':');
                append(&mut rest, value);
            }
        }
        rest.push(b'}');
        rest.shrink_to_fit();
        Self {
            key: Key::new(text("namespace"), text("name")),
            version: text("resourceVersion").parse().unwrap_or_default(),
            uid: text("uid").into(),
            labels: metadata
                .get("labels")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            owners: list("ownerReferences")
                .iter()
                .filter_map(|owner| {
                    Some(Owner {
                        uid: owner["uid"].as_str()?.to_owned(),
                        blocks: owner["blockOwnerDeletion"] == true,
                    })
                })
                .collect(),
            finalizers: list("finalizers")
                .iter()
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
            deleting: metadata
                .get("deletionTimestamp")
                .is_some_and(|at| !at.is_null()),
            rest: rest.into(),
            metadata_end,
        }
    }

    /// How many bytes the object takes.
    pub(crate) fn size(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Some of its fields; those that do not fit are as if they were not there.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> T {
        let whole = [b"{\"_\":0", &self.rest[..]].concat();
        serde_json::from_slice(&whole).unwrap_or_default()
    }

    /// The text of the field at `path`, such as `involvedObject.uid`; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> String {
        let whole: Value = self.read();
        let found = path.split('.').fold(&whole, |inner, field| &inner[field]);
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Appends the whole object as JSON.
    pub(crate) fn write(&self, types: &Types, out: &mut Vec<u8>) {
        out.extend_from_slice(&types.head);
        out.extend_from_slice(&self.rest);
    }

    /// Appends the object without `apiVersion` and `kind`, as lists of built-in kinds have it.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(&self.rest[1..]);
    }

    /// Appends `PartialObjectMetadata`.
    pub(crate) fn write_metadata(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata""#);
        out.extend_from_slice(&self.rest[..self.metadata_end]);
        out.push(b'}');
    }

    pub(crate) fn value(&self, types: &Types) -> Value {
        let mut text = Vec::with_capacity(types.head.len() + self.rest.len());
        self.write(types, &mut text);
        serde_json::from_slice(&text).expect("a stored object is JSON")
    }
}

fn append<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("JSON in memory can always be written");
}

/// The `apiVersion` and `kind` an object is shown under.
#[derive(Debug, Clone)]
pub(crate) struct Types {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// `{"apiVersion":"..","kind":".."`
    head: Vec<u8>,
}

impl Types {
    pub(crate) fn new(api_version: String, kind: String) -> Self {
        let mut head = b"{\"apiVersion\":".to_vec();
        append(&mut head, &api_version);
        head.extend_from_slice(b",\"kind\":");
        append(&mut head, &kind);
        Self {
            api_version,
            kind,
            head,
        }
    }
}

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
