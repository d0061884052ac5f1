//! Who owns which field, as `metadata.managedFields` keeps it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Path, Step, leaves};
use crate::clock::seconds;

/// Fields of `metadata` that the server owns.
pub(super) const SERVER_METADATA: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Server-side apply: what is no longer applied goes.
    Apply,
    Update,
}

/// Who writes: one manager may hold several entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) subresource: String,
    pub(crate) api_version: String,
}

impl Writer {
    /// Whether both write to the same entry.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
    }
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) writer: Writer,
    pub(crate) time: String,
    pub(crate) fields: BTreeSet<Path>,
}

/// All entries of `managedFields` of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ownership(pub(crate) Vec<Share>);

impl Ownership {
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array();
        Self(entries.into_iter().flatten().map(read_share).collect())
    }

    /// The value of `metadata.managedFields`.
    pub(crate) fn to_value(&self) -> Value {
        self.0.iter().map(write_share).collect()
    }

    /// The fields of `writer`, when it owns any.
    pub(crate) fn fields_of(&self, writer: &Writer) -> Option<&BTreeSet<Path>> {
        self.0
            .iter()
            .find(|share| share.writer.is(writer))
            .map(|share| &share.fields)
    }

    /// Sets what `writer` owns; nothing changes, not even the time, when it owned just that.
    pub(crate) fn set(&mut self, writer: &Writer, fields: BTreeSet<Path>, now: Timestamp) {
        match self.0.iter_mut().find(|share| share.writer.is(writer)) {
            Some(share) if share.fields == fields => {}
            Some(share) => {
                share.fields = fields;
                share.time = seconds(now);
            }
            None => self.0.push(Share {
                writer: writer.clone(),
                time: seconds(now),
                fields,
            }),
        }
        self.0.retain(|share| !share.fields.is_empty());
    }

    /// Takes the fields for which `lost` holds from everybody but `writer`.
    pub(crate) fn take_from_others(&mut self, writer: &Writer, lost: impl Fn(&Path) -> bool) {
        for share in self.0.iter_mut().filter(|share| !share.writer.is(writer)) {
            share.fields.retain(|path| !lost(path));
        }
        self.0.retain(|share| !share.fields.is_empty());
    }

    /// Records that `writer` turned `old` into `new` by something else than an apply.
    pub(crate) fn record(&mut self, writer: &Writer, old: &Value, new: &Value, now: Timestamp) {
        let (before, after) = (leaves(old), leaves(new));
        let changed: BTreeSet<Path> = after
            .iter()
            .filter(|(path, value)| before.get(*path) != Some(*value))
            .map(|(path, _)| path.clone())
            .collect();
        self.take_from_others(writer, |path| {
            !after.contains_key(path) || changed.contains(path)
        });
        let mut own = self.fields_of(writer).cloned().unwrap_or_default();
        own.extend(changed);
        own.retain(|path| after.contains_key(path));
        self.set(writer, own, now);
    }
}

fn write_share(share: &Share) -> Value {
    let mut tree = Map::new();
    for path in &share.fields {
        let mut node = &mut tree;
        for step in path {
            let name = match step {
                Step::Field(name) => format!("f:{name}"),
                Step::Key(key, value) => format!("k:{}", json!({*key: value})),
                Step::Member(value) => format!("v:{}", Value::from(value.as_str())),
            };
            let next = node
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
            node = next
                .as_object_mut()
                .expect("every node of the tree is a map");
        }
    }
    let operation = match share.writer.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut entry = json!({
        "manager": share.writer.name,
        "operation": operation,
        "apiVersion": share.writer.api_version,
        "time": share.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    });
    if !share.writer.subresource.is_empty() {
        entry["subresource"] = share.writer.subresource.as_str().into();
    }
    entry
}

fn read_share(entry: &Value) -> Share {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let mut fields = BTreeSet::new();
    read_tree(&entry["fieldsV1"], &mut Vec::new(), &mut fields);
    Share {
        writer: Writer {
            name: text("manager"),
            operation: match entry["operation"].as_str() {
                Some("Apply") => Operation::Apply,
                _ => Operation::Update,
            },
            subresource: text("subresource"),
            api_version: text("apiVersion"),
        },
        time: text("time"),
        fields,
    }
}

fn read_tree(node: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
    let mut leaf = true;
    for (name, inner) in node.as_object().into_iter().flatten() {
        let Some(step) = read_step(name) else {
            continue;
        };
        leaf = false;
        path.push(step);
        read_tree(inner, path, found);
        path.pop();
    }
    if leaf && !path.is_empty() {
        found.insert(path.clone());
    }
}

/// Steps the simulator never writes, such as list positions and `.`, are passed over.
fn read_step(name: &str) -> Option<Step> {
    if let Some(field) = name.strip_prefix("f:") {
        return Some(Step::Field(field.into()));
    }
    if let Some(member) = name.strip_prefix("v:") {
        return Some(Step::Member(serde_json::from_str(member).ok()?));
    }
    let keys: BTreeMap<String, String> = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
    match keys.into_iter().next()? {
        (key, value) if key == "type" => Some(Step::Key("type", value)),
        (key, value) if key == "uid" => Some(Step::Key("uid", value)),
        _ => None,
    }
}
