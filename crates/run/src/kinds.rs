//! The kinds that a program knows: those that are built in, and those that
//! its configuration declares.

use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use super::{Completion, Kind};

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

/// Every kind that is built in.
const BUILT_IN: [&[Kind]; 3] = [KINDS, DEFINITIONS, &[JOB]];

/// The kinds that a program knows. By default, and in a server, those that are built in; a watcher
/// adds those that its configuration declares.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    declared: Vec<&'static Kind>,
}

impl Kinds {
    /// Those that are built in.
    pub const fn built_in() -> Self {
        Self {
            declared: Vec::new(),
        }
    }

    /// Those that are built in, and `kinds`. A built-in kind cannot be replaced.
    pub fn with(kinds: &[&'static Kind]) -> Self {
        let mut all = Self::built_in();
        for kind in kinds {
            if all.named(kind.group, kind.kind).is_none() {
                all.declared.push(kind);
            }
        }
        all
    }

    /// All of them, declared ones last.
    pub fn all(&self) -> impl Iterator<Item = &'static Kind> {
        BUILT_IN
            .into_iter()
            .flatten()
            .chain(self.declared.iter().copied())
    }

    /// The kind of this group and name, in whatever version.
    pub fn named(&self, group: &str, name: &str) -> Option<&'static Kind> {
        self.all()
            .find(|kind| kind.group == group && kind.kind == name)
    }

    /// The kind of an object, by its `apiVersion` and `kind`. Any version of the group counts.
    pub fn of(&self, object: &Value) -> Option<&'static Kind> {
        let kind = object.get("kind")?.as_str()?;
        let group = match object.get("apiVersion")?.as_str()?.split_once('/') {
            Some((group, _)) => group,
            None => "",
        };
        self.named(group, kind)
    }
}

/// Lookups among the kinds that are built in, for those who know no others.
impl Kind {
    /// The built-in kind of this group and name, in whatever version.
    pub fn named(group: &str, name: &str) -> Option<&'static Self> {
        Kinds::built_in().named(group, name)
    }

    /// The built-in kind that a record's `data.type` stands for.
    pub fn of_type(data_type: &str) -> Option<&'static Self> {
        Kinds::built_in()
            .all()
            .find(|kind| kind.has_type(data_type))
    }

    /// The built-in kind of an object; see [`Kinds::of`].
    pub fn of(object: &Value) -> Option<&'static Self> {
        Kinds::built_in().of(object)
    }
}

/// What configurations [declared](Kind::declare). Only their readers look here: a name in one table
/// of a file may refer to a kind in another. Whatever decides takes [`Kinds`].
static DECLARED: RwLock<Vec<&'static Kind>> = RwLock::new(Vec::new());

impl Kind {
    /// Makes a kind known to readers of configurations. One that is known already, by group and
    /// name, stays as it is; returns what is known.
    pub fn declare(kind: Self) -> &'static Self {
        let known = Self::all();
        let mut known = known.into_iter();
        if let Some(known) = known.find(|k| (k.group, k.kind) == (kind.group, kind.kind)) {
            return known;
        }
        let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
        let kind: &'static Self = Box::leak(Box::new(kind));
        declared.push(kind);
        kind
    }

    /// Every kind that is built in or [declared](Self::declare), declared ones last.
    pub fn all() -> Vec<&'static Self> {
        let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
        Kinds::with(&declared).all().collect()
    }
}
