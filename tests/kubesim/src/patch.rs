//! The bodies of PATCH requests and what each makes of an object. Whether the outcome may be
//! written is for `lifecycle` to say.

use json_patch::{PatchErrorKind, merge as json_merge};
use serde_json::Value;

use crate::{
    fields::{ListKind, list_kind},
    refusal::Refusal,
};

/// A patch that was read, not yet applied.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    /// As merge, but lists that Kubernetes merges by key are merged by key.
    Strategic(Value),
    Apply {
        config: Value,
        force: bool,
    },
}

impl Patch {
    /// Reads `body` as `content_type` says.
    ///
    /// # Errors
    /// 415 for an unknown type, and for a strategic merge of a custom resource; 400 for a body that
    /// does not parse; 422 for `force` on anything but an apply.
    pub(crate) fn read(
        content_type: &str,
        body: &[u8],
        force: bool,
        custom: bool,
    ) -> Result<Self, Refusal> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        if force && kind != "application/apply-patch+yaml" {
            let why = "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch";
            return Err(Refusal::new(422, "Invalid", why));
        }
        match kind {
            "application/json-patch+json" => serde_json::from_slice(body)
                .map(Self::Json)
                .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}"))),
            "application/merge-patch+json" => Ok(Self::Merge(read_object(body)?)),
            "application/strategic-merge-patch+json" if !custom => {
                Ok(Self::Strategic(read_object(body)?))
            }
            "application/apply-patch+yaml" => Ok(Self::Apply {
                config: read_yaml_object(body)?,
                force,
            }),
            other => Err(Refusal::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - `{other}`; accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                ),
            )),
        }
    }

    /// What becomes of `live`; an apply is not for this function.
    ///
    /// # Errors
    /// 422 when a JSON patch does not fit the object.
    pub(crate) fn onto(&self, live: &Value) -> Result<Value, Refusal> {
        let mut object = live.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut object, patch).map_err(|error| {
                let why = match error.kind {
                    PatchErrorKind::TestFailed => "testing value failed",
                    _ => "the path does not fit the object",
                };
                let message = format!(
                    "the server rejected our request due to an error in our request: {why} at `{}`",
                    error.path
                );
                Refusal::new(422, "Invalid", message)
            })?,
            Self::Merge(patch) => json_merge(&mut object, patch),
            Self::Strategic(patch) | Self::Apply { config: patch, .. } => {
                strategic(&mut object, patch);
            }
        }
        Ok(object)
    }
}

fn strategic(target: &mut Value, patch: &Value) {
    let (Value::Object(target), Value::Object(patch)) = (&mut *target, patch) else {
        *target = patch.clone();
        return;
    };
    for (field, wanted) in patch {
        match (target.get_mut(field), wanted) {
            (_, Value::Null) => {
                target.shift_remove(field);
            }
            (Some(present @ Value::Object(_)), Value::Object(_)) => strategic(present, wanted),
            (Some(Value::Array(present)), Value::Array(list)) => match list_kind(field) {
                ListKind::Atomic => *present = list.clone(),
                ListKind::Set => {
                    let known = present.clone();
                    present.extend(list.iter().filter(|one| !known.contains(one)).cloned());
                }
                ListKind::Keyed(key) => {
                    for element in list {
                        match present.iter_mut().find(|known| known[key] == element[key]) {
                            Some(known) => strategic(known, element),
                            None => present.push(element.clone()),
                        }
                    }
                }
            },
            _ => {
                target.insert(field.clone(), wanted.clone());
            }
        }
    }
}

/// Reads the object in the body of a create or an update, as its content type says.
///
/// # Errors
/// 400 when it is none, 415 for a form the simulator does not read.
pub(crate) fn read_body(content_type: &str, body: &[u8]) -> Result<Value, Refusal> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => read_object(body),
        "application/yaml" => read_yaml_object(body),
        other => Err(Refusal::new(
            415,
            "UnsupportedMediaType",
            format!("the simulator reads application/json and application/yaml, not `{other}`"),
        )),
    }
}

/// Reads a JSON object.
///
/// # Errors
/// 400 when it is not one.
pub(crate) fn read_object(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(Refusal::bad_request(
            "the body of the request is not an object",
        )),
        Err(error) => Err(Refusal::bad_request(format!(
            "the body of the request is not JSON: {error}"
        ))),
    }
}

fn read_yaml_object(body: &[u8]) -> Result<Value, Refusal> {
    if let Ok(object) = read_object(body) {
        return Ok(object);
    }
    let text = String::from_utf8_lossy(body);
    match serde_saphyr::from_str(&text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(Refusal::bad_request(
            "the body of the request is not an object",
        )),
        Err(error) => Err(Refusal::bad_request(format!(
            "the body of the request is not YAML: {error}"
        ))),
    }
}
