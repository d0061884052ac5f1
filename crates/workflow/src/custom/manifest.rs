//! The workflow of one attempt of a custom run: its name, and what it is created from.

use std::collections::BTreeMap;

use hindsight_run::keys;
use serde_json::{Value, json};

use super::{
    RUN_LABEL, RUN_UID_LABEL,
    form::Form,
    params,
    run::{CustomRun, EmbeddedRunSpec, RunSpec},
};
use crate::{
    GROUP, KIND, VERSION,
    job::{as_label, name_of},
    object::Workflow,
    validate::check_spec,
};

/// Longest name of a workflow. It is the value of a label of its Jobs.
const LONGEST_NAME: usize = 63;

/// The name of the workflow of an attempt: the same whenever it is asked for, and another one for a run that
/// is created again under the same name.
#[must_use]
pub fn attempt_name(run: &CustomRun, attempt: usize) -> String {
    let seed = [run.uid.as_str(), &attempt.to_string()];
    name_of(&run.name, &seed, LONGEST_NAME)
}

/// The workflow of an attempt, or everything that is wrong with what it is made of, each with its path.
/// `template` is the spec of the workflow that the run names, where it names one.
pub(super) fn workflow(
    run: &CustomRun,
    spec: &RunSpec,
    attempt: usize,
    template: Option<&Value>,
) -> Result<Value, Vec<String>> {
    let embedded = spec.embedded.clone().unwrap_or_default();
    let (path, mut wanted) = match template {
        Some(template) => (format!("spec.{}", run.form.reference()), template.clone()),
        None => (
            format!("spec.{}", run.form.embedded()),
            embedded.spec.0.clone(),
        ),
    };
    if wanted.is_null() {
        wanted = json!({});
    }
    let mut problems = params::fill(&mut wanted, &spec.params, &format!("{path}.spec"));
    let name = attempt_name(run, attempt);
    let mut metadata = json!({
        "name": name, "namespace": run.namespace, "labels": labels(run, &embedded),
        "ownerReferences": [owner(run)],
    });
    let mut annotations = embedded.metadata.annotations;
    let result = run.result.iter().cloned();
    annotations.extend(result.map(|result| (keys::RESULT.to_owned(), result)));
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND, "metadata": metadata, "spec": wanted,
    });
    let read = Workflow::read(&object).map(|workflow| check_spec(&workflow));
    problems.extend(
        read.unwrap_or_else(|why| vec![why])
            .into_iter()
            .map(|problem| match problem.starts_with("spec") {
                true => format!("{path}.{problem}"),
                false => format!("{path}.spec: {problem}"),
            }),
    );
    match problems.is_empty() {
        true => Ok(object),
        false => Err(problems),
    }
}

fn labels(run: &CustomRun, embedded: &EmbeddedRunSpec) -> BTreeMap<String, String> {
    let mut labels = embedded.metadata.labels.clone();
    labels.insert(RUN_LABEL.to_owned(), as_label(&run.name));
    labels.insert(RUN_UID_LABEL.to_owned(), run.uid.clone());
    labels
}

fn owner(run: &CustomRun) -> Value {
    json!({
        "apiVersion": format!("{}/{}", Form::GROUP, run.form.version()), "kind": run.form.kind(),
        "name": run.name, "uid": run.uid, "controller": true, "blockOwnerDeletion": true,
    })
}
