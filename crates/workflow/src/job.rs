//! The Job of a step: its name, what it is created from, and what is read of it.

use std::{collections::BTreeMap, fmt::Write as _};

use hindsight_run::keys;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    GROUP, KIND, STEP_LABEL, UID_LABEL, VERSION, WORKFLOW_LABEL, object::Workflow, spec::Spec,
};

/// Longest name of a Job. Its pods have names that begin with it and are at most 63 characters long.
const LONGEST_NAME: usize = 52;

/// What is known of a Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name of the Job, in the namespace of the workflow.
    pub name: String,
    /// UID of the Job.
    pub uid: String,
    /// Version of the object.
    pub version: String,
    /// UID of the owner that controls it.
    pub owner: Option<String>,
    /// The step that its label names.
    pub step: Option<String>,
    /// Whether its delete was asked for.
    pub is_deleting: bool,
    /// How it ended, if it has.
    pub end: Option<End>,
}

/// How a Job or an external object ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It has succeeded.
    Complete,
    /// It has failed, for this reason.
    Failed(String),
}

/// The name of the Job of a step: the same whenever it is asked for, and another one for a workflow that is
/// created again under the same name.
#[must_use]
pub fn job_name(workflow: &Workflow, step: &str) -> String {
    let prefix = format!("{}-{step}", workflow.name);
    name_of(&prefix, &[&workflow.uid, step], LONGEST_NAME)
}

/// A name that begins with `prefix` and ends with eight digits that follow from `seed`.
pub(crate) fn name_of(prefix: &str, seed: &[&str], longest: usize) -> String {
    let mut digest = Sha256::new();
    digest.update(seed.join("\0"));
    let mut hash = String::with_capacity(8);
    for byte in &digest.finalize()[..4] {
        write!(hash, "{byte:02x}").unwrap_or_default();
    }
    let mut name = prefix.replace('.', "-");
    name.truncate(longest - 1 - hash.len());
    format!("{}-{hash}", name.trim_end_matches('-'))
}

/// The name of an object as the value of a label: cut to 63 characters.
pub(crate) fn as_label(name: &str) -> String {
    let cut = name.get(..63).unwrap_or(name);
    cut.trim_end_matches(['-', '.']).to_owned()
}

/// The labels of the Job of a step. Those of the template override those of the workflow, the selector
/// overrides both, and the labels by which Jobs are found override all.
pub(crate) fn labels(workflow: &Workflow, spec: &Spec, step: &str) -> BTreeMap<String, String> {
    let mut labels = spec.metadata.labels.clone();
    let template = spec.steps.get(step);
    let template = template.and_then(|step| step.job_template.as_ref());
    labels.extend(template.iter().flat_map(|job| job.metadata.labels.clone()));
    let selector = spec.selector.iter();
    labels.extend(selector.flat_map(|selector| selector.match_labels.clone()));
    labels.insert(WORKFLOW_LABEL.to_owned(), as_label(&workflow.name));
    labels.insert(UID_LABEL.to_owned(), workflow.uid.clone());
    labels.insert(STEP_LABEL.to_owned(), step.to_owned());
    labels
}

/// The Job of a step, or `None` where the step has no template.
#[must_use]
pub fn job_manifest(workflow: &Workflow, step: &str) -> Option<Value> {
    let spec = workflow.spec.as_ref().ok()?;
    let template = spec.steps.get(step)?.job_template.as_ref()?;
    let mut annotations = spec.metadata.annotations.clone();
    annotations.extend(template.metadata.annotations.clone());
    // The watcher stores the Job where it stores the workflow.
    let result = workflow.result.iter().cloned();
    annotations.extend(result.map(|result| (keys::RESULT.to_owned(), result)));
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), job_name(workflow, step).into());
    metadata.insert("namespace".to_owned(), workflow.namespace.clone().into());
    metadata.insert("labels".to_owned(), texts(labels(workflow, spec, step)));
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), texts(annotations));
    }
    let owner = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND,
        "name": workflow.name, "uid": workflow.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    metadata.insert("ownerReferences".to_owned(), Value::Array(vec![owner]));
    let mut job = Map::new();
    job.insert("apiVersion".to_owned(), "batch/v1".into());
    job.insert("kind".to_owned(), "Job".into());
    job.insert("metadata".to_owned(), Value::Object(metadata));
    job.insert("spec".to_owned(), template.spec.0.clone());
    Some(Value::Object(job))
}

fn texts(map: BTreeMap<String, String>) -> Value {
    let members = map.into_iter();
    Value::Object(members.map(|(key, text)| (key, text.into())).collect())
}
