//! A custom run as the API server has it.

use hindsight_run::json::Plain;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{form::Form, run_status::RunStatus};
use crate::{GROUP, KIND, VERSION, object::result_of, spec::TemplateMetadata};

/// A custom run as the API server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomRun {
    /// The kind of the object.
    pub form: Form,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// UID of the object.
    pub uid: String,
    /// Whether its delete was asked for.
    pub is_deleting: bool,
    /// The result that it is stored in, which is that of the PipelineRun above it.
    pub result: Option<String>,
    /// What is asked for, as it is written.
    pub raw_spec: Value,
    /// What is asked for, or why that cannot be read.
    pub spec: Result<RunSpec, String>,
    /// How far it is.
    pub status: RunStatus,
}

/// `RunSpec` of TEP-0061 in either form: a custom task by reference or embedded, and what goes with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSpec {
    /// The custom task that is named.
    pub reference: Option<TaskRef>,
    /// The custom task that is embedded.
    pub embedded: Option<EmbeddedRunSpec>,
    /// The parameters that are given to the custom task.
    pub params: Vec<Param>,
    /// `RunCancelled` where it is to be cancelled.
    pub status: String,
    /// Why it is to be cancelled.
    pub status_message: String,
    /// How often it is tried again after a failure.
    pub retries: usize,
    /// Time that one attempt may take; without a limit when absent.
    pub timeout: Option<jiff::SignedDuration>,
    /// How many workspaces it is given.
    pub workspaces: usize,
    /// Whether it has a template of pods.
    pub has_pod_template: bool,
}

/// `EmbeddedRunSpec` of TEP-0061: a custom task whose spec is within the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddedRunSpec {
    /// Group and version of the custom task.
    pub api_version: String,
    /// Kind of the custom task.
    pub kind: String,
    /// Labels and annotations of the custom task.
    pub metadata: TemplateMetadata,
    /// Its spec, which its controller alone understands.
    pub spec: Plain,
}

/// `TaskRef` of Tekton, as custom tasks use it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskRef {
    /// Group and version of the custom task.
    pub api_version: String,
    /// Kind of the custom task.
    pub kind: String,
    /// Name of an object of that kind.
    pub name: String,
}

/// A parameter with its value: a text, a list or an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Param {
    /// Name of the parameter.
    pub name: String,
    /// A text, or a list or object of texts.
    #[serde(default)]
    pub value: Plain,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    deletion_timestamp: Option<String>,
}

impl CustomRun {
    /// Reads an object. It fails where its metadata are not of their types. Of a spec that is not of its type the
    /// error is kept instead.
    pub fn read(form: Form, object: &Value) -> Result<Self, String> {
        let head = Head::deserialize(object).map_err(|error| error.to_string())?;
        let raw_spec = object.get("spec").cloned().unwrap_or_default();
        Ok(Self {
            form,
            namespace: head.metadata.namespace.unwrap_or_default(),
            name: head.metadata.name.unwrap_or_default(),
            uid: head.metadata.uid.unwrap_or_default(),
            is_deleting: head.metadata.deletion_timestamp.is_some(),
            result: result_of(object),
            spec: RunSpec::read(form, &raw_spec),
            raw_spec,
            status: RunStatus::read(object.get("status")),
        })
    }

    /// Whether a run with this spec asks for a workflow. All others belong to other controllers.
    ///
    /// As in Tekton, the reference decides where both are set.
    #[must_use]
    pub fn asks_for_workflow(form: Form, spec: &Value) -> bool {
        let present = |field: &str| spec.get(field).filter(|value| !value.is_null());
        let task = present(form.reference()).or_else(|| present(form.embedded()));
        task.is_some_and(|task| {
            let is =
                |field: &str, text: &str| task.get(field).and_then(Value::as_str) == Some(text);
            is("kind", KIND) && is("apiVersion", &format!("{GROUP}/{VERSION}"))
        })
    }
}

impl RunSpec {
    /// Reads the spec of a run. It fails where a field is not of its type, and names the field.
    pub fn read(form: Form, spec: &Value) -> Result<Self, String> {
        let text = |field: &str| optional::<String>(spec, field).map(Option::unwrap_or_default);
        let timeout = text("timeout")?;
        let wrong = || format!("spec.timeout: `{timeout}` is not a duration; write it as in 1h30m");
        let timeout = match timeout.as_str() {
            "" => None,
            text => Some(text.parse().ok().ok_or_else(wrong)?),
        };
        let count = |field: &str| {
            spec.get(field)
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        let template = spec.get("podTemplate").and_then(Value::as_object);
        Ok(Self {
            reference: optional(spec, form.reference())?,
            embedded: optional(spec, form.embedded())?,
            params: optional(spec, "params")?.unwrap_or_default(),
            status: text("status")?,
            status_message: text("statusMessage")?,
            retries: optional(spec, "retries")?.unwrap_or_default(),
            timeout,
            workspaces: count("workspaces"),
            has_pod_template: template.is_some_and(|template| !template.is_empty()),
        })
    }
}

pub(crate) fn optional<T: DeserializeOwned>(
    spec: &Value,
    field: &str,
) -> Result<Option<T>, String> {
    match spec.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::deserialize(value)
            .map(Some)
            .map_err(|error| format!("spec.{field}: {error}")),
    }
}
