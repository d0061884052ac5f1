//! Who owns which field: sets of paths, and `metadata.managedFields` that keeps them.
//! Every list is one field except those that Kubernetes merges by key everywhere.

use std::collections::BTreeMap;

use serde_json::Value;

use ownership::SERVER_METADATA;

mod ownership;
#[cfg(test)]
mod tests;

pub(crate) use ownership::{Operation, Ownership, Writer};

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
