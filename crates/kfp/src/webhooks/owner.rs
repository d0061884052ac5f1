//! How the metadata of a version becomes that of a version of a pipeline.

use serde_json::{Value, json};

use crate::kubernetes::{API_VERSION, PIPELINE, Reference, labels};

/// The operations of a JSON patch that are left to do; none once they were done.
pub(super) fn patch(metadata: &Value, pipeline: &Reference, content: Option<&str>) -> Vec<Value> {
    let mut patch = Vec::new();
    label(metadata, pipeline, content, &mut patch);
    owner(metadata, pipeline, &mut patch);
    patch
}

fn label(metadata: &Value, pipeline: &Reference, content: Option<&str>, patch: &mut Vec<Value>) {
    let found = &metadata["labels"];
    if !found.is_object() {
        patch.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
    }
    for (key, value) in labels(&pipeline.uid, &pipeline.name, content) {
        if found[key] != value {
            let path = format!(
                "/metadata/labels/{}",
                key.replace('~', "~0").replace('/', "~1")
            );
            patch.push(json!({"op": "add", "path": path, "value": value}));
        }
    }
}

/// The first reference to a pipeline is that of the version; those to other kinds stay as they are.
fn owner(metadata: &Value, pipeline: &Reference, patch: &mut Vec<Value>) {
    let Some(owners) = metadata["ownerReferences"].as_array() else {
        let value = json!([reference(&json!({}), pipeline)]);
        patch.push(json!({"op": "add", "path": "/metadata/ownerReferences", "value": value}));
        return;
    };
    let of_pipeline =
        |owner: &&Value| owner["apiVersion"] == API_VERSION && owner["kind"] == PIPELINE;
    match owners.iter().position(|owner| of_pipeline(&owner)) {
        None => {
            let value = reference(&json!({}), pipeline);
            patch.push(json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": value}));
        }
        Some(index) => {
            let before = owners.get(index).unwrap_or(&Value::Null);
            let value = reference(before, pipeline);
            if *before != value {
                let path = format!("/metadata/ownerReferences/{index}");
                patch.push(json!({"op": "replace", "path": path, "value": value}));
            }
        }
    }
}

/// A reference to the pipeline that keeps what else it says.
fn reference(before: &Value, pipeline: &Reference) -> Value {
    let mut reference = before.clone();
    reference["apiVersion"] = json!(API_VERSION);
    reference["kind"] = json!(PIPELINE);
    reference["name"] = json!(pipeline.name);
    reference["uid"] = json!(pipeline.uid);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}
