//! The store and the webhooks on a real API server: `make contract` points these scenes at one. The definitions and the
//! configurations of webhooks are those of `deploy/components/pipelines`.

mod scenes;

use std::{path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_cluster::webhook::{Tls, serve};
use hindsight_kfp::{
    crds,
    kubernetes::KubernetesStore,
    webhooks::{Admission, NameCheck},
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    config::KubeConfigOptions,
    core::{GroupVersionKind, Status},
};
use kubesim::{
    Crd,
    contract::{Arena, Ground, eventually},
};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::fixtures::{GROUP, version_object};

const WEBHOOKS: &str = include_str!("../../../../deploy/components/pipelines/webhooks.yaml");
const KINDS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// A namespace of a real API server, with webhooks if that reaches them.
struct World {
    arena: Arena,
    store: KubernetesStore,
    has_webhooks: bool,
}

impl World {
    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v2beta1", kind));
        Api::namespaced_with(self.arena.client.clone(), &self.arena.namespace, &kind)
    }

    /// Creates an object of either kind, in the namespace of the scene.
    async fn create(&self, mut object: Value) -> Result<Value, Box<Status>> {
        object["metadata"]["namespace"] = json!(self.arena.namespace);
        let api = self.objects(object["kind"].as_str().unwrap());
        let object = serde_json::from_value(object).unwrap();
        answered(api.create(&PostParams::default(), &object).await)
    }

    /// Applies an object as `kubectl apply --server-side` does.
    async fn apply(&self, mut object: Value) -> Result<Value, Box<Status>> {
        object["metadata"]["namespace"] = json!(self.arena.namespace);
        let api = self.objects(object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let params = PatchParams::apply("kubectl");
        answered(api.patch(&name, &params, &Patch::Apply(&object)).await)
    }

    async fn merge(&self, kind: &str, name: &str, patch: Value) -> Result<Value, Box<Status>> {
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        answered(self.objects(kind).patch(name, &params, &patch).await)
    }

    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.objects(kind)
            .get_opt(name)
            .await
            .unwrap()
            .map(|object| json!(object))
    }
}

fn answered(outcome: Result<DynamicObject, kube::Error>) -> Result<Value, Box<Status>> {
    match outcome {
        Ok(object) => Ok(json!(object)),
        Err(kube::Error::Api(status)) => Err(status),
        Err(error) => unreachable!("an API server answers: {error}"),
    }
}

/// Plays every scene, each in a namespace of its own. Returns how many there are, and which failed.
macro_rules! play {
    ($ground:expr, $is_near:expr, [$($scene:ident),+ $(,)?]) => {{
        let mut played = 0;
        let mut failed = Vec::new();
        $(
            eprintln!("scene {}", stringify!($scene));
            let arena = $ground.arena().await.unwrap();
            let stop = CancellationToken::new();
            if $is_near {
                register(&arena, stop.clone()).await;
            }
            let world = World {
                store: KubernetesStore::of_namespace(arena.client.clone(), &arena.namespace),
                arena: arena.clone(),
                has_webhooks: $is_near,
            };
            played += 1;
            if tokio::spawn(scenes::$scene(world)).await.is_err() {
                failed.push(stringify!($scene));
            }
            withdraw(&arena).await;
            $ground.clear(&arena).await.unwrap();
            stop.cancel();
        )+
        (played, failed)
    }};
}

#[tokio::test]
async fn the_store_and_the_webhooks_do_the_same_on_a_real_server() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer points the suite at a server with it"
    )]
    let path = std::env::var("KUBESIM_CONTRACT_KUBECONFIG");
    let Ok(path) = path else {
        eprintln!("skipped: KUBESIM_CONTRACT_KUBECONFIG is not set");
        return;
    };
    hindsight_cluster::choose_cryptography();
    let (client, is_near) = connect(Path::new(&path)).await;
    let [pipelines, versions] = crds::definitions();
    let kinds = [
        Crd::namespaced(GROUP, "v2beta1", "Pipeline", "pipelines").defined_by(pipelines),
        Crd::namespaced(GROUP, "v2beta1", "PipelineVersion", "pipelineversions")
            .defined_by(versions),
    ];
    let ground = Ground::real(client, &kinds).await.unwrap();
    let (played, failed): (usize, Vec<&str>) = play!(
        ground,
        is_near,
        [
            kfp_21_what_requests_make_is_seen_by_kubectl_and_the_other_way_round,
            kfp_29_manifests_of_the_sdk_are_applied_and_a_second_time_changes_nothing,
            kfp_05_kfp_07_the_definitions_give_a_condition_and_want_a_spec,
            kfp_10_to_16_webhooks_answer_in_the_words_that_kubectl_shows,
            kfp_14_of_a_spec_only_display_name_and_tags_change,
            a_version_whose_pipeline_is_gone_gives_up_its_finalizer,
            kfp_23_pages_go_on_when_items_vanish,
            kfp_42_kfp_43_a_request_does_all_or_nothing,
        ]
    );
    ground.leave().await.unwrap();
    eprintln!("contract: {played} scenes of pipelines ran");
    assert!(failed.is_empty(), "{failed:?}");
}

/// A client of the API server, and whether that is on this machine, so that it reaches a webhook here.
async fn connect(kubeconfig: &Path) -> (Client, bool) {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    // Refusals are seen as they are.
    config.default_retry = false;
    let host = config.cluster_url.host().unwrap_or_default();
    let is_near = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    (Client::try_from(config).unwrap(), is_near)
}

fn configurations(arena: &Arena, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(arena.client.clone(), &ApiResource::from_gvk(&kind))
}

/// Takes the webhooks of a namespace away, if it has any.
async fn withdraw(arena: &Arena) {
    for kind in KINDS {
        let api = configurations(arena, kind);
        if api.get_opt(&arena.namespace).await.unwrap().is_some() {
            api.delete(&arena.namespace, &DeleteParams::default())
                .await
                .unwrap();
        }
    }
}

/// Serves both webhooks, registers them for one namespace and waits until the API server asks them.
async fn register(arena: &Arena, stop: CancellationToken) {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let pair = KeyPair::generate().unwrap();
    let made = params.self_signed(&pair).unwrap();
    std::fs::write(&cert, made.pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let admission = Admission::new(arena.client.clone(), NameCheck::Enforce);
    let tls = Arc::new(Tls::load(&cert, &key).unwrap());
    tokio::spawn(serve(listener, tls, admission.webhooks(), stop));

    let documents: Vec<Value> = serde_saphyr::from_multiple(WEBHOOKS).unwrap();
    for kind in KINDS {
        let mut object = documents
            .iter()
            .find(|object| object["kind"] == kind)
            .unwrap()
            .clone();
        let namespace = &arena.namespace;
        object["metadata"] = json!({"name": namespace});
        let webhook = &mut object["webhooks"][0];
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
        webhook["clientConfig"] = json!({
            "url": format!("https://127.0.0.1:{port}{path}"), "caBundle": STANDARD.encode(made.pem()),
        });
        webhook["namespaceSelector"] =
            json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
        let object = serde_json::from_value(object).unwrap();
        let api = configurations(arena, kind);
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    asked(arena).await;
}

/// Waits until both webhooks are asked: a version without a pipeline is refused by each, so the mutating one is known by
/// the first pipeline that gets a version with labels.
async fn asked(arena: &Arena) {
    let kind = |kind| ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v2beta1", kind));
    let of = |resource| -> Api<DynamicObject> {
        Api::namespaced_with(arena.client.clone(), &arena.namespace, &resource)
    };
    let (pipelines, versions) = (of(kind("Pipeline")), of(kind("PipelineVersion")));
    let probe = json!({"apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline", "metadata": {"name": "probe"}});
    let params = PostParams::default();
    pipelines
        .create(&params, &serde_json::from_value(probe).unwrap())
        .await
        .unwrap();
    let dry = &PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object = |spec: Value| -> DynamicObject {
        let mut object = version_object("probe", "probe");
        object["metadata"] = json!({"name": "probe"});
        object["spec"]["pipelineSpec"] = spec;
        serde_json::from_value(object).unwrap()
    };
    let good = &object(version_object("probe", "probe")["spec"]["pipelineSpec"].clone());
    let bad = &object(json!({}));
    let versions = &versions;
    eventually("the webhooks are asked", || async move {
        let is_labelled = versions.create(dry, good).await?.metadata.labels.is_some();
        Ok(is_labelled && versions.create(dry, bad).await.is_err())
    })
    .await
    .unwrap();
    pipelines
        .delete("probe", &DeleteParams::default())
        .await
        .unwrap();
}
