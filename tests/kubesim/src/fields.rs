//! Who owns which field: sets of paths, and `metadata.managedFields` that keeps them.
//! Every list is one field except those that Kubernetes merges by key everywhere.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::seconds;

#[cfg(test)]
mod tests;

/// A step from an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A member of a map.
    Field(String),
    /// The element of a keyed list whose key field has this value.
    Key(&'static str, String),
    /// A value in a set.
    Member(String),
}

/// The way to a field.
pub(crate) type Path = Vec<Step>;

/// How a list is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Replaced as a whole.
    Atomic,
    /// Elements are maps told apart by this field.
    Keyed(&'static str),
    /// Elements are strings without order.
    Set,
}

/// How the list called `field` merges.
pub(crate) fn list_kind(field: &str) -> ListKind {
    match field {
        "conditions" => ListKind::Keyed("type"),
        "ownerReferences" => ListKind::Keyed("uid"),
        "finalizers" => ListKind::Set,
        _ => ListKind::Atomic,
    }
}

/// Fields of `metadata` that the server owns.
const SERVER_METADATA: &[&str] = &[
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

/// The fields of `object` that somebody may own, with their values.
pub(crate) fn leaves(object: &Value) -> BTreeMap<Path, &Value> {
    let mut found = BTreeMap::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (field, value) in value.as_object().into_iter().flatten() {
                    if !SERVER_METADATA.contains(&field.as_str()) {
                        let mut path =
                            vec![Step::Field("metadata".into()), Step::Field(field.clone())];
                        descend(value, field, &mut path, &mut found);
                    }
                }
            }
            _ => descend(
                value,
                field,
                &mut vec![Step::Field(field.clone())],
                &mut found,
            ),
        }
    }
    found
}

fn descend<'v>(
    value: &'v Value,
    field: &str,
    path: &mut Path,
    found: &mut BTreeMap<Path, &'v Value>,
) {
    match (value, list_kind(field)) {
        (Value::Object(map), _) if !map.is_empty() => {
            for (field, value) in map {
                path.push(Step::Field(field.clone()));
                descend(value, field, path, found);
                path.pop();
            }
        }
        (Value::Array(list), ListKind::Set) if list.iter().all(Value::is_string) => {
            for member in list {
                path.push(Step::Member(member.as_str().unwrap_or_default().into()));
                found.insert(path.clone(), member);
                path.pop();
            }
        }
        (Value::Array(list), ListKind::Keyed(key))
            if list.iter().all(|element| element[key].is_string()) =>
        {
            for element in list {
                path.push(Step::Key(
                    key,
                    element[key].as_str().unwrap_or_default().into(),
                ));
                descend(element, "", path, found);
                path.pop();
            }
        }
        _ => {
            found.insert(path.clone(), value);
        }
    }
}

/// A field as people write it: `.metadata.labels.a`.
pub(crate) fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Key(key, value) => text.push_str(&format!("[{key}={value:?}]")),
            Step::Member(value) => text.push_str(&format!("[={value:?}]")),
        }
    }
    text
}

/// Takes the field at `path` out of `value`, and every map or list that becomes empty with it.
pub(crate) fn remove(value: &mut Value, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => {
            let Some(inner) = map.get_mut(name) else {
                return;
            };
            if !rest.is_empty() {
                remove(inner, rest);
            }
            if rest.is_empty() || is_empty(inner) {
                map.shift_remove(name);
            }
        }
        (Step::Key(key, wanted), Value::Array(list)) => {
            let Some(at) = list
                .iter()
                .position(|element| element[key] == wanted.as_str())
            else {
                return;
            };
            if rest == [Step::Field((*key).into())] {
                list.remove(at);
            } else {
                remove(&mut list[at], rest);
            }
        }
        (Step::Member(wanted), Value::Array(list)) => {
            list.retain(|member| member != wanted.as_str());
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

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
