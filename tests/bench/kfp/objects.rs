//! Lists of the store of Kubernetes objects: 5,000 pipelines of a namespace, and 5,000 versions of one of them.

use std::time::{Duration, Instant};

use hindsight_kfp::{kubernetes::KubernetesStore, query::Query, store::PipelineStore as _};
use kubesim::{Crd, Sim};
use serde_json::json;

use crate::{ListAsk, Scope, ask, filter};

/// Pipelines, and as many versions.
const OBJECTS: usize = 5000;
/// What a list may take.
pub(crate) const BOUND: Duration = Duration::from_millis(200);
/// How often each case is asked.
const ASKED: usize = 20;
/// Bytes of the spec of a version, about as many as the SDK writes for a pipeline of ten components.
const SPEC: usize = 4096;

/// What lists took, by case.
pub(crate) async fn run() -> Vec<(&'static str, Vec<Duration>)> {
    let sim = Sim::new();
    sim.install_all(Crd::kubeflow()).namespace("kubeflow");
    let api = "pipelines.kubeflow.org/v2beta1";
    let mut id = String::new();
    for number in 0..OBJECTS {
        let name = format!("pipeline-{number}");
        let made = sim.create(json!({
            "apiVersion": api, "kind": "Pipeline", "metadata": {"name": name, "namespace": "kubeflow"},
            "spec": {"displayName": format!("Pipeline {number}"), "tags": {"team": format!("t{}", number % 100)}},
        }));
        id = made.unwrap()["metadata"]["uid"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    for number in 0..OBJECTS {
        let name = format!("pipeline-{}", OBJECTS - 1);
        let description = "x".repeat(SPEC);
        sim.create(json!({
            "apiVersion": api, "kind": "PipelineVersion",
            "metadata": {
                "name": format!("{name}-v{number}"), "namespace": "kubeflow",
                "labels": {"pipelines.kubeflow.org/pipeline-id": id},
                "ownerReferences": [{"apiVersion": api, "kind": "Pipeline", "name": name, "uid": id}],
            },
            "spec": {
                "pipelineName": name, "versionName": format!("v{number}"),
                "pipelineSpec": {
                    "pipelineInfo": {"name": "p", "description": description}, "root": {"executorLabel": "e"},
                    "schemaVersion": "2.1.0",
                },
            },
        }))
        .unwrap();
    }
    let store = KubernetesStore::of_namespace(sim.client(), "kubeflow");
    let pipelines = Scope::Pipelines {
        namespace: String::new(),
    };
    let versions = Scope::Versions { pipeline_id: id };
    let part = || filter("IS_SUBSTRING", "name", "9");
    let mut found = Vec::new();
    for (case, scope, ask) in [
        ("pipelines by time", &pipelines, ask(String::new(), "")),
        (
            "pipelines of a part of the name, by display name",
            &pipelines,
            ask(part(), "display_name"),
        ),
        (
            "versions by time downwards",
            &versions,
            ask(String::new(), "created_at desc"),
        ),
        (
            "versions of a part of the name, by name",
            &versions,
            ask(part(), "name"),
        ),
    ] {
        found.push((case, times(&store, scope, &ask).await));
    }
    found
}

async fn times(store: &KubernetesStore, scope: &Scope, ask: &ListAsk) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ASKED {
        let query = Query::new(scope.clone(), ask, usize::MAX).unwrap();
        let begun = Instant::now();
        let items = match scope {
            Scope::Pipelines { .. } => store.pipelines(&query).await.unwrap().items.len(),
            Scope::Versions { .. } => store.versions(&query).await.unwrap().items.len(),
        };
        times.push(begun.elapsed());
        assert_eq!(items, 20);
    }
    times
}
