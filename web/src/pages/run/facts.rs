//! What a run was given and what it said of itself, read from its payload.

use hindsight_filter::words;
use hindsight_proto::v1alpha2::Record;
use hindsight_run::{json, keys};
use serde_json::Value;

use crate::ask::Ask;
use crate::html::end_cut;
use crate::pages::series::{Series, parent_of};
use crate::route::Of;

/// Most entries of each kind, and longest text of one.
const ENTRIES: usize = 100;
const TEXT: usize = 500;
/// Items of lists that are read of a payload: those that are shown, and as many children as tell whether a run is wide.
const LISTED: usize = super::WIDE + 1;

/// Parts of a payload that people ask for.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) pipeline: String,
    /// By what lists know its runs: its pipeline, or the template that a label names.
    pub(super) listed: Option<(Of, String)>,
    pub(super) params: Vec<Fact>,
    pub(super) results: Vec<Fact>,
    pub(super) labels: Vec<Fact>,
    pub(super) conditions: Vec<Condition>,
    /// How many objects it says are below it, or [`LISTED`] if there are more.
    pub(super) children: usize,
}

/// A name and a value.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) value: String,
    /// The list of runs that share it.
    pub(super) link: String,
}

/// What a controller says of an object.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Facts {
    /// Of a record with a payload of JSON.
    pub(super) fn of(ask: &Ask, record: &Record) -> Option<Self> {
        let payload = record.data.as_ref()?;
        let object = json::with_short_lists(&payload.value, LISTED).ok()?;
        let params = match object.pointer("/spec/params") {
            Some(params) => named(params),
            None => entries(&object, "/spec/arguments/parameters"),
        };
        let outputs = ["/status/results", "/status/outputs/parameters"];
        let results = outputs.into_iter().map(|path| entries(&object, path));
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let pipeline = label(keys::PIPELINE).or_else(|| {
            let named = object.pointer("/spec/pipelineRef/name");
            named.and_then(Value::as_str)
        });
        let listed = match pipeline {
            Some(name) => Some((Of::Pipeline, name.to_owned())),
            None => Series::labelled(label).map(|series| (series.of, series.name.to_owned())),
        };
        let named = listed.as_ref().map(|(_, name)| name.as_str());
        let pipeline = named.or_else(|| hindsight_run::View::new(&object).pipeline());
        Some(Self {
            name: text(&object, "/metadata/name"),
            namespace: text(&object, "/metadata/namespace"),
            pipeline: end_cut(pipeline.unwrap_or_default(), TEXT),
            listed,
            params,
            results: results.flatten().collect(),
            labels: labels(ask, parent_of(&record.name), &object),
            conditions: conditions(&object),
            children: object
                .pointer("/status/childReferences")
                .and_then(Value::as_array)
                .map_or(0, Vec::len),
        })
    }
}

fn text(value: &Value, path: &str) -> String {
    let found = value.pointer(path).and_then(Value::as_str);
    end_cut(found.unwrap_or_default(), TEXT)
}

fn entries(object: &Value, path: &str) -> Vec<Fact> {
    object.pointer(path).map(named).unwrap_or_default()
}

fn named(list: &Value) -> Vec<Fact> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let facts = list.iter().take(ENTRIES).filter_map(|entry| {
        let value = entry.get("value").or_else(|| entry.get("default"))?;
        Some(Fact {
            name: text(entry, "/name"),
            value: shown(value),
            link: String::new(),
        })
    });
    facts.collect()
}

fn labels(ask: &Ask, parent: &str, object: &Value) -> Vec<Fact> {
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let facts = labels.into_iter().flatten().take(ENTRIES);
    facts
        .map(|(name, value)| Fact {
            name: end_cut(name, TEXT),
            value: shown(value),
            link: label_link(ask, parent, name, value).unwrap_or_default(),
        })
        .collect()
}

/// The list of runs with this label, if it is one that Kubernetes takes.
fn label_link(ask: &Ask, parent: &str, name: &str, value: &Value) -> Option<String> {
    let value = value.as_str()?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_label = name.len() <= 317 && name.chars().all(is_key) && value.len() <= 63;
    let word = format!("label:{name}={}", words::value(value));
    is_label.then(|| ask.links.runs(&word, parent))
}

fn conditions(object: &Value) -> Vec<Condition> {
    let list = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let conditions = list.into_iter().flatten().take(ENTRIES);
    conditions
        .map(|condition| Condition {
            name: text(condition, "/type"),
            status: text(condition, "/status"),
            reason: text(condition, "/reason"),
            message: text(condition, "/message"),
        })
        .collect()
}

/// A value as text: texts as they are, anything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => end_cut(text, TEXT),
        other => end_cut(&other.to_string(), TEXT),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(object: &Value) -> Facts {
        let data = hindsight_proto::v1alpha2::Any {
            value: object.to_string().into_bytes().into(),
            ..Default::default()
        };
        let record = Record {
            data: Some(data),
            ..Record::default()
        };
        Facts::of(&Ask::sample(), &record).unwrap()
    }

    #[tokio::test]
    async fn params_and_results_are_found_in_every_engine() {
        let tekton = facts(&json!({
            "metadata": {"namespace": "shop", "labels": {"tekton.dev/pipeline": "release"}},
            "spec": {"params": [{"name": "revision", "value": "a1"}, {"name": "l", "value": ["x"]}]},
            "status": {"results": [{"name": "digest", "value": "sha256:1"}],
                "conditions": [{"type": "Succeeded", "status": "True"}]},
        }));
        assert_eq!(
            (tekton.namespace.as_str(), tekton.pipeline.as_str()),
            ("shop", "release")
        );
        assert_eq!(tekton.params[1].value, "[\"x\"]");
        assert_eq!((tekton.results.len(), tekton.conditions.len()), (1, 1));
        let argo =
            facts(&json!({"spec": {"arguments": {"parameters": [{"name": "n", "value": 3}]}}}));
        assert_eq!(argo.params[0].value, "3");
    }

    #[tokio::test]
    async fn what_has_another_shape_is_passed_over() {
        let odd = facts(
            &json!({"spec": {"params": {"a": 1}}, "status": {"conditions": "x"},
            "metadata": {"labels": []}}),
        );
        assert!(odd.params.is_empty() && odd.conditions.is_empty() && odd.labels.is_empty());
        let many: Vec<_> = (0..1_000)
            .map(|n| json!({"name": "n".repeat(n), "value": n}))
            .collect();
        assert_eq!(
            facts(&json!({"spec": {"params": many}})).params.len(),
            ENTRIES
        );
    }
}
