//! The manifest that creates a run again: the object without what the cluster wrote into it.

use hindsight_run::{Kinds, View};
use serde_json::{Map, Value, json};

/// What the cluster keeps about an object.
const METADATA: [&str; 12] = [
    "name",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "ownerReferences",
    "finalizers",
    "generateName",
];
/// What controllers write into labels and annotations of runs: keys, or their beginnings.
const WRITTEN: [&str; 14] = [
    "tekton.dev/",
    "results.tekton.dev/",
    "chains.tekton.dev/",
    "triggers.tekton.dev/triggers-eventid",
    "pipelinesascode.tekton.dev/state",
    "workflows.argoproj.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "ray.io/",
    "hindsight.dev/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "argocd.argoproj.io/tracking-id",
    "app.kubernetes.io/managed-by",
];
/// What ends or holds back the run that a specification was of.
const ENDED: [&str; 3] = ["status", "statusMessage", "shutdown"];
/// Longest beginning of a generated name, so that the name fits a label.
const LONGEST: usize = 57;

/// The manifest; the error says why there is none.
pub(super) fn manifest(object: &Value) -> Result<Value, String> {
    let view = View::new(object);
    let (Some(name), Some(kind)) = (view.name(), view.kind()) else {
        return Err("the record holds no object with a kind and a name".to_owned());
    };
    let kinds = Kinds::built_in();
    let owner = view
        .owners()
        .find(|owner| kinds.all().any(|kind| kind.kind == owner.kind));
    if let Some(owner) = owner {
        return Err(format!(
            "{kind} {name} is a part of {} {}, which makes it; run that again",
            owner.kind, owner.name
        ));
    }
    let known = view.known_kind().is_some() || kind == "Job";
    if !known || !object.get("spec").is_some_and(Value::is_object) {
        return Err(format!("{kind} {name} is not a run that can be created"));
    }
    let mut metadata = Map::new();
    metadata.insert("generateName".to_owned(), json!(generated(object, name)));
    for (key, value) in object["metadata"].as_object().into_iter().flatten() {
        if METADATA.contains(&key.as_str()) {
            continue;
        }
        let value = match (key.as_str(), value) {
            ("labels" | "annotations", Value::Object(texts)) => chosen(texts),
            (_, value) => value.clone(),
        };
        if value.as_object().is_none_or(|texts| !texts.is_empty()) {
            metadata.insert(key.clone(), value);
        }
    }
    let mut made = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "status" => {}
            "metadata" => drop(made.insert(key.clone(), Value::Object(metadata.clone()))),
            "spec" => drop(made.insert(key.clone(), spec(value, kind))),
            _ => drop(made.insert(key.clone(), value.clone())),
        }
    }
    Ok(Value::Object(made))
}

/// What the name of the new run begins with: what that of the old one was made of, or the old name.
fn generated(object: &Value, name: &str) -> String {
    let before = object.pointer("/metadata/generateName");
    if let Some(before) = before.and_then(Value::as_str).filter(|it| !it.is_empty()) {
        return before.to_owned();
    }
    let cut: String = name.chars().take(LONGEST).collect();
    format!("{}-", cut.trim_end_matches(['-', '.']))
}

/// Labels or annotations that no controller wrote.
fn chosen(texts: &Map<String, Value>) -> Value {
    let is_written = |key: &str| {
        WRITTEN.iter().any(|written| match written.ends_with('/') {
            true => key.starts_with(written),
            false => key == *written,
        })
    };
    let kept = texts.iter().filter(|(key, _)| !is_written(key));
    Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect())
}

fn spec(spec: &Value, kind: &str) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        for key in ENDED {
            fields.shift_remove(key);
        }
        // The cluster selects the pods of a job by its UID, unless the job says otherwise.
        let is_manual = fields.get("manualSelector") == Some(&json!(true));
        if kind == "Job" && !is_manual {
            fields.shift_remove("selector");
            let labels = fields
                .get_mut("template")
                .and_then(|template| template.pointer_mut("/metadata/labels"));
            if let Some(labels) = labels {
                *labels = labels.as_object().map_or(Value::Null, chosen);
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_again_without_what_the_cluster_wrote() {
        let object = json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"name": "release-42", "namespace": "shop", "uid": "u",
                "resourceVersion": "7", "generation": 1, "managedFields": [{}],
                "creationTimestamp": "2026-03-02T09:00:00Z", "finalizers": ["x"],
                "labels": {"tekton.dev/pipeline": "release", "team": "web",
                    "pipelinesascode.tekton.dev/sha": "abc"},
                "annotations": {"results.tekton.dev/record": "r"}},
            "spec": {"pipelineRef": {"name": "release"}, "status": "Cancelled",
                "params": [{"name": "revision", "value": "b2"}]},
            "status": {"conditions": []},
        });
        let made = manifest(&object).unwrap();
        assert_eq!(
            made.to_string(),
            r#"{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","metadata":{"generateName":"release-42-","namespace":"shop","labels":{"team":"web","pipelinesascode.tekton.dev/sha":"abc"}},"spec":{"pipelineRef":{"name":"release"},"params":[{"name":"revision","value":"b2"}]}}"#
        );
        assert_eq!(
            manifest(&made).unwrap_err(),
            "the record holds no object with a kind and a name"
        );
    }

    #[test]
    fn a_generated_name_is_generated_the_same_way_and_fits_a_label() {
        let of = |metadata: Value| {
            let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
                "metadata": metadata, "spec": {"entrypoint": "main"}});
            manifest(&object).unwrap()["metadata"]["generateName"].clone()
        };
        assert_eq!(
            of(json!({"name": "etl-x7k2p", "generateName": "etl-"})),
            "etl-"
        );
        let long = of(json!({"name": "x".repeat(63)}));
        assert_eq!(long.as_str().unwrap().len(), 58);
    }

    #[test]
    fn a_job_loses_the_selector_that_the_cluster_made() {
        let job = |manual: Value| {
            json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": "backup-1", "ownerReferences":
                    [{"kind": "CronJob", "name": "backup", "uid": "c"}]},
                "spec": {"manualSelector": manual, "selector": {"matchLabels": {}},
                    "template": {"metadata": {"labels": {"job-name": "backup-1", "a": "b"}}}}})
        };
        let made = manifest(&job(Value::Null)).unwrap();
        assert_eq!(made["spec"].get("selector"), None);
        assert_eq!(
            made["spec"]["template"]["metadata"]["labels"],
            json!({"a": "b"})
        );
        assert_eq!(made["metadata"], json!({"generateName": "backup-1-"}));
        let made = manifest(&job(json!(true))).unwrap();
        assert!(made["spec"]["selector"].is_object());
    }

    #[test]
    fn what_another_run_makes_or_what_is_no_run_is_refused() {
        let part = json!({"kind": "TaskRun", "apiVersion": "tekton.dev/v1", "spec": {},
            "metadata": {"name": "r-test", "ownerReferences":
                [{"kind": "PipelineRun", "name": "r", "uid": "u"}]}});
        let why = manifest(&part).unwrap_err();
        assert_eq!(
            why,
            "TaskRun r-test is a part of PipelineRun r, which makes it; run that again"
        );
        for object in [
            json!({"kind": "TaskRun", "apiVersion": "tekton.dev/v1", "metadata": {"name": "r"}}),
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "r"}, "spec": {}}),
        ] {
            let why = manifest(&object).unwrap_err();
            assert!(why.contains("is not a run that can be created"), "{why}");
        }
        assert!(manifest(&Value::Null).is_err());
    }
}
