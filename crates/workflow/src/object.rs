//! A workflow as the API server has it.

use hindsight_run::{View, group};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    spec::{ObjectReference, Spec},
    status::Status,
};

/// The finalizer that holds a workflow until its Jobs were told to end.
pub const FINALIZER: &str = "hindsight.dev/workflow";

/// The finalizer by which a delete asks to leave the Jobs alone.
const ORPHAN: &str = "orphan";

/// A workflow as the API server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// UID of the object.
    pub uid: String,
    /// Whether its delete was asked for.
    pub is_deleting: bool,
    /// The result that it is stored in, which its Jobs are stored in too.
    pub result: Option<String>,
    /// What holds it.
    pub finalizers: Vec<String>,
    /// What is to be run, or why that cannot be read.
    pub spec: Result<Spec, String>,
    /// How far it is.
    pub status: Status,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
}

impl Workflow {
    /// Reads an object. It fails where metadata or status are not of their types; a spec that is not is
    /// kept as its error.
    pub fn read(object: &Value) -> Result<Self, String> {
        let head = Head::deserialize(object).map_err(|error| error.to_string())?;
        let spec = match object.get("spec") {
            None | Some(Value::Null) => Ok(Spec::default()),
            Some(spec) => Spec::deserialize(spec).map_err(|error| format!("spec: {error}")),
        };
        Ok(Self {
            namespace: head.metadata.namespace.unwrap_or_default(),
            name: head.metadata.name.unwrap_or_default(),
            uid: head.metadata.uid.unwrap_or_default(),
            is_deleting: head.metadata.deletion_timestamp.is_some(),
            result: result_of(object),
            finalizers: head.metadata.finalizers,
            spec,
            status: head.status.unwrap_or_default(),
        })
    }

    /// Whether our finalizer holds it.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }

    /// When it has to be over, if it began at `start`.
    #[must_use]
    pub fn deadline(&self, start: Timestamp) -> Option<Timestamp> {
        let seconds = self.spec.as_ref().ok()?.active_deadline_seconds;
        let seconds = seconds.filter(|seconds| *seconds > 0)?;
        start.checked_add(SignedDuration::from_secs(seconds)).ok()
    }

    /// Whether its Jobs outlive it.
    pub(crate) fn is_orphaning(&self) -> bool {
        self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// The external object of a step, with the namespace that it is in.
    #[must_use]
    pub fn target(&self, step: &str) -> Option<ObjectReference> {
        let step = self.spec.as_ref().ok()?.steps.get(step)?;
        let mut target = step.external_ref.clone()?;
        if target.namespace.is_empty() {
            target.namespace.clone_from(&self.namespace);
        }
        Some(target)
    }

    /// The external objects that are waited for, by step.
    pub fn waits_for(&self) -> impl Iterator<Item = (&str, ObjectReference)> {
        let steps = self.spec.iter().flat_map(|spec| spec.steps.keys());
        steps
            .filter(|step| !self.status.is_complete(step))
            .filter_map(|step| Some((step.as_str(), self.target(step)?)))
    }
}

/// The name of the result that an object is stored in, as far as it tells by itself.
pub(crate) fn result_of(object: &Value) -> Option<String> {
    let view = View::new(object);
    let parent = view.namespace()?.parse().ok()?;
    let grouping = group(&view, parent).ok()?;
    Some(grouping.record.result().to_string())
}
