//! The CustomResourceDefinition of workflows, with what CEL can say about them.
//!
//! CEL cannot find cycles; the webhook and the controller do. The schema preserves templates of Jobs without
//! knowing their fields: API servers of Kubernetes 1.36 compare them nevertheless, and no rule relies on it.

use serde_json::{Value, json};

use crate::{GROUP, KIND, MAX_STEPS, PLURAL, VERSION};

/// The CustomResourceDefinition, with the schema and the rules that the API server checks.
#[must_use]
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": format!("{KIND}List"),
                "plural": PLURAL,
                "singular": "workflow",
                "shortNames": ["dagwf"],
                "categories": ["hindsight"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

/// What `kubectl get` shows beside the name.
fn columns() -> Value {
    json!([
        {"name": "Status", "type": "string", "jsonPath": ".status.phase",
            "description": "Running, Complete or Failed"},
        {"name": "Steps", "type": "string", "jsonPath": ".status.progress",
            "description": "Steps that are complete, of all"},
        {"name": "Started", "type": "date", "jsonPath": ".status.startTime"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ])
}

fn schema() -> Value {
    json!({
        "description": "A graph of Jobs that run to completion.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec(),
            "status": status(),
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(oldSelf.status) || !has(oldSelf.status.conditions) || \
                         !oldSelf.status.conditions.exists(c, c.status == 'True' && \
                         (c.type == 'Complete' || c.type == 'Failed')) || self.spec == oldSelf.spec",
                "message": "the workflow is finished; its spec does not change any more",
            },
            {
                "rule": "!has(oldSelf.status) || !has(oldSelf.status.statuses) || \
                         !has(oldSelf.spec.steps) || oldSelf.status.statuses.all(s, \
                         !(s in oldSelf.spec.steps) || (has(self.spec.steps) && s in self.spec.steps))",
                "message": "cannot delete a running or completed step",
            },
            {
                "rule": "!has(oldSelf.status) || !has(oldSelf.status.statuses) || \
                         !has(oldSelf.spec.steps) || !has(self.spec.steps) || \
                         oldSelf.status.statuses.all(s, !(s in oldSelf.spec.steps) || \
                         !(s in self.spec.steps) || self.spec.steps[s] == oldSelf.spec.steps[s])",
                "message": "cannot modify a running or completed step",
            },
        ],
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "properties": {
            "metadata": template_metadata("Labels and annotations of all Jobs; those of a template override them."),
            "activeDeadlineSeconds": {
                "description": "Time that the workflow may take from its start. Then running Jobs are deleted.",
                "type": "integer", "format": "int64", "minimum": 1,
            },
            "selector": selector(),
            "steps": steps(),
        },
        "x-kubernetes-validations": [{
            "rule": "has(self.selector) == has(oldSelf.selector) && \
                     (!has(self.selector) || self.selector == oldSelf.selector)",
            "message": "spec.selector does not change",
        }],
    })
}

fn steps() -> Value {
    json!({
        "description": "The steps by their names.",
        "type": "object",
        "maxProperties": MAX_STEPS,
        "additionalProperties": step(),
        "x-kubernetes-validations": [
            {
                "rule": "self.all(s, s.size() <= 63 && s.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
                "message": "names of steps are at most 63 of a-z, 0-9 and -, with a letter or digit at both ends",
            },
            {
                "rule": "self.all(s, !has(self[s].dependencies) || self[s].dependencies.all(d, d != s))",
                "message": "a step depends on itself",
                "messageExpression": "'step \"' + self.filter(s, has(self[s].dependencies) && \
                    self[s].dependencies.exists(d, d == s))[0] + '\" depends on itself'",
            },
            {
                "rule": "self.all(s, !has(self[s].dependencies) || self[s].dependencies.all(d, d in self))",
                "message": "a step depends on one that does not exist",
                "messageExpression": "'step \"' + self.filter(s, has(self[s].dependencies) && \
                    self[s].dependencies.exists(d, !(d in self)))[0] + '\" depends on one that does not exist'",
            },
        ],
    })
}

fn step() -> Value {
    json!({
        "type": "object",
        "properties": {
            "jobTemplate": {
                "description": "The Job that is created once all dependencies are complete.",
                "type": "object",
                "required": ["spec"],
                "properties": {
                    "metadata": template_metadata("Labels and annotations of the Job."),
                    "spec": {
                        "description": "The spec of the Job, as in batch/v1.",
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {
                            "manualSelector": {"type": "boolean"},
                            "selector": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        },
                        "x-kubernetes-validations": [
                            {"rule": "!has(self.selector)",
                                "message": "the selector of a Job is generated"},
                            {"rule": "!has(self.manualSelector) || !self.manualSelector",
                                "message": "the selector of a Job is generated; want no manualSelector"},
                        ],
                    },
                },
            },
            "externalRef": external_reference(),
            "dependencies": {
                "description": "Steps that are complete before this one starts. Of no meaning beside externalRef.",
                "type": "array",
                "maxItems": MAX_STEPS,
                "x-kubernetes-list-type": "set",
                "items": {"type": "string", "maxLength": 63},
            },
        },
        "x-kubernetes-validations": [{
            "rule": "has(self.jobTemplate) != has(self.externalRef)",
            "message": "want exactly one of jobTemplate and externalRef",
        }],
    })
}

fn external_reference() -> Value {
    let mut reference = reference("The Workflow or Job that is waited for, in any namespace.");
    reference["required"] = json!(["kind", "name"]);
    reference["x-kubernetes-validations"] = json!([{
        "rule": "(self.kind == 'Workflow' && (!has(self.apiVersion) || \
                 self.apiVersion.startsWith('hindsight.dev/'))) || (self.kind == 'Job' && \
                 (!has(self.apiVersion) || self.apiVersion == 'batch/v1'))",
        "message": "want a Workflow of hindsight.dev/v1alpha1 or a Job of batch/v1",
    }]);
    reference
}

fn reference(description: &str) -> Value {
    let text = json!({"type": "string", "maxLength": 512});
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "kind": text, "namespace": text, "name": text, "uid": text, "apiVersion": text,
            "resourceVersion": text, "fieldPath": text,
        },
    })
}

fn template_metadata(description: &str) -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "description": description,
        "type": "object",
        "properties": {"labels": texts, "annotations": texts},
    })
}

fn selector() -> Value {
    json!({
        "description": "A selector that every Job matches; labels of matchLabels are given to all Jobs.",
        "type": "object",
        "properties": {
            "matchLabels": {
                "type": "object", "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 63},
            },
            "matchExpressions": {
                "type": "array", "maxItems": 64,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "maxLength": 317},
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {
                            "type": "array", "maxItems": 64,
                            "items": {"type": "string", "maxLength": 63},
                        },
                    },
                },
            },
        },
    })
}

fn status() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "type": "object",
        "properties": {
            "phase": {"description": "The conditions in one word, for lists.", "type": "string"},
            "progress": {"description": "Steps that are complete, of all.", "type": "string"},
            "startTime": time,
            "completionTime": time,
            "conditions": {
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {
                        "type": {"type": "string", "maxLength": 64},
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "lastProbeTime": time,
                        "lastTransitionTime": time,
                        "reason": {"type": "string"},
                        "message": {"type": "string"},
                    },
                },
            },
            "statuses": {
                "description": "The steps that were started.",
                "type": "object",
                "maxProperties": 2 * MAX_STEPS,
                "additionalProperties": {
                    "type": "object",
                    "required": ["complete"],
                    "properties": {
                        "complete": {"type": "boolean"},
                        "reference": reference("The Job, or the external object."),
                    },
                },
            },
        },
    })
}
