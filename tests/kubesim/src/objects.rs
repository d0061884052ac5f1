//! One object as the simulated server keeps it, where it is, and how it is shown.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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
    /// The bytes `{"apiVersion":"..","kind":".."`, with which each object begins.
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
