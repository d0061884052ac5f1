//! The webhook over HTTPS.

use std::{path::Path, sync::Arc, time::Duration};

use axum::http::{Request, StatusCode};
use hindsight_controller::{app::App, config::Webhook};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::support::{World, step, within};

/// Puts a certificate of a host and its key into a folder; returns what trusts it, and the certificate in PEM.
pub(crate) fn put(folder: &Path, host: &str) -> (ClientConfig, String) {
    let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("cert.pem"), made.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.der().clone()).unwrap();
    let trusting = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (trusting, made.pem())
}

/// A client of the webhook, which trusts `localhost`.
fn client(trusting: ClientConfig) -> impl AsyncFn(u16, String) -> (StatusCode, String) {
    let https = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(trusting)
        .https_only()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(https);
    async move |port, body: String| {
        let request = Request::post(format!("https://localhost:{port}/validate?timeout=10s"))
            .body(Full::<axum::body::Bytes>::from(body))
            .unwrap();
        let answer = within(client.request(request)).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

/// A controller with a webhook, whose certificate is in `folder`.
async fn serving(folder: &Path) -> App {
    let mut world = World::without_controller();
    world.config.webhook = Some(Webhook {
        listen: "127.0.0.1:0".parse().unwrap(),
        cert: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    });
    let client = world.sim.client();
    App::bind(world.config.clone(), client).await.unwrap()
}

/// A review of a new workflow with these steps.
fn create(steps: &Value) -> String {
    let object = json!({"metadata": {"name": "w", "namespace": "ci"}, "spec": {"steps": steps}});
    json!({"request": {"uid": "u", "operation": "CREATE", "object": object}}).to_string()
}

#[tokio::test]
async fn reviews_that_are_sent_slowly_hold_up_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let (trusting, _) = put(folder.path(), "localhost");
    let app = serving(folder.path()).await;
    let port = app.webhook_addr().unwrap().port();
    let stop = CancellationToken::new();
    let running = tokio::spawn(app.run(stop.clone()));
    let connector = TlsConnector::from(Arc::new(trusting.clone()));
    let mut slow = Vec::new();
    for _ in 0..8 {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let half = "POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{";
        stream.write_all(half.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    // Theirs are given up after 10 seconds.
    let ask = client(trusting);
    let answer = ask(port, create(&json!({"a": step(&[])})));
    let (status, _) = timeout(Duration::from_secs(8), answer).await.unwrap();
    assert_eq!(status, StatusCode::OK);
    drop(slow);
    stop.cancel();
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn wf_03_the_webhook_refuses_a_cycle_in_the_words_that_kubectl_shows() {
    let folder = tempfile::tempdir().unwrap();
    let (trusting, _) = put(folder.path(), "localhost");
    let app = serving(folder.path()).await;
    let port = app.webhook_addr().unwrap().port();
    let stop = CancellationToken::new();
    let running = tokio::spawn(app.run(stop.clone()));

    let ask = client(trusting);
    let (status, answer) = ask(port, create(&json!({"a": step(&["b"]), "b": step(&["a"])}))).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, StatusCode::OK);
    let refused = json!({
        "code": 400, "reason": "BadRequest", "message": "spec.steps: the dependencies are a cycle: a -> b -> a",
    });
    assert_eq!(answer["response"]["status"], refused);
    let (_, answer) = ask(port, create(&json!({"a": step(&[])}))).await;
    assert!(answer.contains("\"allowed\":true"), "{answer}");

    assert_eq!(
        ask(port, "nothing".to_owned()).await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        ask(port, " ".repeat((8 << 20) + 1)).await.0,
        StatusCode::BAD_REQUEST
    );
    stop.cancel();
    within(running).await.unwrap().unwrap();
}
