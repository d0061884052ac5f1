//! What the server checks of a new event, in the old API group and in the new one.

use serde_json::Value;

use crate::{kinds::Kind, refusal::Refusal};

/// Checks a new event. Events of the new form, which say a precise time, are checked more closely;
/// `events.k8s.io` takes no others.
///
/// # Errors
/// 422 for an event about an object of another namespace, or without what its form requires.
pub(crate) fn check_event(kind: &Kind, namespace: &str, event: &Value) -> Result<(), Refusal> {
    if kind.custom || kind.kind != "Event" {
        return Ok(());
    }
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    let refuse = |field: &str, why: &str| Err(Refusal::invalid(kind.about(name), field, why));
    let missing = |field: &str| event[field].as_str().is_none_or(str::is_empty);
    let old = kind.group.is_empty();
    let (about, controller) = match old {
        true => ("involvedObject", "reportingComponent"),
        false => ("regarding", "reportingController"),
    };
    let precise = !missing("eventTime");
    let fits = match event[about]["namespace"].as_str().unwrap_or_default() {
        // What is in no namespace has its events in `default`.
        "" => namespace == "default" || precise && namespace == "kube-system",
        of => precise || of == namespace,
    };
    if !fits {
        let of = &event[about]["namespace"];
        let why = format!("Invalid value: {of}: does not match event.namespace");
        return refuse("involvedObject.namespace", &why);
    }
    if precise {
        for field in [controller, "reportingInstance", "action", "reason"] {
            if missing(field) {
                return refuse(field, "Required value");
            }
        }
    } else if !old {
        return refuse("eventTime", "Required value");
    }
    match event["type"].as_str().unwrap_or_default() {
        "Normal" | "Warning" => Ok(()),
        _ if old => Ok(()),
        found => refuse(
            "type",
            &format!("Invalid value: \"\": has invalid value: {found}"),
        ),
    }
}
