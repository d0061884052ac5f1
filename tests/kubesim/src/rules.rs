//! Checks and corrections of what a write brings: types, names, identity, and what it may not
//! touch. Pure functions; what is done with the outcome is for `lifecycle`.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    kinds::{Kind, RBAC, api_version},
    objects::Stored,
    refusal::{About, Refusal},
    select::is_qualified_name,
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

/// Checks the types of a body. Built-in kinds may leave `apiVersion` and `kind` out.
///
/// # Errors
/// 400 for another version, and for another kind where the kind is built in; 422 for another custom
/// kind.
pub(crate) fn check_types(kind: &Kind, version: &str, object: &Value) -> Result<(), Refusal> {
    let wanted = api_version(&kind.group, version);
    let text = |field: &str| object[field].as_str();
    match text("apiVersion") {
        Some(found) if found != wanted => {
            let why = format!(
                "the API version in the data ({found}) does not match the expected API version ({wanted})"
            );
            return Err(Refusal::bad_request(why));
        }
        None if kind.custom => return Err(Refusal::bad_request("Object 'apiVersion' is missing")),
        _ => {}
    }
    match text("kind") {
        Some(found) if found != kind.kind && kind.custom => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let about = About {
                kind: found,
                ..kind.about(name)
            };
            let why = format!("Invalid value: \"{found}\": must be {}", kind.kind);
            Err(Refusal::invalid(about, "kind", &why))
        }
        Some(found) if found != kind.kind => Err(Refusal::bad_request(format!(
            "{found} in version \"{version}\" cannot be handled as a {}",
            kind.kind
        ))),
        None if kind.custom => {
            let why = format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
                kind.kind
            );
            Err(Refusal::bad_request(why))
        }
        _ => Ok(()),
    }
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

/// Lets no write touch when and how fast an object is deleted.
///
/// # Errors
/// 422 for another time or grace period.
pub(crate) fn check_deletion(
    kind: &Kind,
    old: &Stored,
    before: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (old_value, value) = (&before["metadata"][field], &new["metadata"][field]);
        // What is left out, and a time that is set already, stays as it is.
        let kept = value.is_null() || field == "deletionTimestamp" && old.deleting;
        if !kept && old_value != value {
            let why = format!("Invalid value: {value}: field is immutable");
            let field = format!("metadata.{field}");
            return Err(Refusal::invalid(kind.about(&old.key.name), &field, &why));
        }
    }
    Ok(())
}

/// Finalizers are named like labels.
///
/// # Errors
/// 422 with the first that is not.
pub(crate) fn check_finalizer_names(
    kind: &Kind,
    name: &str,
    metadata: &Map<String, Value>,
) -> Result<(), Refusal> {
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    let mut names = finalizers.into_iter().flatten().filter_map(Value::as_str);
    let Some(bad) = names.find(|name| !is_qualified_name(name)) else {
        return Ok(());
    };
    let why = format!(
        "Invalid value: \"{bad}\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    );
    let about = kind.about(name);
    Err(Refusal::invalid(about, "metadata.finalizers", &why))
}

/// Field managers are short and printable.
///
/// # Errors
/// 422 for one that is not; `options` are those of the request, `PatchOptions`.
pub(crate) fn check_manager(options: &str, manager: &str) -> Result<(), Refusal> {
    const LONGEST: usize = 128;
    let about = About {
        group: "meta.k8s.io",
        plural: options,
        kind: options,
        name: "",
    };
    if manager.len() > LONGEST {
        let why = format!("Too long: may not be more than {LONGEST} bytes");
        return Err(Refusal::invalid(about, "fieldManager", &why));
    }
    match manager.char_indices().find(|(_, c)| c.is_control()) {
        None => Ok(()),
        Some((at, bad)) => {
            let code = u32::from(bad);
            let why = format!(
                "Invalid value: {manager:?}: invalid character U+{code:04X} (at position {at})"
            );
            Err(Refusal::invalid(about, "fieldManager", &why))
        }
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

/// Checks name, uid and version of a changed object against the one it replaces.
pub(crate) fn check_identity(
    kind: &Kind,
    old: &Stored,
    new: &mut Value,
    replaced: bool,
) -> Result<(), Refusal> {
    let about = kind.about(&old.key.name);
    let metadata = metadata_of(new)?;
    let text = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = text("name");
    if name != old.key.name {
        let why = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            old.key.name
        );
        return Err(Refusal::bad_request(why));
    }
    let uid = text("uid");
    if !uid.is_empty() && uid != old.uid {
        if replaced {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                old.uid
            );
            return Err(Refusal::conflict(about, &why));
        }
        let why = format!("Invalid value: \"{uid}\": field is immutable");
        return Err(Refusal::invalid(about, "metadata.uid", &why));
    }
    let version = text("resourceVersion");
    if version.is_empty() && !kind.blind_update && replaced {
        let why = "Invalid value: 0: must be specified for an update";
        return Err(Refusal::invalid(about, "metadata.resourceVersion", why));
    }
    if !version.is_empty() && version != old.version.to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(about, why));
    }
    Ok(())
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

/// Lets an object that is being deleted gain no finalizer.
///
/// # Errors
/// 422 with the new ones.
pub(crate) fn check_finalizers(
    kind: &Kind,
    old: &Stored,
    metadata: &Map<String, Value>,
) -> Result<(), Refusal> {
    let now = metadata.get("finalizers").and_then(Value::as_array);
    let new: Vec<&str> = now
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !old.finalizers.iter().any(|known| known == name))
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let why = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {new:?}"
    );
    Err(Refusal::invalid(
        kind.about(&old.key.name),
        "metadata.finalizers",
        &why,
    ))
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
