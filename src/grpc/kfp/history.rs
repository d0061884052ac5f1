//! Versions in the history: a record for each, which stays when the version is deleted. A record that cannot be written
//! is logged, and undoes nothing.

use hindsight_filter::model::{Parent, RecordName};
use hindsight_kfp::{
    history::{VERSION_TYPE, deleted, object},
    model::{Pipeline, PipelineVersion},
};
use hindsight_run::json;
use hindsight_runtime::error::report;
use serde_json::Value;

use crate::service::{Error, Service};

/// Writes records of versions of a parent.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) service: Service,
    pub(super) parent: Parent,
}

impl History {
    /// A version was created or changed.
    pub(super) async fn stored(&self, pipeline: &Pipeline, version: &PipelineVersion) {
        let value = object(pipeline, version);
        let id = (pipeline.id.as_str(), version.id.as_str());
        self.keep(id, |_| Some(value.clone())).await;
    }

    /// A version was deleted, of which nothing but its id may be known.
    pub(super) async fn deleted(&self, pipeline: &Pipeline, id: &str) {
        let now = self.service.now();
        let next = |stored: Option<Value>| {
            let unknown = || {
                serde_json::json!({
                    "apiVersion": "pipelines.kubeflow.org/v2beta1",
                    "kind": "PipelineVersion",
                    "metadata": {"uid": id, "labels": {"pipelines.kubeflow.org/pipeline-id": pipeline.id}},
                    "spec": {"pipelineName": pipeline.name},
                })
            };
            Some(deleted(stored.unwrap_or_else(unknown), now))
        };
        self.keep((&pipeline.id, id), next).await;
    }

    async fn keep(
        &self,
        (pipeline_id, id): (&str, &str),
        next: impl Fn(Option<Value>) -> Option<Value>,
    ) {
        let name = format!("{}/results/{pipeline_id}/records/{id}", self.parent);
        let next = |stored: Option<&[u8]>| {
            let stored = stored.and_then(|stored| json::parse(stored).ok());
            next(stored).map(|value| value.to_string().into_bytes())
        };
        let kept = match name.parse::<RecordName>() {
            Ok(record) => {
                self.service
                    .keep_definition(&record, VERSION_TYPE, next)
                    .await
            }
            Err(error) => Err(Error::Invalid(error.to_string())),
        };
        if let Err(error) = kept {
            tracing::warn!(
                record.name = name,
                error = report(&error),
                "pipeline version `{id}` is not in the history"
            );
        }
    }
}
