//! How large things may be: requests, objects in etcd, annotations, and etcd itself.

use serde_json::{Map, Value};

use crate::{kinds::Kind, objects::Stored, refusal::Refusal, world::World};

/// The longest body of a request.
const BODY: usize = 3 * 1024 * 1024;

/// The longest request to etcd, which is little more than the object.
const OBJECT: usize = 1536 * 1024;

/// Keys and values of all annotations of an object.
const ANNOTATIONS: usize = 256 * 1024;

/// The data of a config map or secret.
const DATA: usize = 1024 * 1024;

/// # Errors
/// 413 for a body that is too long.
pub(crate) fn check_body(body: &[u8]) -> Result<(), Refusal> {
    if body.len() <= BODY {
        return Ok(());
    }
    let why = format!("Request entity too large: limit is {BODY}");
    Err(Refusal::new(413, "RequestEntityTooLarge", why))
}

/// # Errors
/// 422 for annotations or data that are too long.
pub(crate) fn check_texts(kind: &Kind, object: &Value) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let limits = [
        (
            "metadata.annotations",
            &object["metadata"]["annotations"],
            ANNOTATIONS,
        ),
        ("[]", &object["data"], DATA),
    ];
    for (field, map, most) in limits {
        let applies = field != "[]" || matches!(kind.plural.as_str(), "configmaps" | "secrets");
        if applies && map.as_object().map_or(0, length) > most {
            let why = format!("Too long: may not be more than {most} bytes");
            return Err(Refusal::invalid(kind.about(name), field, &why));
        }
    }
    Ok(())
}

fn length(map: &Map<String, Value>) -> usize {
    map.iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

impl World {
    /// # Errors
    /// 500, as the API server passes on what etcd says, when the object is too large or etcd is full.
    pub(crate) fn check_space(&self, object: &Stored) -> Result<(), Refusal> {
        if object.size() > OBJECT {
            return Err(Refusal::new(500, "", "etcdserver: request is too large"));
        }
        let used = self.history.bytes() + object.size();
        if self.quota.is_some_and(|quota| used > quota) {
            let why = "etcdserver: mvcc: database space exceeded";
            return Err(Refusal::new(500, "", why));
        }
        Ok(())
    }
}
