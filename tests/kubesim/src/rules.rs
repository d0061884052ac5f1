//! Checks and corrections of what a write brings: types, names, identity, and what it may not
//! touch. Pure functions; what is done with the outcome is for `lifecycle`.

mod checks;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    kinds::{Kind, RBAC},
    refusal::Refusal,
};

pub(crate) use checks::{
    check_deletion, check_finalizer_names, check_finalizers, check_identity, check_manager,
    check_types,
};

/// The part of an object a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where the kind has a status subresource.
    Main,
    Status,
}

/// The metadata of an object, made when missing.
///
/// # Errors
/// 400 when the object or its metadata is no map.
pub(crate) fn metadata_of(object: &mut Value) -> Result<&mut Map<String, Value>, Refusal> {
    let fields = object
        .as_object_mut()
        .ok_or_else(|| Refusal::bad_request("the body of the request is not an object"))?;
    fields
        .entry("metadata")
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .ok_or_else(|| Refusal::bad_request("`metadata` is not an object"))
}

/// Takes away what a client may not choose for a new object.
pub(crate) fn drop_server_fields(metadata: &mut Map<String, Value>) {
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
    ] {
        metadata.shift_remove(field);
    }
}

/// Takes away what says nothing: nulls, and empty maps and lists.
pub(crate) fn tidy(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    });
}

/// Gives a new namespace what the server gives it: a label with its name, and the finalizer that its
/// controller takes off.
pub(crate) fn complete_namespace(name: &str, namespace: &mut Value) {
    namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    namespace["spec"]["finalizers"] = json!(["kubernetes"]);
    if namespace.get("status").is_none() {
        namespace["status"] = json!({"phase": "Active"});
    }
}

/// Puts a new object into the namespace of the path.
///
/// # Errors
/// 400 when it names another.
pub(crate) fn place(
    kind: &Kind,
    namespace: &str,
    metadata: &mut Map<String, Value>,
) -> Result<(), Refusal> {
    match metadata.get("namespace").and_then(Value::as_str) {
        Some(found) if kind.namespaced && !found.is_empty() && found != namespace => {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Refusal::bad_request(why));
        }
        _ if kind.namespaced => {
            metadata.insert("namespace".into(), namespace.into());
        }
        _ => {
            metadata.shift_remove("namespace");
        }
    }
    Ok(())
}

/// The name of a new object, made from `generateName` when there is none.
pub(crate) fn name_of(kind: &Kind, metadata: &mut Map<String, Value>) -> Result<String, Refusal> {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (mut name, prefix) = (text("name"), text("generateName"));
    if name.is_empty() && !prefix.is_empty() {
        let random = Uuid::new_v4();
        let suffix = random.as_bytes()[..5]
            .iter()
            .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
        name = prefix.chars().take(58).chain(suffix).collect();
        metadata.insert("name".into(), name.as_str().into());
    }
    let about = kind.about(&name);
    if name.is_empty() {
        let why = "Required value: name or generateName is required";
        return Err(Refusal::invalid(about, "metadata.name", why));
    }
    if kind.group == RBAC {
        // Names of roles only have to fit into a path: `system:discovery`.
        if matches!(name.as_str(), "." | "..") || name.contains(['/', '%']) {
            let why =
                format!("Invalid value: \"{name}\": may not be '.', '..', or contain '/' or '%'");
            return Err(Refusal::invalid(about, "metadata.name", &why));
        }
        return Ok(name);
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if name.len() > 253
        || !name.chars().all(allowed)
        || !edge(name.chars().next())
        || !edge(name.chars().last())
    {
        let why = format!(
            "Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        );
        return Err(Refusal::invalid(about, "metadata.name", &why));
    }
    Ok(name)
}

/// Puts back what this write must not change: what the server owns, and the other part.
pub(crate) fn keep_what_is_not_written(
    kind: &Kind,
    before: &Value,
    mut new: Value,
    part: Part,
) -> Value {
    const KEPT: &[&str] = &[
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    ];
    if part == Part::Status {
        let mut kept = before.clone();
        match (kept.as_object_mut(), new.get_mut("status")) {
            (Some(fields), Some(status)) => {
                fields.insert("status".into(), status.take());
            }
            (Some(fields), None) => {
                fields.shift_remove("status");
            }
            (None, _) => {}
        }
        return kept;
    }
    for field in KEPT {
        let kept = before["metadata"].get(*field);
        set(&mut new["metadata"], field, kept);
    }
    set(&mut new, "apiVersion", before.get("apiVersion"));
    set(&mut new, "kind", before.get("kind"));
    if kind.status {
        set(&mut new, "status", before.get("status"));
    }
    new
}

fn set(object: &mut Value, field: &str, value: Option<&Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => {
            fields.insert(field.into(), value.clone());
        }
        None => {
            fields.shift_remove(field);
        }
    }
}

/// What generations count: every field but metadata, and but the status where it is apart.
pub(crate) fn desired(kind: &Kind, object: &Value) -> Vec<(String, Value)> {
    let mut fields: Vec<(String, Value)> = object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| *field != "metadata" && !(kind.status && *field == "status"))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    fields.sort_by(|(left, _), (right, _)| left.cmp(right));
    fields
}

/// Leaves in an applied configuration only what its subresource may set.
pub(crate) fn restrict(config: &mut Value, kind: &Kind, part: Part) {
    let Some(fields) = config.as_object_mut() else {
        return;
    };
    match part {
        Part::Main if kind.status => {
            fields.shift_remove("status");
        }
        Part::Main => {}
        Part::Status => {
            fields.retain(|field, _| {
                matches!(
                    field.as_str(),
                    "apiVersion" | "kind" | "metadata" | "status"
                )
            });
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|field, _| {
                    matches!(
                        field.as_str(),
                        "name" | "namespace" | "uid" | "resourceVersion"
                    )
                });
            }
        }
    }
}
