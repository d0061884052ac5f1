//! The validating webhook, called by the API server over HTTPS.

use base64::{Engine, engine::general_purpose::STANDARD};
use hindsight_controller::config::Webhook;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use kubesim::contract::{Arena, Difference, eventually};
use serde_json::{Value, json};

use super::stage::{Stage, WEBHOOK, step, workflows};

const MANIFEST: &str = include_str!("../../../../deploy/components/workflow-webhook/webhook.yaml");

fn configurations(arena: &Arena) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    Api::all_with(arena.client.clone(), &ApiResource::from_gvk(&kind))
}

/// Takes the webhook of a namespace away, if it has one.
pub(super) async fn withdraw(arena: &Arena) -> Result<(), Difference> {
    let api = configurations(arena);
    if api.get_opt(&arena.namespace).await?.is_some() {
        api.delete(&arena.namespace, &DeleteParams::default())
            .await?;
    }
    Ok(())
}

/// The configuration of the manifest, for one namespace and with another address.
fn configuration(arena: &Arena, port: u16, authority: &str) -> Value {
    let document = MANIFEST.split("\n---\n").next().unwrap();
    let mut object: Value = serde_saphyr::from_str(document).unwrap();
    let namespace = &arena.namespace;
    object["metadata"] = json!({"name": namespace});
    let webhook = &mut object["webhooks"][0];
    assert_eq!(webhook["name"], WEBHOOK);
    let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
    webhook["clientConfig"] = json!({
        "url": format!("https://127.0.0.1:{port}{path}"), "caBundle": STANDARD.encode(authority),
    });
    webhook["namespaceSelector"] =
        json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    // One that is not reached is seen.
    webhook["failurePolicy"] = json!("Fail");
    object
}

/// Registers the webhook of `stage` and waits until the API server asks it.
async fn register(stage: &Stage, port: u16, authority: &str) {
    let object = serde_json::from_value(configuration(&stage.here, port, authority)).unwrap();
    let api = configurations(&stage.here);
    api.create(&PostParams::default(), &object).await.unwrap();
    let cycle = json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "metadata": {"name": "cycle"},
        "spec": {"steps": {"a": step(&["b"]), "b": step(&["a"])}},
    });
    let cycle: DynamicObject = serde_json::from_value(cycle).unwrap();
    let (api, cycle) = (&workflows(&stage.here), &cycle);
    let dry = &PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the webhook is asked", || async move {
        match api.create(dry, cycle).await {
            Ok(_) => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 400 => Ok(true),
            Err(error) => Err(error.into()),
        }
    })
    .await
    .unwrap();
}

pub(super) async fn wf_03_a_cycle_is_refused_in_the_words_of_the_webhook(mut stage: Stage) {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    if !stage.is_simulated() {
        if !stage.is_near {
            eprintln!("skipped: the API server does not reach a webhook on this machine");
            return;
        }
        let authority = crate::webhook::put(folder.path(), "127.0.0.1").1;
        stage.config.webhook = Some(Webhook {
            listen: "127.0.0.1:0".parse().unwrap(),
            cert,
            key,
        });
        let port = stage.start().await.unwrap().port();
        register(&stage, port, &authority).await;
    } else {
        stage.start().await;
    }

    let steps = json!({"a": step(&["c"]), "b": step(&["a"]), "c": step(&["b"])});
    let status = stage
        .try_create("cycle", json!({"steps": steps}))
        .await
        .unwrap_err();
    assert_eq!(
        status.message,
        format!(
            "admission webhook \"{WEBHOOK}\" denied the request: spec.steps: the dependencies are a cycle: \
             a -> c -> b -> a"
        )
    );
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));

    // A real API server asks the definition first, which compares templates as well.
    stage
        .create("build", json!({"steps": {"one": step(&[])}}))
        .await;
    stage.started("build", "one").await;
    let edit = json!({"steps": {"one": {"jobTemplate": {"spec": {"backoffLimit": 7}}}}});
    let status = stage
        .change("build", json!({"spec": edit}))
        .await
        .unwrap_err();
    let refusals = [
        "cannot modify running step \"one\"",
        "cannot modify a running or completed step",
    ];
    assert!(
        refusals.iter().any(|said| status.message.ends_with(said)),
        "{status:?}"
    );
    stage.finish("build", "one").await;
    stage.ended("build").await;
    // Nothing is written any more that the API server would ask about.
    let free = |object: &Value| object["metadata"]["finalizers"].is_null();
    stage.until("it is released", "build", free).await;
}
