//! The CustomResourceDefinition of Tekton's old `Run`, for clusters that have none and whose users still
//! write that kind. Its rules are those of TEP-0061.

use serde_json::{Value, json};

use super::form::Form;

/// The CustomResourceDefinition, with the schema and the rules that the API server checks.
#[must_use]
pub fn run_definition() -> Value {
    let form = Form::Run;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", form.plural(), Form::GROUP)},
        "spec": {
            "group": Form::GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": form.kind(),
                "listKind": format!("{}List", form.kind()),
                "plural": form.plural(),
                "singular": "run",
                "categories": ["tekton", "tekton-pipelines"],
            },
            "versions": [{
                "name": form.version(),
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Succeeded", "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].status"},
                    {"name": "Reason", "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].reason"},
                    {"name": "StartTime", "type": "date", "jsonPath": ".status.startTime"},
                    {"name": "CompletionTime", "type": "date", "jsonPath": ".status.completionTime"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

fn spec() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "ref": {
                "description": "The custom task that is named.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"apiVersion": text, "kind": text, "name": text},
                "x-kubernetes-validations": named(),
            },
            "spec": {
                "description": "The custom task that is embedded. Its own spec is for its controller to judge.",
                "type": "object",
                "properties": {
                    "apiVersion": text,
                    "kind": text,
                    "metadata": {
                        "type": "object",
                        "properties": {"labels": texts, "annotations": texts},
                    },
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
                "x-kubernetes-validations": named(),
            },
            "params": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"name": text},
                },
            },
            "status": text,
            "statusMessage": text,
            "serviceAccountName": text,
            "timeout": text,
            "retries": {"type": "integer", "minimum": 0},
        },
        "x-kubernetes-validations": [
            {"rule": "has(self.ref) || has(self.spec)",
                "message": "spec.ref, spec.spec: neither is set; want one of them"},
            {"rule": "!has(self.ref) || !has(self.spec)",
                "message": "spec.ref, spec.spec: both are set; want one of them"},
        ],
    })
}

/// What TEP-0061 demands of a reference and of an embedded spec.
fn named() -> Value {
    json!([
        {"rule": "has(self.apiVersion) && self.apiVersion != ''", "message": "apiVersion: is missing"},
        {"rule": "has(self.kind) && self.kind != ''", "message": "kind: is missing"},
    ])
}
