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

/// What a task does, with results of others in the place of variables.
pub(super) struct Filled {
    params: Vec<Value>,
    /// Inline steps; null without.
    steps: Value,
}

impl Filled {
    /// In parameters all results have to be there, in inline steps those of tasks that have succeeded.
    pub(super) fn new(
        task: &Task,
        results: &Results,
        has_succeeded: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut params = Vec::new();
        for given in &task.params {
            let name = &given.name;
            let value = filled(given.value.0.clone(), results, |_| true)
                .map_err(|why| format!("parameter {name}: {why}"))?;
            params.push(json!({"name": name, "value": value}));
        }
        let steps = filled(task.steps(), results, has_succeeded)
            .map_err(|why| format!("taskSpec: {why}"))?;
        Ok(Self { params, steps })
    }
}

/// The value with results in the place of variables, or why one of a task that is wanted cannot be there.
fn filled(
    mut value: Value,
    results: &Results,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Value, String> {
    let mut lacking = None;
    let mixed = fill(&mut value, &mut |variable| {
        let found = of_results(variable, results);
        if found.is_none() && result(variable).is_some_and(|(task, _)| is_wanted(task)) {
            lacking.get_or_insert_with(|| variable.to_owned());
        }
        found.map_or(Found::Kept, Found::Value)
    });
    if let Some(variable) = lacking {
        return Err(format!("there is no `$({variable})`"));
    }
    match mixed.first() {
        Some(variable) => Err(format!("`$({variable})` is no text")),
        None => Ok(value),
    }
}

/// The value of a variable that is a result.
pub(super) fn of_results(variable: &str, results: &Results) -> Option<Value> {
    let (task, place) = result(variable)?;
    let results = results.get(task)?;
    place.of(|name| results.get(name)).ok().cloned()
}

/// The child of a task.
pub(super) fn manifest(run: &PipelineRun, task: &Task, filled: Filled) -> Value {
    let child = name_of_child(run, task);
    let mut spec = Map::new();
    let mut put = |field: &str, value: Value| spec.insert(field.to_owned(), value);
    let reference = &task.task_ref.0;
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
            if filled.steps.is_object() {
                put("taskSpec", filled.steps);
            }
            let template = &run.spec["taskRunTemplate"]["podTemplate"];
            if template.is_object() {
                put("podTemplate", template.clone());
            }
        }
    }
    if !filled.params.is_empty() {
        put("params", filled.params.into());
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
