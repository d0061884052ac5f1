//! What is sent to the server for one run: the result with its summary, and the record.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{Grouping, View, grouping, keys};
use crate::json;
use hindsight_proto::{
    names::{Parent, ParseNameError},
    v1alpha2::RecordSummary,
};

/// Which labels and annotations of a run are copied to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryPolicy {
    /// Keys of labels to copy.
    pub labels: Vec<String>,
    /// Keys of annotations to copy.
    pub annotations: Vec<String>,
}

impl Default for SummaryPolicy {
    fn default() -> Self {
        Self {
            labels: vec![keys::PIPELINE.to_owned()],
            annotations: Vec::new(),
        }
    }
}

/// One run, ready to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// Where it is kept, and what was odd about its wishes.
    pub grouping: Grouping,
    /// `data.type` of the record.
    pub data_type: String,
    /// Annotations to put on the result, over those it has.
    pub annotations: BTreeMap<String, String>,
    /// The result's summary; only of a run that its result is about.
    pub summary: Option<RecordSummary>,
}

/// Why an object cannot be stored as a run.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It does not say what it is.
    #[error("the object has no `{0}`, so it is no Kubernetes object")]
    NotAnObject(&'static str),
    /// It cannot be named.
    #[error("the run cannot be named")]
    Name(#[from] ParseNameError),
}

/// Decides all that is sent for an object, but for its bytes. `parent` is its tenant; by
/// default its namespace.
///
/// # Errors
/// If the object is not a Kubernetes object with a UID, or cannot be named.
pub fn upload(
    view: &View<'_>,
    parent: Option<Parent>,
    policy: &SummaryPolicy,
) -> Result<Upload, UploadError> {
    let api_version = view
        .api_version()
        .ok_or(UploadError::NotAnObject("apiVersion"))?;
    let kind = view.kind().ok_or(UploadError::NotAnObject("kind"))?;
    view.uid().ok_or(UploadError::NotAnObject("metadata.uid"))?;
    let parent = match parent {
        Some(parent) => parent,
        None => view
            .namespace()
            .ok_or(UploadError::NotAnObject("metadata.namespace"))?
            .parse()?,
    };
    let mut grouping = grouping::group(view, parent)?;
    let data_type = format!("{api_version}.{kind}");
    let mut annotations = wished(view, keys::RESULT_ANNOTATIONS, &mut grouping.notes);
    let summary = grouping.is_root.then(|| {
        copy(
            policy.labels.iter(),
            |key| view.label(key),
            &mut annotations,
        );
        copy(
            policy.annotations.iter(),
            |key| view.annotation(key),
            &mut annotations,
        );
        if let Some(name) = view.name() {
            annotations.insert(keys::OBJECT_NAME.to_owned(), name.to_owned());
        }
        RecordSummary {
            record: grouping.record.to_string(),
            r#type: data_type.clone(),
            start_time: view.started().map(to_proto),
            end_time: view.ended().map(to_proto),
            status: view.finish().outcome as i32,
            annotations: wished(view, keys::SUMMARY_ANNOTATIONS, &mut grouping.notes),
        }
    });
    Ok(Upload {
        grouping,
        data_type,
        annotations,
        summary,
    })
}

fn copy<'k, 'v>(
    keys: impl Iterator<Item = &'k String>,
    value: impl Fn(&str) -> Option<&'v str>,
    into: &mut BTreeMap<String, String>,
) {
    for key in keys {
        if let Some(value) = value(key) {
            into.insert(key.clone(), value.to_owned());
        }
    }
}

/// A JSON object in an annotation, its values as text. What is not one is noted, not fatal:
/// a typing error must not keep a run out of the history.
fn wished(view: &View<'_>, key: &str, notes: &mut Vec<String>) -> BTreeMap<String, String> {
    let Some(text) = view.annotation(key) else {
        return BTreeMap::new();
    };
    let read = json::parse(text.as_bytes()).map_err(|error| error.to_string());
    let read = read.and_then(|value| match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("it is `{other}`")),
    });
    match read {
        Ok(map) => map
            .into_iter()
            .map(|(key, value)| match value {
                Value::String(text) => (key, text),
                other => (key, other.to_string()),
            })
            .collect(),
        Err(error) => {
            notes.push(format!(
                "annotation {key} is not a JSON object ({error}); it is ignored"
            ));
            BTreeMap::new()
        }
    }
}

fn to_proto(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_microsecond().div_euclid(1_000_000),
        nanos: i32::try_from(time.as_microsecond().rem_euclid(1_000_000) * 1000)
            .expect("a fraction of a second is below 10^9 ns"),
    }
}
