//! The TaskRun or CustomRun of a task: its name, and what it is created from.

use std::collections::BTreeMap;

use hindsight_run::keys;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    PIPELINE_RUN_UID_LABEL,
    child::{ChildKind, ChildName},
    run::PipelineRun,
    spec::Task,
    variables::{Found, fill, result},
};
use crate::{
    custom::embedded_spec,
    job::{as_label, name_of},
    spec::TemplateMetadata,
};

/// Longest name of a child. Tekton makes a label of it.
const LONGEST_NAME: usize = 63;

/// Annotations that begin so belong to the run that has them.
const OWN: [&str; 4] = [
    "chains.tekton.dev/",
    "hindsight.dev/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "results.tekton.dev/",
];

/// Results of tasks: by the name of the task, and their own.
pub(super) type Results = BTreeMap<String, BTreeMap<String, Value>>;

/// The name of the child of a task: the same whenever it is asked for, and another one for a run that is
/// created again under the same name.
#[must_use]
pub fn child_name(run: &PipelineRun, task: &str) -> String {
    let prefix = format!("{}-{task}", run.name);
    name_of(&prefix, &[&run.uid, task], LONGEST_NAME)
}

pub(super) fn name_of_child(run: &PipelineRun, task: &Task) -> ChildName {
    ChildName {
        kind: task.kind(),
        name: child_name(run, &task.name),
    }
}

/// The parameters of a task with results of others, or why there are none.
pub(super) fn params(task: &Task, results: &Results) -> Result<Value, String> {
    let mut params = Vec::new();
    for given in &task.params {
        let (mut value, name) = (given.value.0.clone(), &given.name);
        let mut lacking = None;
        let mixed = fill(&mut value, &mut |variable| {
            let found = of_results(variable, results);
            if found.is_none() && result(variable).is_some() {
                lacking.get_or_insert_with(|| variable.to_owned());
            }
            found.map_or(Found::Kept, Found::Value)
        });
        if let Some(variable) = lacking {
            return Err(format!("parameter {name}: there is no `$({variable})`"));
        }
        if let Some(variable) = mixed.first() {
            return Err(format!("parameter {name}: `$({variable})` is no text"));
        }
        params.push(json!({"name": name, "value": value}));
    }
    Ok(params.into())
}

/// The value of a variable that is a result.
pub(super) fn of_results(variable: &str, results: &Results) -> Option<Value> {
    let (task, place) = result(variable)?;
    let results = results.get(task)?;
    place.of(|name| results.get(name)).ok().cloned()
}

/// The child of a task with these parameters.
pub(super) fn manifest(run: &PipelineRun, task: &Task, params: &Value, results: &Results) -> Value {
    let child = name_of_child(run, task);
    let mut spec = Map::new();
    let mut put = |field: &str, value: Value| spec.insert(field.to_owned(), value);
    let (reference, embedded) = (&task.task_ref.0, &task.task_spec.0);
    match child.kind {
        ChildKind::CustomRun => {
            if reference.is_object() {
                put("customRef", reference.clone());
            }
            if let Some(embedded) = embedded_spec(&task.value()) {
                put("customSpec", embedded);
            }
        }
        ChildKind::TaskRun => {
            if reference.is_object() {
                put("taskRef", reference.clone());
            }
            if let Some(mut embedded) = embedded.as_object().cloned() {
                // Tekton writes some of these without a value.
                for field in ["apiVersion", "kind", "metadata", "spec"] {
                    embedded.remove(field);
                }
                let mut embedded = Value::Object(embedded);
                fill(&mut embedded, &mut |variable| {
                    of_results(variable, results).map_or(Found::Kept, Found::Value)
                });
                put("taskSpec", embedded);
            }
            let template = &run.spec["taskRunTemplate"]["podTemplate"];
            if template.is_object() {
                put("podTemplate", template.clone());
            }
        }
    }
    if params.as_array().is_some_and(|params| !params.is_empty()) {
        put("params", params.clone());
    }
    if task.retries > 0 {
        put("retries", task.retries.into());
    }
    let timeout = task.timeout.as_deref().or_else(|| run.timeout_of_tasks());
    if let Some(timeout) = timeout {
        put("timeout", timeout.into());
    }
    let account = run.spec["taskRunTemplate"]["serviceAccountName"].as_str();
    if let Some(account) = account.filter(|account| !account.is_empty()) {
        put("serviceAccountName", account.into());
    }
    json!({
        "apiVersion": format!("{}/{}", ChildKind::GROUP, child.kind.version()),
        "kind": child.kind.kind(),
        "metadata": metadata(run, task, &child),
        "spec": spec,
    })
}

fn metadata(run: &PipelineRun, task: &Task, child: &ChildName) -> Value {
    let own = match child.kind {
        ChildKind::TaskRun => TemplateMetadata::deserialize(&task.task_spec.0["metadata"]).ok(),
        // That of an embedded task is for its controller.
        ChildKind::CustomRun => None,
    };
    let TemplateMetadata {
        mut labels,
        mut annotations,
    } = own.unwrap_or_default();
    labels.extend(run.labels.clone());
    let pipeline = match run.generate_name.trim_end_matches(['-', '.']) {
        "" => as_label(&run.name),
        prefix => as_label(prefix),
    };
    labels.entry(keys::PIPELINE.to_owned()).or_insert(pipeline);
    for (label, value) in [
        (keys::PIPELINE_RUN, as_label(&run.name)),
        ("tekton.dev/pipelineRunUID", run.uid.clone()),
        ("tekton.dev/pipelineTask", task.name.clone()),
        ("tekton.dev/memberOf", "tasks".to_owned()),
        (PIPELINE_RUN_UID_LABEL, run.uid.clone()),
    ] {
        labels.insert(label.to_owned(), value);
    }
    let shared = run.annotations.iter();
    let shared = shared.filter(|(key, _)| !OWN.iter().any(|own| key.starts_with(own)));
    annotations.extend(shared.map(|(key, value)| (key.clone(), value.clone())));
    let result = run.result.iter().cloned();
    annotations.extend(result.map(|result| (keys::RESULT.to_owned(), result)));
    json!({
        "name": child.name, "namespace": run.namespace, "labels": labels, "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": format!("{}/v1", ChildKind::GROUP), "kind": "PipelineRun",
            "name": run.name, "uid": run.uid, "controller": true, "blockOwnerDeletion": true,
        }],
    })
}
