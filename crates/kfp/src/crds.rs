//! The CustomResourceDefinitions of pipelines and of their versions.
//!
//! They are those of Kubeflow, and two more things: a version gets the condition that it is ready by a default, as
//! nothing else writes it where no server runs; and `kubectl get` shows columns.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::{
    kubernetes::{
        GROUP, PIPELINE, PIPELINE_VERSION, PIPELINE_VERSIONS, PIPELINES, VERSION, condition,
    },
    model::Status,
};

/// What a name of a version is in Kubernetes.
const VERSION_NAME: &str = r"^[a-z0-9]([a-z0-9\.\-]*[a-z0-9])?$";

/// The definitions of Pipeline and PipelineVersion, as objects of `apiextensions.k8s.io/v1`.
#[must_use]
pub fn definitions() -> [Value; 2] {
    [pipelines(), pipeline_versions()]
}

/// The definition of pipelines.
#[must_use]
pub fn pipelines() -> Value {
    let schema = object(json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": object(json!({
            "displayName": text("The name for people; the name of the object where it is empty."),
            "description": text("What the pipeline is for."),
            "tags": tags(),
        })),
    }));
    let columns = json!([
        {"name": "Display name", "type": "string", "jsonPath": ".spec.displayName"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    definition(
        PIPELINE,
        PIPELINES,
        "pipeline",
        &json!({
            "additionalPrinterColumns": columns,
            "schema": {"openAPIV3Schema": schema},
        }),
    )
}

/// The definition of versions.
#[must_use]
pub fn pipeline_versions() -> Value {
    let any = |description: &str| json!({"description": description, "x-kubernetes-preserve-unknown-fields": true});
    let mut version_name = text(
        "The name by which the pipeline knows the version; that of the object where it is empty.",
    );
    version_name["maxLength"] = json!(253);
    version_name["pattern"] = json!(VERSION_NAME);
    let mut spec = object(json!({
        "displayName": text("The name for people; the name of the version where it is empty."),
        "description": text("What the version is for."),
        "codeSourceURL": text("Where the source of the version is."),
        "pipelineName": text("The name of the Pipeline object of the same namespace that this is a version of."),
        "versionName": version_name,
        "pipelineSpec": any("The pipeline spec, as the SDK compiles it."),
        "platformSpec": any("The platform spec that belongs to it."),
        "pipelineSpecURI": text("Where the pipeline spec was downloaded."),
        "tags": tags(),
    }));
    spec["required"] = json!(["pipelineSpec"]);
    let mut schema = object(json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": spec,
        "status": status(),
    }));
    schema["required"] = json!(["spec"]);
    let columns = json!([
        {"name": "Pipeline", "type": "string", "jsonPath": ".spec.pipelineName"},
        {"name": "Version", "type": "string", "jsonPath": ".spec.versionName"},
        {"name": "Status", "type": "string", "jsonPath": ".status.conditions[0].reason"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    definition(
        PIPELINE_VERSION,
        PIPELINE_VERSIONS,
        "pipelineversion",
        &json!({
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns,
            "schema": {"openAPIV3Schema": schema},
        }),
    )
}

fn definition(kind: &str, plural: &str, singular: &str, version: &Value) -> Value {
    let mut served = json!({"name": VERSION, "served": true, "storage": true});
    for (key, value) in version.as_object().into_iter().flatten() {
        served[key] = value.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": singular,
            },
            "versions": [served],
        },
    })
}

fn status() -> Value {
    let mut condition_schema = object(json!({
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "message": {"type": "string", "maxLength": 32768},
    }));
    condition_schema["required"] = json!(["type", "status", "reason", "message"]);
    let mut status = object(json!({"conditions": {"type": "array", "items": condition_schema}}));
    status["default"] = json!({"conditions": [condition(Status::Ready)]});
    status
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn tags() -> Value {
    json!({
        "type": "object",
        "description": "Texts under keys that users choose.",
        "additionalProperties": {"type": "string"},
    })
}
