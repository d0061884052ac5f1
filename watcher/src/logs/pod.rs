//! What of a pod matters for logs: whose it is, and how far each of its containers is.

use jiff::Timestamp;
use serde::Deserialize;

/// A pod, as far as logs go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    owner_references: Vec<OwnedBy>,
}

/// An owner of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnedBy {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    restart_count: i32,
    state: State,
    last_state: State,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct State {
    running: Option<Began>,
    terminated: Option<Ended>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Began {
    started_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ended {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// The newest start of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) name: String,
    /// How often it was restarted before.
    pub(crate) restart: i32,
    pub(crate) started: Option<Timestamp>,
    /// Whether it ended, and when.
    pub(crate) end: Option<Option<Timestamp>>,
    /// Whether the log of the start before can be read.
    pub(crate) has_previous: bool,
}

impl Pod {
    /// The run, or the Job, that the pod is of.
    pub(crate) fn owner(&self) -> Option<&OwnedBy> {
        self.metadata.owner_references.iter().find(|owner| {
            let group = owner.api_version.split('/').next();
            matches!(
                (group, owner.kind.as_str()),
                (Some("tekton.dev"), "TaskRun")
                    | (Some("argoproj.io"), "Workflow")
                    | (Some("batch"), "Job")
            )
        })
    }

    /// Its containers that began at least once.
    pub(crate) fn containers(&self) -> impl Iterator<Item = Container> {
        let Status {
            init_container_statuses: init,
            container_statuses: main,
        } = &self.status;
        init.iter().chain(main).filter_map(|status| {
            let (state, last) = (&status.state, &status.last_state);
            let (started, end) = match (&state.running, &state.terminated, &last.terminated) {
                (Some(running), ..) => (running.started_at, None),
                // One that waits for its next start is still the one that ended.
                (None, Some(ended), _) | (None, None, Some(ended)) => {
                    (ended.started_at, Some(ended.finished_at))
                }
                (None, None, None) => return None,
            };
            let is_current = state.running.is_some() || state.terminated.is_some();
            Some(Container {
                name: status.name.clone(),
                restart: status.restart_count,
                started,
                end,
                has_previous: is_current && last.terminated.is_some(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: &Value) -> Vec<(String, i32, bool, bool)> {
        let pod: Pod = serde_json::from_value(json!({"status": status})).unwrap();
        pod.containers()
            .map(|c| (c.name, c.restart, c.end.is_some(), c.has_previous))
            .collect()
    }

    #[test]
    fn a_container_has_a_log_once_it_began() {
        let ended = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-03-01T10:00:05Z"}});
        let running = json!({"running": {"startedAt": "2026-03-01T10:00:06Z"}});
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let status = |state: &Value, last: &Value, count: i32| {
            let one = json!({"name": "step-a", "state": state, "lastState": last,
                "restartCount": count, "image": "i"});
            of(&json!({"containerStatuses": [one], "phase": "Running"}))
        };
        let none = json!({});
        assert_eq!(status(&waiting, &none, 0), []);
        let name = || "step-a".to_owned();
        assert_eq!(status(&running, &none, 0), [(name(), 0, false, false)]);
        assert_eq!(status(&ended, &none, 0), [(name(), 0, true, false)]);
        assert_eq!(status(&waiting, &ended, 0), [(name(), 0, true, false)]);
        assert_eq!(status(&running, &ended, 1), [(name(), 1, false, true)]);
    }

    #[test]
    fn a_pod_is_of_the_run_that_owns_it() {
        let owner = |api_version: &str, kind: &str| {
            let owners =
                json!([{"apiVersion": api_version, "kind": kind, "name": "n", "uid": "u"}]);
            let pod: Pod =
                serde_json::from_value(json!({"metadata": {"ownerReferences": owners}})).unwrap();
            pod.owner().map(|owner| owner.uid.clone())
        };
        assert_eq!(owner("tekton.dev/v1", "TaskRun").as_deref(), Some("u"));
        assert_eq!(
            owner("argoproj.io/v1alpha1", "Workflow").as_deref(),
            Some("u")
        );
        assert_eq!(owner("batch/v1", "Job").as_deref(), Some("u"));
        assert_eq!(owner("apps/v1", "ReplicaSet"), None);
    }
}
