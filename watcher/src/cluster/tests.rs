//! How answers of the cluster are judged, and what is written to it.

use std::collections::BTreeMap;

use hindsight_cluster::classify;
use hindsight_run::Kind;
use kubesim::{Crd, Fault, Sim};
use serde_json::json;

use super::{Address, Cluster, ClusterError};

fn run() -> (Sim, Cluster, Address, String) {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.namespace("ci");
    let run = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "build", "namespace": "ci", "annotations": {"a": "1"}}});
    let run = sim.create(run).unwrap();
    let uid = run["metadata"]["uid"].as_str().unwrap().to_owned();
    let at = Address {
        kind: Kind::named("tekton.dev", "TaskRun").unwrap(),
        namespace: "ci".to_owned(),
        name: "build".to_owned(),
    };
    let cluster = Cluster::new(sim.client(), None);
    (sim, cluster, at, uid)
}

#[tokio::test]
async fn annotations_are_added_to_the_run_that_is_meant_and_to_no_other() {
    let (sim, cluster, mut at, uid) = run();
    let stored = BTreeMap::from([("stored".to_owned(), "true".to_owned())]);
    let before = sim.version();
    let other = cluster.annotate(&at, "another", &stored).await;
    assert!(matches!(other, Err(ClusterError::Moved)), "{other:?}");
    at.name = "none".to_owned();
    let none = cluster.annotate(&at, &uid, &stored).await;
    assert!(matches!(none, Err(ClusterError::Moved)), "{none:?}");
    assert_eq!(sim.version(), before);
    at.name = "build".to_owned();
    let run = cluster.annotate(&at, &uid, &stored).await.unwrap();
    assert_eq!(
        run["metadata"]["annotations"],
        json!({"a": "1", "stored": "true"})
    );
}

#[tokio::test]
async fn what_a_busy_cluster_says_about_when_to_come_again_is_kept_but_not_for_ever() {
    let (sim, cluster, at, _) = run();
    for (said, kept) in [(7, 7), (100_000, 60)] {
        sim.faults().plan(Fault::status(429).retry_after(said));
        let error = cluster.get(&at).await.unwrap_err();
        let kept = std::time::Duration::from_secs(kept);
        assert_eq!(error.retry_after(), Some(kept), "{error}");
    }
    sim.faults().plan(Fault::status(500));
    assert_eq!(cluster.get(&at).await.unwrap_err().retry_after(), None);
}

#[test]
fn an_object_that_took_the_name_is_told_from_one_that_cannot_be_written_so() {
    for (field, is_another) in [("metadata.uid", true), ("metadata.finalizers", false)] {
        let status = json!({
            "status": "Failure", "reason": "Invalid", "code": 422, "message": "invalid",
            "details": {"causes": [{"reason": "FieldValueInvalid", "field": field}]},
        });
        let status = serde_json::from_value(status).unwrap();
        let judged = classify(&kube::Error::Api(status));
        assert_eq!(
            matches!(judged, ClusterError::Moved),
            is_another,
            "{judged}"
        );
    }
}
