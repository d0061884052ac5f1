//! The kinds of object that are runs, and those that are kept beside them.

use std::sync::{PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::Value;

use super::Outcome;

/// How a kind says that it is finished.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// Tekton: the condition `Succeeded` is `True` or `False`.
    Succeeded,
    /// A condition `Complete` or `Failed` is `True` (batch/v1 Job, hindsight.dev Workflow).
    CompleteOrFailed,
    /// Argo: `status.phase` is `Succeeded`, `Failed` or `Error`.
    Phase,
    /// Ray: `status.jobDeploymentStatus` is `Complete` or `Failed`.
    RayJob,
    /// It lasts until somebody deletes it.
    Deletion,
    /// It is a definition and never finished; each change of it counts.
    Never,
    /// As somebody else says.
    Declared(&'static dyn Judge),
}

/// Tells about the objects of a kind that is not known here.
pub trait Judge: std::fmt::Debug + Send + Sync {
    /// Whether the object is finished, and how it ended.
    fn finish(&self, object: &Value) -> (bool, Outcome);
    /// When it began.
    fn started(&self, object: &Value) -> Option<Timestamp>;
    /// When it ended.
    fn ended(&self, object: &Value) -> Option<Timestamp>;
    /// The id of the result that it belongs to, if not its own.
    fn group(&self, object: &Value) -> Option<String>;
}

/// A kind of object that Hindsight keeps. Two are the same if group, version and name are.
#[derive(Debug, Clone, Copy)]
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

/// Every kind of run that is watched, in the order in which the watcher starts them.
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
    Kind {
        group: "tekton.dev",
        version: "v1alpha1",
        kind: "Run",
        plural: "runs",
        alias: None,
        completion: Completion::Succeeded,
        other_types: &[],
    },
    Kind {
        group: "ray.io",
        version: "v1",
        kind: "RayJob",
        plural: "rayjobs",
        alias: None,
        completion: Completion::RayJob,
        other_types: &["ray.io/v1alpha1.RayJob"],
    },
    Kind {
        group: "ray.io",
        version: "v1",
        kind: "RayCluster",
        plural: "rayclusters",
        alias: None,
        completion: Completion::Deletion,
        other_types: &["ray.io/v1alpha1.RayCluster"],
    },
];

/// What runs are made from. Not runs themselves, but kept as they change.
pub const DEFINITIONS: &[Kind] = &[
    Kind {
        group: "pipelines.kubeflow.org",
        version: "v2beta1",
        kind: "Pipeline",
        plural: "pipelines",
        alias: None,
        completion: Completion::Never,
        other_types: &[],
    },
    Kind {
        group: "pipelines.kubeflow.org",
        version: "v2beta1",
        kind: "PipelineVersion",
        plural: "pipelineversions",
        alias: None,
        completion: Completion::Never,
        other_types: &[],
    },
];

/// Jobs are runs when they are sent, but are watched only where somebody says which.
pub const JOB: Kind = Kind {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
    alias: None,
    completion: Completion::CompleteOrFailed,
    other_types: &[],
};

static JOBS: &[Kind] = &[JOB];

/// What was [declared](Kind::declare), in that order; only ever grows.
static DECLARED: RwLock<Vec<&'static Kind>> = RwLock::new(Vec::new());

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        (self.group, self.version, self.kind) == (other.group, other.version, other.kind)
    }
}

impl Eq for Kind {}

impl Kind {
    /// Makes a kind known to this process for as long as it lives. One that is known already, by
    /// group and name, stays as it is; returns what is known.
    pub fn declare(kind: Self) -> &'static Self {
        if let Some(known) = Self::named(kind.group, kind.kind) {
            return known;
        }
        let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
        let kind: &'static Self = Box::leak(Box::new(kind));
        declared.push(kind);
        kind
    }

    /// Every kind that is known, declared ones last.
    pub fn all() -> Vec<&'static Self> {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        built_in().chain(declared.iter().copied()).collect()
    }

    /// The kind of this group and name, in whatever version.
    pub fn named(group: &str, name: &str) -> Option<&'static Self> {
        find(|kind| kind.group == group && kind.kind == name)
    }

    /// Whether each state of an object counts, and not only the last one: it ends when it is
    /// deleted, or never.
    pub fn is_standing(&self) -> bool {
        matches!(self.completion, Completion::Deletion | Completion::Never)
    }

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
        find(|kind| {
            let rest = match kind.group {
                "" => Some(data_type),
                group => data_type
                    .strip_prefix(group)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            kind.other_types.contains(&data_type)
                || rest
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
        Self::named(group, kind)
    }
}

fn built_in() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().chain(DEFINITIONS).chain(JOBS)
}

fn find(is_it: impl Fn(&Kind) -> bool) -> Option<&'static Kind> {
    built_in().find(|kind| is_it(kind)).or_else(|| {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        declared.iter().copied().find(|kind| is_it(kind))
    })
}
