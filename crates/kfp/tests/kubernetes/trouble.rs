//! What the Kubernetes API refuses.

use hindsight_kfp::{kubernetes::KubernetesStore, store::PipelineStore};
use hindsight_runtime::error::{ErrorKind, HasKind};
use kubesim::{Fault, Sim};

use crate::fixtures::{all_pipelines, ask, pipeline, refuses, sim};

#[tokio::test]
async fn without_the_definitions_the_store_says_what_is_missing() {
    let store = KubernetesStore::of_namespace(Sim::new().client(), "default");
    let why = "the Kubernetes API does not serve pipelines.kubeflow.org/v2beta1; install the custom resources of pipelines";
    refuses(
        store
            .pipelines(&all_pipelines("", &ask(0, "", "", "")))
            .await,
        ErrorKind::Unavailable,
        why,
    );
    refuses(
        store.create_pipeline(pipeline("hello")).await,
        ErrorKind::Unavailable,
        why,
    );
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_missing() {
    let (sim, _) = sim();
    let store = KubernetesStore::of_namespace(sim.client(), "nowhere");
    let error = store.create_pipeline(pipeline("hello")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
}

#[tokio::test]
async fn a_busy_api_server_is_unavailable_and_a_webhook_that_refuses_is_a_wrong_request() {
    let (sim, store) = sim();
    sim.faults().plan(Fault::status(429).resource("pipelines"));
    let error = store.create_pipeline(pipeline("hello")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    sim.faults()
        .plan(Fault::denied_by_webhook("w", "no").resource("pipelines"));
    let error = store.create_pipeline(pipeline("hello")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}
