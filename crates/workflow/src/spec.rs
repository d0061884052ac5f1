//! The spec of a workflow as it is written.

use std::collections::BTreeMap;

use hindsight_run::json::Plain;
use serde::{Deserialize, Serialize};

/// What is to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Labels and annotations of all Jobs; those of a template override them.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// Time that the workflow may take from its start.
    #[serde(default)]
    pub active_deadline_seconds: Option<i64>,
    /// The steps by their names.
    #[serde(default)]
    pub steps: BTreeMap<String, Step>,
    /// A selector that every Job matches. When absent, the label with the UID of the workflow.
    #[serde(default)]
    pub selector: Option<LabelSelector>,
}

/// A node of the graph: a Job that is created, or an object that is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What the Job is made of.
    #[serde(default)]
    pub job_template: Option<JobTemplate>,
    /// Which object is waited for.
    #[serde(default)]
    pub external_ref: Option<ObjectReference>,
    /// Names of steps that complete before this one starts; without a meaning for an external object.
    #[serde(default)]
    pub dependencies: Vec<String>,
}

/// The template of a Job. Its spec is handed on as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct JobTemplate {
    /// Labels and annotations of the Job.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// `spec` of the Job.
    #[serde(default)]
    pub spec: Plain,
}

/// The metadata that a Job takes from a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TemplateMetadata {
    /// Labels of the Job.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// `ObjectReference` of the core API group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace of the object; that of the workflow when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the object; any when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Group and version of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kept as it is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Kept as it is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

/// `LabelSelector` of the meta API group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that every Job gets.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
    /// Tests that the labels of every Job pass.
    #[serde(default)]
    pub match_expressions: Vec<Requirement>,
}

/// A test of one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Requirement {
    /// Key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values of `In` and `NotIn`.
    #[serde(default)]
    pub values: Vec<String>,
}
