//! The admission webhooks, beside a server and alone.

use std::{path::Path, sync::Arc};

use kubesim::{Crd, Sim};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs},
};

use crate::support::program::Program;

/// Puts a certificate and its key into a folder; returns what trusts it.
fn put(folder: &Path) -> TlsConnector {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("tls.crt"), made.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// What the webhook at an address answers to a review.
async fn ask(connector: &TlsConnector, url: &str, review: &Value) -> Value {
    let (address, path) = url
        .strip_prefix("https://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let body = review.to_string();
    let request = format!(
        "POST /{path}?timeout=10s HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

fn review(pipeline: &str) -> Value {
    let spec = json!({"pipelineInfo": {"name": "v"}, "root": {}, "schemaVersion": "2.1.0"});
    let object = json!({
        "metadata": {"name": "v", "namespace": "ci"}, "spec": {"pipelineName": pipeline, "pipelineSpec": spec},
    });
    json!({"request": {"uid": "u", "operation": "CREATE", "namespace": "ci", "object": object}})
}

/// A cluster with the pipeline `p`.
fn sim() -> Sim {
    let sim = Sim::new();
    sim.install_all(Crd::kubeflow()).namespace("ci");
    let pipeline = json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline",
        "metadata": {"name": "p", "namespace": "ci"},
    });
    sim.create(pipeline).unwrap();
    sim
}

/// Both webhooks answer at the addresses that a program tells.
async fn answers(program: &mut Program, connector: &TlsConnector) {
    let mut url = async |path: &str| {
        let line = program.until(path).await;
        line.split(' ')
            .find(|word| word.starts_with("https://"))
            .unwrap()
            .to_owned()
    };
    let mutate = url("/webhooks/mutate-pipelineversion").await;
    let validate = url("/webhooks/validate-pipelineversion").await;
    let answer = ask(connector, &mutate, &review("p")).await;
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let answer = ask(connector, &validate, &review("p")).await;
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
    let answer = ask(connector, &validate, &review("q")).await;
    assert_eq!(
        answer["response"]["status"]["message"],
        "The spec.pipelineName doesn't map to an existing Pipeline object"
    );
}

#[tokio::test]
async fn kfp_18_in_the_global_mode_webhooks_answer_and_nothing_else_does() {
    let listening = sim().listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let connector = put(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let db = format!("sqlite:{}", at("h.db"));
    let port = crate::support::cluster::free_port();
    let listen = format!("127.0.0.1:{port}");
    let kubeconfig = listening.kubeconfig().display().to_string();
    let mut program = Program::silent(&[
        "serve",
        "--globalKubernetesWebhookMode",
        "--db",
        &db,
        "--listen",
        &listen,
        "--metrics-listen",
        "off",
        "--pipelines-kubeconfig",
        &kubeconfig,
        "--pipelines-webhook-listen",
        "127.0.0.1:0",
        "--webhookTLSCertPath",
        &at("tls.crt"),
        "--webhookTLSKeyPath",
        &at("tls.key"),
    ])
    .await;
    answers(&mut program, &connector).await;
    assert!(TcpStream::connect(&listen).await.is_err());
    assert!(!folder.path().join("h.db").exists());
    let (code, _) = program.terminate().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn kfp_10_webhooks_answer_beside_a_server() {
    let listening = sim().listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let connector = put(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let db = format!("sqlite:{}", at("h.db"));
    let kubeconfig = listening.kubeconfig().display().to_string();
    let mut program = Program::silent(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--pipelinesStoreKubernetes=true",
        "--db",
        &db,
        "--metrics-listen",
        "off",
        "--pipelines-kubeconfig",
        &kubeconfig,
        "--webhookPortFlag=127.0.0.1:0",
        "--pipelines-webhook-cert",
        &at("tls.crt"),
        "--pipelines-webhook-key",
        &at("tls.key"),
    ])
    .await;
    answers(&mut program, &connector).await;
    let (code, _) = program.terminate().await;
    assert_eq!(code, Some(0));
}
