//! An inline pipeline as it is written, and why one is refused.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_run::json::Plain;
use serde::Deserialize;
use serde_json::Value;

use super::{
    child::ChildKind,
    run::PipelineRun,
    variables::{result, variables},
};
use crate::custom::{Param, is_custom_task};

/// Why a PipelineRun is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Tekton's reason, or `UnsupportedFeature`.
    pub(super) reason: &'static str,
    /// What is wrong, each with its path.
    pub(super) message: String,
}

impl Refusal {
    /// Unless there are no problems.
    pub(super) fn unless_none(reason: &'static str, problems: &[String]) -> Result<(), Self> {
        match problems {
            [] => Ok(()),
            problems => Err(Self {
                reason,
                message: problems.join("; "),
            }),
        }
    }

    pub(super) fn invalid(problems: &[String]) -> Result<(), Self> {
        Self::unless_none("PipelineValidationFailed", problems)
    }
}

/// An inline pipeline.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pipeline {
    pub(super) tasks: Vec<Task>,
    pub(super) params: Vec<Declared>,
    pub(super) results: Vec<Param>,
}

/// A task of a pipeline.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) display_name: String,
    pub(super) task_ref: Plain,
    pub(super) task_spec: Plain,
    pub(super) retries: u32,
    pub(super) run_after: Vec<String>,
    pub(super) params: Vec<Param>,
    pub(super) timeout: Option<String>,
}

/// A parameter that a pipeline declares.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) r#type: String,
    pub(super) default: Option<Plain>,
    pub(super) properties: Option<BTreeMap<String, Plain>>,
}

impl Task {
    pub(super) fn kind(&self) -> ChildKind {
        match self.is_custom() {
            true => ChildKind::CustomRun,
            false => ChildKind::TaskRun,
        }
    }

    pub(super) fn is_custom(&self) -> bool {
        is_custom_task(&self.value())
    }

    /// The fields by which the rules of custom tasks judge.
    pub(super) fn value(&self) -> Value {
        let fields = [
            ("taskRef", &self.task_ref.0),
            ("taskSpec", &self.task_spec.0),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        let fields = fields.map(|(field, value)| (field.to_owned(), value.clone()));
        Value::Object(fields.collect())
    }

    /// Inline steps, for a TaskRun; null without.
    pub(super) fn steps(&self) -> Value {
        let mut spec = match &self.task_spec.0 {
            Value::Object(spec) if !self.is_custom() => spec.clone(),
            _ => return Value::Null,
        };
        // Tekton writes some of these without a value.
        for field in ["apiVersion", "kind", "metadata", "spec"] {
            spec.remove(field);
        }
        spec.into()
    }

    /// The names of the tasks that succeed before this one starts.
    pub(super) fn after(&self) -> BTreeSet<&str> {
        let after = self.run_after.iter().map(String::as_str);
        let values = self
            .params
            .iter()
            .flat_map(|param| variables(&param.value.0));
        let results = values.filter_map(|variable| Some(result(variable)?.0));
        after.chain(results).collect()
    }
}

impl Pipeline {
    pub(super) fn read(spec: &Value) -> Result<Self, Refusal> {
        Self::deserialize(spec).map_err(|error| Refusal {
            reason: "PipelineValidationFailed",
            message: format!("spec.pipelineSpec: {error}"),
        })
    }

    /// What a PipelineRun that has started does, whatever became of its spec since.
    pub(super) fn started(run: &PipelineRun) -> Option<Self> {
        let spec = run.status.field("pipelineSpec")?;
        run.status.start_time()?;
        Self::read(spec).ok()
    }
}
