//! Server-side apply: merging a configuration into an object, dropping what its manager no longer
//! applies, and refusing to overwrite what another manager owns. Committing is not its business.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    fields::{ListKind, Ownership, Path, Writer, dotted, leaves, list_kind, remove},
    kinds::api_version,
    refusal::{About, Refusal},
};

#[cfg(test)]
mod tests;

/// What an apply makes of an object.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) object: Value,
    pub(crate) ownership: Ownership,
}

/// Applies `config` for `writer` to `live`, which is an object without fields when there is none yet.
///
/// # Errors
/// A conflict that names every field of another manager that would change, unless `force`.
pub(crate) fn apply(
    live: &Value,
    config: &Value,
    writer: &Writer,
    force: bool,
    now: Timestamp,
    about: About<'_>,
) -> Result<Applied, Refusal> {
    let mut ownership = Ownership::of(live);
    let wanted = leaves(config);
    let present = leaves(live);
    let differs = |path: &Path| {
        wanted
            .get(path)
            .is_some_and(|value| present.get(path) != Some(value))
    };
    let previous = ownership.fields_of(writer).cloned().unwrap_or_default();
    if force {
        ownership.take_from_others(writer, differs);
    } else {
        let mut conflicts = Vec::new();
        for share in ownership.0.iter().filter(|share| !share.writer.is(writer)) {
            let lost = share.fields.iter().filter(|path| differs(path));
            conflicts.extend(lost.map(|path| (share.writer.clone(), path.clone())));
        }
        if !conflicts.is_empty() {
            return Err(conflict(about, &conflicts));
        }
    }
    let mut object = live.clone();
    merge(&mut object, config);
    let fields = wanted.keys().cloned().collect();
    for path in previous.difference(&fields) {
        let still_wanted = wanted.keys().any(|one| one.starts_with(path));
        let shared = ownership
            .0
            .iter()
            .any(|share| !share.writer.is(writer) && share.fields.contains(path));
        if !still_wanted && !shared {
            remove(&mut object, path);
        }
    }
    ownership.set(writer, fields, now);
    Ok(Applied { object, ownership })
}

/// Merges `config` into `target`: maps deeply, keyed lists by key, sets as unions, the rest replaced.
pub(crate) fn merge(target: &mut Value, config: &Value) {
    let (Value::Object(target), Value::Object(config)) = (&mut *target, config) else {
        *target = config.clone();
        return;
    };
    for (field, wanted) in config {
        match (target.get_mut(field), wanted) {
            (Some(Value::Object(_)), Value::Object(_)) => merge(&mut target[field], wanted),
            (Some(Value::Array(present)), Value::Array(wanted)) => {
                merge_list(present, wanted, list_kind(field));
            }
            _ => {
                target.insert(field.clone(), wanted.clone());
            }
        }
    }
}

fn merge_list(present: &mut Vec<Value>, wanted: &[Value], kind: ListKind) {
    match kind {
        ListKind::Atomic => *present = wanted.to_vec(),
        ListKind::Set => {
            let new: Vec<Value> = wanted
                .iter()
                .filter(|one| !present.contains(one))
                .cloned()
                .collect();
            present.extend(new);
        }
        ListKind::Keyed(key) => {
            for element in wanted {
                match present.iter_mut().find(|known| known[key] == element[key]) {
                    Some(known) => merge(known, element),
                    None => present.push(element.clone()),
                }
            }
        }
    }
}

fn conflict(about: About<'_>, conflicts: &[(Writer, Path)]) -> Refusal {
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|(writer, path)| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with \"{}\" using {}", writer.name, writer.api_version),
                "field": dotted(path),
            })
        })
        .collect();
    let listed: Vec<String> = conflicts
        .iter()
        .map(|(writer, path)| format!("conflict with \"{}\": {}", writer.name, dotted(path)))
        .collect();
    let number = match conflicts.len() {
        1 => "1 conflict".to_owned(),
        many => format!("{many} conflicts"),
    };
    let details =
        json!({"name": about.name, "kind": about.plural, "group": about.group, "causes": causes});
    let message = format!("Apply failed with {number}: {}", listed.join(", "));
    Refusal {
        details,
        ..Refusal::new(409, "Conflict", message)
    }
}

/// The parts of a configuration that name the object rather than configure it.
///
/// # Errors
/// A bad request when the configuration is of another kind, or carries `managedFields`.
pub(crate) fn check_config(
    config: &Value,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<(), Refusal> {
    let wanted = api_version(group, version);
    if config["apiVersion"] != wanted.as_str() || config["kind"] != kind {
        return Err(Refusal::bad_request(format!(
            "an applied configuration must have apiVersion `{wanted}` and kind `{kind}`, found {} and {}",
            config["apiVersion"], config["kind"],
        )));
    }
    if config["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
    {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
