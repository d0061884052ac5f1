//! A TaskRun or CustomRun as the PipelineRun that controls it sees it.

use hindsight_run::json::Plain;
use serde::Deserialize;
use serde_json::Value;

use crate::custom::Form;

/// The kind of a child of a PipelineRun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKind {
    /// `TaskRun` of `tekton.dev/v1`.
    TaskRun,
    /// `CustomRun` of `tekton.dev/v1beta1`.
    CustomRun,
}

impl ChildKind {
    /// The kinds that tasks of pipelines become.
    pub const ALL: [Self; 2] = [Self::TaskRun, Self::CustomRun];

    /// The API group of both kinds.
    pub const GROUP: &'static str = Form::GROUP;

    /// The kind of this name.
    #[must_use]
    pub fn of(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.kind() == kind)
    }

    /// The version of the API group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::TaskRun => "v1",
            Self::CustomRun => Form::CustomRun.version(),
        }
    }

    /// The name of the kind.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::TaskRun => "TaskRun",
            Self::CustomRun => Form::CustomRun.kind(),
        }
    }

    /// The name of the kind in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::TaskRun => "taskruns",
            Self::CustomRun => Form::CustomRun.plural(),
        }
    }

    /// The value of `spec.status` that asks for the end of a run.
    #[must_use]
    pub const fn cancelled(self) -> &'static str {
        match self {
            Self::TaskRun => "TaskRunCancelled",
            Self::CustomRun => "RunCancelled",
        }
    }
}

/// Names a child, in the namespace of its PipelineRun.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChildName {
    /// Whether it is a TaskRun or a CustomRun.
    pub kind: ChildKind,
    /// Name of the object.
    pub name: String,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has succeeded.
    Succeeded,
    /// It has failed, and is not tried again.
    Failed,
    /// It was cancelled before its end.
    Cancelled,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Cancelled];

    pub(super) fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.text() == text)
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }
}

/// Of a TaskRun or CustomRun, what the PipelineRun that controls it asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// UID of the run.
    pub uid: String,
    /// UID of the owner that controls it.
    pub owner: Option<String>,
    /// Name of that owner.
    pub owner_name: Option<String>,
    /// Whether it was asked to end.
    pub is_cancelled: bool,
    /// How it ended, if it has.
    pub outcome: Option<Outcome>,
    /// Its results by name.
    pub results: Vec<(String, Value)>,
}

/// The reasons of runs that ended because they were cancelled.
const CANCELLED: [&str; 2] = ["TaskRunCancelled", "CustomRunCancelled"];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Text {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: String,
    owner_references: Vec<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    name: String,
    uid: String,
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    status: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
    results: Vec<ResultText>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResultText {
    name: String,
    value: Plain,
}

impl Child {
    /// Reads a run of either kind. It fails where a field that is asked for is not of its type.
    pub fn read(object: &Value) -> Result<Self, String> {
        let text = Text::deserialize(object).map_err(|error| error.to_string())?;
        let mut owners = text.metadata.owner_references.into_iter();
        let owner = owners.find(|owner| owner.controller);
        let (owner, owner_name) = owner.map(|owner| (owner.uid, owner.name)).unzip();
        let mut conditions = text.status.conditions.iter();
        let succeeded = conditions.find(|condition| condition.r#type == "Succeeded");
        let outcome = succeeded.and_then(|succeeded| match succeeded.status.as_str() {
            "True" => Some(Outcome::Succeeded),
            "False" if CANCELLED.contains(&succeeded.reason.as_str()) => Some(Outcome::Cancelled),
            "False" => Some(Outcome::Failed),
            _ => None,
        });
        let results = text.status.results.into_iter();
        Ok(Self {
            uid: text.metadata.uid,
            owner,
            owner_name,
            is_cancelled: !text.spec.status.is_empty(),
            outcome,
            results: results
                .map(|result| (result.name, result.value.0))
                .collect(),
        })
    }
}
