//! What the kubelet says of containers in the status of their pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::seconds;

/// The list of the status that a container is in; `None` if the pod has no such container.
pub(crate) fn list_of(pod: &Value, container: &str) -> Option<&'static str> {
    let has = |list: &str| {
        let containers = pod["spec"][list].as_array();
        containers
            .into_iter()
            .flatten()
            .any(|c| c["name"] == container)
    };
    match () {
        () if has("containers") => Some("containerStatuses"),
        () if has("initContainers") => Some("initContainerStatuses"),
        () => None,
    }
}

/// What the status says of a container; null if it says nothing.
pub(crate) fn of<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses"];
    let all = lists
        .iter()
        .filter_map(|list| pod["status"][*list].as_array());
    all.flatten()
        .find(|status| status["name"] == container)
        .unwrap_or(&Value::Null)
}

/// The status of the pod once another start of a container began, and which start that is.
pub(crate) fn started(pod: &Value, container: &str, now: Timestamp) -> Option<(Value, usize)> {
    let before = of(pod, container);
    let starts = match (before["state"].as_object(), before["restartCount"].as_u64()) {
        (Some(state), Some(count)) if !state.contains_key("waiting") => count + 1,
        (_, Some(count)) if before["lastState"]["terminated"].is_object() => count + 1,
        _ => 0,
    };
    let mut last = json!({});
    for state in ["state", "lastState"] {
        if before[state]["terminated"].is_object() && last["terminated"].is_null() {
            last = json!({"terminated": before[state]["terminated"]});
        }
    }
    let status = json!({
        "name": container, "restartCount": starts, "ready": true, "started": true,
        "containerID": id(pod, container, starts),
        "state": {"running": {"startedAt": seconds(now)}},
        "lastState": last,
    });
    let mut status = put(pod, container, status)?;
    status["phase"] = "Running".into();
    Some((status, usize::try_from(starts).ok()?))
}

/// The status of the pod once a container ended.
pub(crate) fn ended(pod: &Value, container: &str, code: i32, now: Timestamp) -> Option<Value> {
    let mut status = of(pod, container).clone();
    let count = status["restartCount"].as_u64()?;
    let started = status["state"]["running"]["startedAt"].clone();
    status["ready"] = false.into();
    status["state"] = json!({"terminated": {
        "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": started, "finishedAt": seconds(now),
        "containerID": id(pod, container, count),
    }});
    put(pod, container, status)
}

/// Whether all containers of the pod ended, and all of them well.
pub(crate) fn pod_is_over(status: &Value, pod: &Value) -> Option<&'static str> {
    let containers = pod["spec"]["containers"].as_array()?;
    let statuses = status["containerStatuses"].as_array()?;
    let codes: Option<Vec<i64>> = statuses
        .iter()
        .map(|one| one["state"]["terminated"]["exitCode"].as_i64())
        .collect();
    let codes = codes.filter(|codes| codes.len() == containers.len())?;
    Some(match codes.iter().all(|code| *code == 0) {
        true => "Succeeded",
        false => "Failed",
    })
}

fn id(pod: &Value, container: &str, start: u64) -> String {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    format!("kubesim://{uid}/{container}/{start}")
}

/// The status of the pod with another status of one container.
fn put(pod: &Value, container: &str, status: Value) -> Option<Value> {
    let list = list_of(pod, container)?;
    let mut all = pod["status"].clone();
    if !all.is_object() {
        all = json!({});
    }
    let mut statuses = all[list].as_array().cloned().unwrap_or_default();
    match statuses.iter_mut().find(|one| one["name"] == container) {
        Some(one) => *one = status,
        None => statuses.push(status),
    }
    all[list] = statuses.into();
    Some(all)
}
