//! Samples, and how they are looked at.

use hindsight_kfp::{
    Error,
    kubernetes::KubernetesStore,
    model::{NewPipeline, NewVersion, Spec, Tags},
    query::{ListAsk, Query, Scope},
};
use hindsight_runtime::error::{ErrorKind, HasKind};
use jiff::Timestamp;
use kubesim::{Crd, Sim};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "pipelines.kubeflow.org";
pub(crate) const API: &str = "pipelines.kubeflow.org/v2beta1";

/// A cluster with both kinds, and the store of its namespace `ci`.
pub(crate) fn sim() -> (Sim, KubernetesStore) {
    let sim = Sim::new();
    for (kind, plural) in [
        ("Pipeline", "pipelines"),
        ("PipelineVersion", "pipelineversions"),
    ] {
        sim.install(Crd::namespaced(GROUP, "v2beta1", kind, plural));
    }
    sim.namespace("ci").namespace("dev");
    let store = KubernetesStore::of_namespace(sim.client(), "ci");
    (sim, store)
}

pub(crate) fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn pipeline(name: &str) -> NewPipeline {
    NewPipeline {
        namespace: String::new(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        tags: Tags::new(),
        original_id: None,
        now: now(),
    }
}

pub(crate) fn spec(name: &str) -> Spec {
    Spec {
        pipeline: json!({"pipelineInfo": {"name": name}, "root": {"executorLabel": "e"}, "schemaVersion": "2.1.0"}),
        platform: None,
    }
}

pub(crate) fn version(name: &str) -> NewVersion {
    NewVersion {
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        tags: Tags::new(),
        package_url: String::new(),
        code_source_url: String::new(),
        spec: spec("hello"),
        original_id: None,
        now: now(),
    }
}

/// A Pipeline object as people write it.
pub(crate) fn pipeline_object(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": API, "kind": "Pipeline", "metadata": {"name": name, "namespace": namespace}})
}

/// A PipelineVersion object as people write it, of a pipeline that is called so.
pub(crate) fn version_object(pipeline: &str, name: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "PipelineVersion", "metadata": {"name": name, "namespace": "ci"},
        "spec": {"pipelineName": pipeline, "pipelineSpec": spec(name).pipeline},
    })
}

pub(crate) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

pub(crate) fn ask(page_size: i32, page_token: &str, sort_by: &str, filter: &str) -> ListAsk {
    ListAsk {
        page_token: page_token.to_owned(),
        page_size,
        sort_by: sort_by.to_owned(),
        filter: filter.to_owned(),
    }
}

pub(crate) fn all_pipelines(namespace: &str, ask: &ListAsk) -> Query {
    let scope = Scope::Pipelines {
        namespace: namespace.to_owned(),
    };
    Query::new(scope, ask, usize::MAX).unwrap()
}

pub(crate) fn all_versions(pipeline_id: &str, ask: &ListAsk) -> Query {
    let scope = Scope::Versions {
        pipeline_id: pipeline_id.to_owned(),
    };
    Query::new(scope, ask, usize::MAX).unwrap()
}

#[track_caller]
pub(crate) fn refuses<T: std::fmt::Debug>(outcome: Result<T, Error>, kind: ErrorKind, why: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, why));
}
