//! The kinds of object that are runs.

use serde_json::Value;

/// How a kind says that it is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Tekton: the condition `Succeeded` is `True` or `False`.
    Succeeded,
    /// A condition `Complete` or `Failed` is `True` (batch/v1 Job, hindsight.dev Workflow).
    CompleteOrFailed,
    /// Argo: `status.phase` is `Succeeded`, `Failed` or `Error`.
    Phase,
}

/// A kind of object that Hindsight treats as a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version that is watched.
    pub version: &'static str,
    /// The kind's name.
    pub kind: &'static str,
    /// The plural used in URLs.
    pub plural: &'static str,
    /// The variable that filters call it by.
    pub alias: Option<&'static str>,
    /// How it says that it is finished.
    pub completion: Completion,
    /// Older `data.type` texts that mean the same kind.
    pub other_types: &'static [&'static str],
}

/// Every kind known, in the order in which the watcher starts them.
pub const KINDS: &[Kind] = &[
    Kind {
        group: "tekton.dev",
        version: "v1",
        kind: "PipelineRun",
        plural: "pipelineruns",
        alias: Some("pipelinerun"),
        completion: Completion::Succeeded,
        other_types: &[
            "tekton.dev/v1beta1.PipelineRun",
            "tekton.pipelines.v1.PipelineRun",
            "pipeline.tekton.dev/PipelineRun",
        ],
    },
    Kind {
        group: "tekton.dev",
        version: "v1",
        kind: "TaskRun",
        plural: "taskruns",
        alias: Some("taskrun"),
        completion: Completion::Succeeded,
        other_types: &[
            "tekton.dev/v1beta1.TaskRun",
            "tekton.pipelines.v1.TaskRun",
            "pipeline.tekton.dev/TaskRun",
        ],
    },
    Kind {
        group: "tekton.dev",
        version: "v1beta1",
        kind: "CustomRun",
        plural: "customruns",
        alias: Some("customrun"),
        completion: Completion::Succeeded,
        other_types: &[],
    },
    Kind {
        group: "argoproj.io",
        version: "v1alpha1",
        kind: "Workflow",
        plural: "workflows",
        alias: Some("workflow"),
        completion: Completion::Phase,
        other_types: &[],
    },
    Kind {
        group: "hindsight.dev",
        version: "v1alpha1",
        kind: "Workflow",
        plural: "workflows",
        alias: Some("workflow"),
        completion: Completion::CompleteOrFailed,
        other_types: &[],
    },
];

/// Jobs are stored and summed up like runs when they are sent, but are not watched.
pub(super) const JOB: Kind = Kind {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
    alias: None,
    completion: Completion::CompleteOrFailed,
    other_types: &[],
};

impl Kind {
    /// `<group>/<version>`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The `data.type` of its records: `<group>/<version>.<kind>`.
    pub fn data_type(&self) -> String {
        format!("{}.{}", self.api_version(), self.kind)
    }

    /// The kind that a record's `data.type` stands for.
    pub fn of_type(data_type: &str) -> Option<&'static Kind> {
        KINDS.iter().chain([&JOB]).find(|kind| {
            kind.other_types.contains(&data_type)
                || data_type
                    .strip_prefix(kind.group)
                    .and_then(|rest| rest.strip_prefix('/'))
                    .and_then(|rest| rest.strip_prefix(kind.version))
                    .and_then(|rest| rest.strip_prefix('.'))
                    == Some(kind.kind)
        })
    }

    /// The kind of an object, by its `apiVersion` and `kind`. Any version of the group counts.
    pub fn of(object: &Value) -> Option<&'static Kind> {
        let kind = object.get("kind")?.as_str()?;
        let group = match object.get("apiVersion")?.as_str()?.split_once('/') {
            Some((group, _)) => group,
            None => "",
        };
        KINDS
            .iter()
            .chain([&JOB])
            .find(|k| k.group == group && k.kind == kind)
    }
}
