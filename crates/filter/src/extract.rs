//! What a store keeps of a payload beside its bytes. It is read where the payload is checked, and remembered until it
//! is stored, so that a payload is parsed once.

use std::sync::Arc;

use bytes::Bytes;
use hindsight_run::{Kind, View, keys::PIPELINE_RUN};
use serde_json::Value;

use crate::columns::{ObjectColumns, columns_of};
use crate::model::Payload;
use crate::outline::outline;

/// The label that names the task within its pipeline.
const PIPELINE_TASK: &str = "tekton.dev/pipelineTask";

/// What a store keeps of a payload: nothing of one that is not JSON.
#[derive(Debug, Default)]
pub struct Extract {
    /// The values of its columns.
    pub columns: ObjectColumns,
    /// Which other runs it is like, if it is a run.
    pub family: Option<Family>,
}

/// What runs of one task of one pipeline have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// The pipeline, or the prefix of names that stands for one.
    pub pipeline: Option<String>,
    /// The task.
    pub task: Option<String>,
    /// Whether the run ended.
    pub is_settled: bool,
}

impl Extract {
    /// That of a payload of this type, of which `body` is the JSON or its [`outline`].
    fn of(data_type: &str, body: &Value) -> Self {
        let run = Kind::of_type(data_type).map(|_| View::new(body));
        Self {
            columns: columns_of(data_type, body),
            family: run.as_ref().map(Family::of),
        }
    }
}

impl Family {
    fn of(run: &View<'_>) -> Self {
        let whole = run.label(PIPELINE_RUN).or(run.name());
        // Without a template, runs are often called after a prefix that they share.
        let stem = whole.and_then(|name| Some(name.rsplit_once('-')?.0));
        // An embedded pipeline is called after its run.
        let pipeline = run.pipeline().filter(|name| Some(*name) != whole).or(stem);
        Self {
            pipeline: pipeline.map(str::to_owned),
            task: run.label(PIPELINE_TASK).or(run.task()).map(str::to_owned),
            is_settled: run.finish().done,
        }
    }
}

impl Payload {
    /// Remembers what is extracted of it, of which `body` is the [`outline`].
    pub fn remember(&self, body: &Value) {
        let extract = Extract::of(&self.data_type, body);
        self.memo.set(&self.data_type, &self.value, extract);
    }

    /// Takes its bytes, and what is extracted of them.
    pub fn take(&mut self) -> (Bytes, Arc<Extract>) {
        let value = std::mem::take(&mut self.value);
        let known = std::mem::take(&mut self.memo).of(&self.data_type, &value);
        let extract = known.unwrap_or_else(|| {
            let extract = outline(&value).map(|body| Extract::of(&self.data_type, &body));
            Arc::new(extract.unwrap_or_default())
        });
        (value, extract)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> Payload {
        let json = format!(r#"{{"metadata":{{"name":"{name}"}},"status":{{"steps":[]}}}}"#);
        Payload::new("tekton.dev/v1.TaskRun".to_owned(), json.into())
    }

    fn name(mut payload: Payload) -> Option<String> {
        let (_, extract) = payload.take();
        let name = crate::condition::ObjectField::Name;
        extract.columns.text(name).map(str::to_owned)
    }

    #[test]
    fn what_is_remembered_is_of_the_bytes_that_were_read() {
        // Another body shows where the memory is used.
        let other = serde_json::json!({"metadata": {"name": "remembered"}});
        let payload = run("read");
        payload.remember(&other);
        assert_eq!(payload, run("read"));
        assert_eq!(name(payload.clone()).as_deref(), Some("remembered"));
        let mut changed = payload.clone();
        changed.value = Bytes::copy_from_slice(&payload.value);
        assert_eq!(name(changed).as_deref(), Some("read"));
        let mut changed = payload.clone();
        changed.value = payload.value.slice(1..);
        assert_eq!(name(changed), None);
        let mut changed = payload;
        changed.data_type = "x".to_owned();
        assert_eq!(name(changed).as_deref(), Some("read"));
    }

    #[test]
    fn a_taken_payload_keeps_nothing() {
        let mut payload = run("a");
        payload.remember(&serde_json::json!({}));
        let (value, extract) = payload.take();
        assert!(extract.family.is_some());
        assert!(payload.value.is_empty());
        payload.value = value;
        assert_eq!(name(payload).as_deref(), Some("a"));
        let (_, extract) = Payload::new("logs".to_owned(), "{}".into()).take();
        assert_eq!(extract.family, None);
    }
}
