//! What a write may not bring: each check refuses in the words of a real server.

use hindsight_run::selector::is_qualified_name;
use serde_json::{Map, Value};

use super::metadata_of;
use crate::{
    kinds::{Kind, api_version},
    objects::Stored,
    refusal::{About, Refusal},
};

/// Checks the types of a body. Built-in kinds may leave `apiVersion` and `kind` out. Another version is
/// refused with 400, and so is another kind where the kind is built in; another custom kind with 422.
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

/// Lets no write touch when and how fast an object is deleted: another time or grace period is
/// refused with 422.
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

/// Finalizers are named like labels; the first that is not is refused with 422.
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

/// Field managers are short and printable; any other is refused with 422. `options` are those of
/// the request, `PatchOptions`.
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

/// Lets an object that is being deleted gain no finalizer: new ones are refused with 422.
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
