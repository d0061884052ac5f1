//! What of a run matters for its logs. A pure function over its object.

use jiff::Timestamp;
use serde_json::Value;

use hindsight_proto::names::RecordName;
use hindsight_run::{Kind, View};

/// What of a run matters for its logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The log: `<parent>/results/<result>/logs/<record>`.
    pub(crate) log: Box<str>,
    pub(crate) namespace: Box<str>,
    /// The label by which its pods are found.
    pub(crate) label: &'static str,
    /// Whether no more pods of it come, and since when.
    pub(crate) ended: Option<Timestamp>,
    /// It was deleted before it ended: its containers may run until it goes.
    pub(crate) is_leaving: bool,
    /// Containers that its status names.
    pub(crate) named: Vec<(Box<str>, Box<str>)>,
}

/// The label by which pods of a kind are found, if it has pods of its own.
pub(crate) fn label(kind: &Kind) -> Option<&'static str> {
    match (kind.group, kind.kind) {
        ("tekton.dev", "TaskRun") => Some("tekton.dev/taskRun"),
        ("argoproj.io", "Workflow") => Some("workflows.argoproj.io/workflow"),
        ("batch", "Job") | ("ray.io", "RayJob") => Some("batch.kubernetes.io/job-name"),
        _ => None,
    }
}

impl Facts {
    /// Of a run that is stored as `record`; `None` if its kind has no pods.
    pub(crate) fn new(view: &View<'_>, record: &RecordName, now: Timestamp) -> Option<Self> {
        let label = label(view.known_kind()?)?;
        let is_done = view.finish().done;
        let deletion = view.deletion();
        Some(Self {
            log: format!("{}/logs/{}", record.result(), record.id()).into(),
            namespace: view.namespace().unwrap_or_default().into(),
            label,
            ended: match is_done {
                true => Some(view.ended().unwrap_or(now)),
                false => deletion,
            },
            is_leaving: !is_done && deletion.is_some(),
            named: named(view.object()),
        })
    }
}

/// The containers that a TaskRun names, of all attempts.
fn named(object: &Value) -> Vec<(Box<str>, Box<str>)> {
    let status = &object["status"];
    let attempts = status["retriesStatus"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for attempt in attempts.chain([status]) {
        let Some(pod) = attempt["podName"].as_str().filter(|pod| !pod.is_empty()) else {
            continue;
        };
        for list in ["steps", "sidecars"] {
            let containers = attempt[list].as_array().into_iter().flatten();
            // One that never ran has nothing to tell.
            let ran = containers.filter(|one| {
                one["running"].is_object() || one["terminated"]["containerID"].is_string()
            });
            let names = ran.filter_map(|container| container["container"].as_str());
            found.extend(names.map(|name| (pod.into(), name.into())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use hindsight_run::Kinds;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_names_the_containers_of_all_of_its_attempts() {
        let ran = json!({"exitCode": 0, "containerID": "containerd://1"});
        let step = |name: &str| json!({"container": name, "terminated": ran});
        let run = json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": "r", "namespace": "ci", "uid": "u"},
            "status": {
                "podName": "r-pod-retry1",
                "steps": [step("step-a"), {"container": "step-b", "terminated": {"exitCode": 1}}],
                "sidecars": [step("sidecar-s")],
                "retriesStatus": [{"podName": "r-pod", "steps": [step("step-a")]}],
                "completionTime": "2026-03-01T10:05:00Z",
                "conditions": [{"type": "Succeeded", "status": "False"}],
            },
        });
        let kinds = Kinds::built_in();
        let view = View::with_kinds(&run, &kinds);
        let record = "ci/results/p/records/u".parse().unwrap();
        let facts = Facts::new(&view, &record, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(&*facts.log, "ci/results/p/logs/u");
        assert_eq!(facts.ended, "2026-03-01T10:05:00Z".parse().ok());
        let named: Vec<_> = facts.named.iter().map(|(p, c)| (&**p, &**c)).collect();
        assert_eq!(
            named,
            [
                ("r-pod", "step-a"),
                ("r-pod-retry1", "step-a"),
                ("r-pod-retry1", "sidecar-s")
            ]
        );
    }
}
