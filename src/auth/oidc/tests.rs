//! Keys that change, by a clock that the test moves.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use axum::{Router, routing::get};
use tokio::net::TcpListener;

use super::{keys::Keys, *};
use crate::clock::ManualClock;

const KEY: &str = r#"{"kty":"EC","crv":"P-256","kid":"KID","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;

#[tokio::test]
async fn keys_are_asked_for_again_when_they_are_old_or_one_is_unknown_but_not_at_every_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, current) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new("k1")));
    let told = serde_json::json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
    let (counted, shown) = (Arc::clone(&asked), Arc::clone(&current));
    let router = Router::new()
        .route("/.well-known/openid-configuration", get(async move || told))
        .route(
            "/keys",
            get(async move || {
                counted.fetch_add(1, Ordering::SeqCst);
                let kid = *shown.lock().unwrap();
                format!("{{\"keys\":[{}]}}", KEY.replace("KID", kid))
            }),
        );
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let keys = Keys::of(&url, None, Arc::clone(&clock) as _).unwrap();
    let has = async |kid: Option<&str>| keys.find(kid).await.map(|key| key.is_some());
    let count = || asked.load(Ordering::SeqCst);

    assert!(has(Some("k1")).await.unwrap() && has(None).await.unwrap());
    assert_eq!(count(), 1);
    *current.lock().unwrap() = "k2";
    assert!(!has(Some("k2")).await.unwrap(), "it was asked a moment ago");
    assert_eq!(count(), 1);
    clock.advance(Duration::from_secs(10));
    let crowd = futures::future::join_all((0..20).map(|_| has(Some("k2")))).await;
    assert!(crowd.into_iter().all(|found| found.unwrap()));
    assert!(!has(Some("k1")).await.unwrap(), "a key that was taken back");
    assert_eq!(count(), 2);
    clock.advance(Duration::from_mins(10));
    assert!(has(Some("k2")).await.unwrap());
    assert_eq!(count(), 3);

    serving.abort();
    clock.advance(Duration::from_mins(10));
    assert!(
        has(Some("k2")).await.unwrap(),
        "kept while the issuer is away"
    );
    clock.advance(Duration::from_hours(24));
    assert!(matches!(
        has(Some("k2")).await,
        Err(Error::Unavailable { .. })
    ));
}

/// An issuer on TLS that answers every connection once; its authority, in PEM.
async fn secured() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let issuer = url.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut asked = [0; 1024];
            let count = stream.read(&mut asked).await.unwrap();
            let body = if asked[..count].starts_with(b"GET /keys") {
                format!("{{\"keys\":[{}]}}", KEY.replace("KID", "k1"))
            } else {
                format!("{{\"issuer\":\"{issuer}\",\"jwks_uri\":\"{issuer}/keys\"}}")
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}",
                body.len()
            );
            let answer = format!("{head}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (url, made.cert.pem())
}

#[tokio::test]
async fn an_issuer_is_trusted_by_the_authority_in_a_file() {
    let (url, authority) = secured().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let keys = |ca| Keys::of(&url, ca, Arc::clone(&clock) as _);
    std::fs::write(&file, authority).unwrap();
    let found = keys(Some(&file)).unwrap().find(Some("k1")).await;
    assert!(found.unwrap().is_some());
    assert!(keys(None).unwrap().find(Some("k1")).await.is_err());
    std::fs::write(&file, "junk").unwrap();
    let refused = keys(Some(&file)).unwrap_err().to_string();
    assert!(
        refused.contains("it holds no certificate in PEM"),
        "{refused}"
    );
    let refused = keys(Some(std::path::Path::new("/no/such")))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("no issuer can be trusted by `/no/such`"),
        "{refused}"
    );
}

#[test]
fn a_header_that_the_library_would_read_in_its_own_way_is_not_read() {
    let token = |header: &str| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
    let mut inner = "0".to_owned();
    for _ in 0..150 {
        let quoted = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
        inner = format!(
            r#"{}{{"$serde_json::private::RawValue":"{quoted}"}}{}"#,
            "[".repeat(120),
            "]".repeat(120)
        );
    }
    for header in [
        format!(r#"{{"alg":"RS256","x":{inner}}}"#),
        r#"{"alg":"RS256","x":{"$serde_json::private::RawValue":"1"}}"#.to_owned(),
        r#"{"alg":"RS256","x":{"\u0024serde_json::private::RawValue":"1"},"x":1}"#.to_owned(),
        format!(r#"{{"alg":"RS256","kid":"{}"}}"#, "k".repeat(4096)),
    ] {
        assert!(!has_plain_header(&token(&header)), "{header:.80}");
    }
    assert!(!has_plain_header("%.e30.AA"));
    assert!(has_plain_header(&token(
        r#"{"alg":"RS256","kid":"k1","typ":"JWT"}"#
    )));
}
