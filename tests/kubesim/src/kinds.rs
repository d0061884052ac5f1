//! The kinds a simulated server serves: those built in and those installed while it runs.
//! Only what the server itself must know about a kind is here; what a kind means is not.

use serde_json::Value;

use crate::refusal::About;

/// The API group of roles and bindings, whose objects are built in and decide about access.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// A custom resource to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crd {
    /// API group, such as `tekton.dev`.
    pub group: String,
    /// Version that is served, such as `v1`.
    pub version: String,
    /// Kind of its objects, such as `TaskRun`.
    pub kind: String,
    /// Plural, as in paths: `taskruns`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` exists; without it `status` is a plain field.
    pub status_subresource: bool,
    /// Short names shown by discovery.
    pub short_names: Vec<String>,
    /// Categories shown by discovery, such as `tekton`.
    pub categories: Vec<String>,
    /// The CustomResourceDefinition that a real server is given. Without, it gets one without a schema.
    pub definition: Option<Value>,
}

impl Crd {
    /// A namespaced kind with a status subresource.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
            status_subresource: true,
            short_names: Vec::new(),
            categories: Vec::new(),
            definition: None,
        }
    }

    /// The same kind, of which a real server is given this CustomResourceDefinition.
    #[must_use]
    pub fn defined_by(mut self, definition: Value) -> Self {
        self.definition = Some(definition);
        self
    }

    /// The same kind without a status subresource.
    #[must_use]
    pub fn without_status(mut self) -> Self {
        self.status_subresource = false;
        self
    }

    /// The same kind outside of namespaces.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Tekton's `TaskRun` of `tekton.dev/v1`, with its short names and categories.
    pub fn tekton_task_run() -> Self {
        Self {
            short_names: vec!["tr".into(), "trs".into()],
            categories: vec!["tekton".into(), "tekton-pipelines".into()],
            ..Self::namespaced("tekton.dev", "v1", "TaskRun", "taskruns")
        }
    }

    /// Tekton's `PipelineRun` of `tekton.dev/v1`, with its short names and categories.
    pub fn tekton_pipeline_run() -> Self {
        Self {
            short_names: vec!["pr".into(), "prs".into()],
            categories: vec!["tekton".into(), "tekton-pipelines".into()],
            ..Self::namespaced("tekton.dev", "v1", "PipelineRun", "pipelineruns")
        }
    }

    /// Tekton's `CustomRun` of `tekton.dev/v1beta1`, with its categories.
    pub fn tekton_custom_run() -> Self {
        Self {
            categories: vec!["tekton".into(), "tekton-pipelines".into()],
            ..Self::namespaced("tekton.dev", "v1beta1", "CustomRun", "customruns")
        }
    }

    /// The three kinds of Tekton runs.
    pub fn tekton() -> [Self; 3] {
        [
            Self::tekton_task_run(),
            Self::tekton_pipeline_run(),
            Self::tekton_custom_run(),
        ]
    }

    /// Argo's `Workflow`, whose status is a plain field.
    pub fn argo_workflow() -> Self {
        Self {
            short_names: vec!["wf".into()],
            ..Self::namespaced("argoproj.io", "v1alpha1", "Workflow", "workflows").without_status()
        }
    }

    /// Tekton's old `Run`, `tekton.dev/v1alpha1`.
    pub fn tekton_run() -> Self {
        Self::namespaced("tekton.dev", "v1alpha1", "Run", "runs")
    }

    /// `RayJob` and `RayCluster` of KubeRay.
    pub fn ray() -> [Self; 2] {
        [
            Self::namespaced("ray.io", "v1", "RayJob", "rayjobs"),
            Self::namespaced("ray.io", "v1", "RayCluster", "rayclusters"),
        ]
    }

    /// `Pipeline` and `PipelineVersion` of Kubeflow.
    pub fn kubeflow() -> [Self; 2] {
        let kind =
            |kind, plural| Self::namespaced("pipelines.kubeflow.org", "v2beta1", kind, plural);
        [
            kind("Pipeline", "pipelines").without_status(),
            kind("PipelineVersion", "pipelineversions"),
        ]
    }

    /// `Workflow` of `hindsight.dev/v1alpha1`, with a status subresource.
    pub fn hindsight_workflow() -> Self {
        Self::namespaced("hindsight.dev", "v1alpha1", "Workflow", "workflows")
    }
}

/// Everything the simulator may be asked to do with objects of a stored kind.
const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// A kind as the server knows it. Several versions may serve the same objects.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) group: String,
    /// Served versions, oldest installed first.
    pub(crate) versions: Vec<String>,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: &'static [&'static str],
    /// Custom resources follow stricter rules than built-in kinds in a few places.
    pub(crate) custom: bool,
    /// Whether `metadata.generation` is kept.
    pub(crate) generations: bool,
    /// Whether an update may leave `metadata.resourceVersion` out.
    pub(crate) blind_update: bool,
}

impl Kind {
    pub(crate) fn from_crd(crd: Crd) -> Self {
        Self {
            group: crd.group,
            versions: vec![crd.version],
            kind: crd.kind,
            plural: crd.plural,
            namespaced: crd.namespaced,
            status: crd.status_subresource,
            short_names: crd.short_names,
            categories: crd.categories,
            verbs: ALL_VERBS,
            custom: true,
            generations: true,
            blind_update: false,
        }
    }

    fn built_in(group: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            versions: vec!["v1".into()],
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
            status: false,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: ALL_VERBS,
            custom: false,
            generations: false,
            blind_update: true,
        }
    }

    /// Whether objects of this kind are kept, or only answered.
    pub(crate) fn stored(&self) -> bool {
        self.verbs.contains(&"get")
    }

    pub(crate) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    /// Whether its objects have logs.
    pub(crate) fn is_pods(&self) -> bool {
        self.group.is_empty() && self.plural == "pods"
    }

    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            plural: &self.plural,
            kind: &self.kind,
            name,
        }
    }

    pub(crate) fn serves(&self, version: &str) -> bool {
        self.versions.iter().any(|served| served == version)
    }

    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }
}

/// `apiVersion` of a group and a version: `v1`, `tekton.dev/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.into()
    } else {
        format!("{group}/{version}")
    }
}

pub(crate) fn built_in() -> Vec<Kind> {
    let core = |kind: &str, plural: &str| Kind::built_in("", kind, plural);
    let short = |name: &str| vec![name.to_owned()];
    let role = |kind: &str, plural: &str, namespaced: bool| Kind {
        namespaced,
        ..Kind::built_in(RBAC, kind, plural)
    };
    let review = |group: &str, kind: &str, plural: &str| Kind {
        namespaced: false,
        verbs: &["create"],
        ..Kind::built_in(group, kind, plural)
    };
    vec![
        Kind {
            namespaced: false,
            status: true,
            short_names: short("ns"),
            ..core("Namespace", "namespaces")
        },
        Kind {
            status: true,
            generations: true,
            short_names: short("po"),
            ..core("Pod", "pods")
        },
        Kind {
            short_names: short("ev"),
            ..core("Event", "events")
        },
        Kind {
            short_names: short("cm"),
            ..core("ConfigMap", "configmaps")
        },
        core("Secret", "secrets"),
        core("ServiceAccount", "serviceaccounts"),
        role("Role", "roles", true),
        role("RoleBinding", "rolebindings", true),
        role("ClusterRole", "clusterroles", false),
        role("ClusterRoleBinding", "clusterrolebindings", false),
        Kind {
            status: true,
            generations: true,
            ..Kind::built_in("batch", "Job", "jobs")
        },
        // A real server keeps one set of events for both groups; here each has its own.
        Kind::built_in("events.k8s.io", "Event", "events"),
        Kind {
            blind_update: false,
            ..Kind::built_in("coordination.k8s.io", "Lease", "leases")
        },
        review("authentication.k8s.io", "TokenReview", "tokenreviews"),
        review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            "subjectaccessreviews",
        ),
        review(
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        ),
    ]
}
