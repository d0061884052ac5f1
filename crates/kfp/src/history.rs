//! A version as a record of the history: the object that the Kubernetes API would show, whatever store it is in.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    content,
    model::{Pipeline, PipelineVersion},
    names,
};

/// The type of such a record.
pub const VERSION_TYPE: &str = "pipelines.kubeflow.org/v2beta1.PipelineVersion";

/// The version of a pipeline as an object, with the label by which its runs find it.
#[must_use]
pub fn object(pipeline: &Pipeline, version: &PipelineVersion) -> Value {
    let mut spec = Map::new();
    let mut insert = |key: &str, text: &str| {
        if !text.is_empty() {
            spec.insert(key.to_owned(), json!(text));
        }
    };
    insert("displayName", &version.display_name);
    insert("description", &version.description);
    insert("pipelineName", &pipeline.name);
    insert("versionName", &version.name);
    insert("codeSourceURL", &version.code_source_url);
    insert("pipelineSpecURI", &version.package_url);
    if !version.tags.is_empty() {
        spec.insert("tags".to_owned(), json!(version.tags));
    }
    let mut labels = json!({"pipelines.kubeflow.org/pipeline-id": pipeline.id});
    if let Ok(documents) = &version.spec {
        if let Some(digest) = content::of_version(&documents.pipeline, documents.platform.as_ref())
        {
            labels[content::CONTENT_LABEL] = json!(digest);
        }
        spec.insert("pipelineSpec".to_owned(), documents.pipeline.clone());
        if let Some(platform) = &documents.platform {
            spec.insert("platformSpec".to_owned(), platform.clone());
        }
    }
    // A name that no object may have is shown as it is.
    let name = names::version_object(&pipeline.name, &version.name);
    let mut metadata = json!({
        "name": name.unwrap_or_else(|_refused| version.name.clone()),
        "uid": version.id,
        "creationTimestamp": version.created_at.to_string(),
        "labels": labels,
    });
    if !pipeline.namespace.is_empty() {
        metadata["namespace"] = json!(pipeline.namespace);
    }
    json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1",
        "kind": "PipelineVersion",
        "metadata": metadata,
        "spec": spec,
    })
}

/// The same once it is deleted.
#[must_use]
pub fn deleted(mut object: Value, now: Timestamp) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        metadata.insert("deletionTimestamp".to_owned(), json!(now.to_string()));
    }
    object
}
