//! Keys that change, by a clock that the test moves.

use std::sync::atomic::{AtomicU32, Ordering};

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
    let keys = Keys::of(&url, Arc::clone(&clock) as _).unwrap();
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
