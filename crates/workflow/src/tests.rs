//! Tests of this crate: validity, changes, the graph, the definition of the kind, random histories.

mod admission;
mod changes;
mod crd;
mod custom;
mod custom_model;
mod describe;
mod model;
mod passes;
mod pipeline_ends;
mod pipeline_model;
mod pipeline_specs;
mod pipelines;
mod specs;

use serde_json::{Value, json};

use crate::Workflow;

pub(crate) const UID: &str = "0f5cc1bb-6f29-4f69-8f3c-6e0e4e8a0b3a";

/// A workflow object with this spec.
pub(crate) fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "build", "namespace": "ci", "uid": UID},
        "spec": spec,
    })
}

#[track_caller]
pub(crate) fn workflow(spec: &Value) -> Workflow {
    Workflow::read(&object(spec)).unwrap()
}

/// A step that runs a Job once these are complete.
pub(crate) fn job(dependencies: &[&str]) -> Value {
    json!({
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox", "command": ["true"]}],
        }}}},
        "dependencies": dependencies,
    })
}
