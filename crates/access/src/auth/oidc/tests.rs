//! Keys that change, by a clock that the test moves.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use axum::{Router, routing::get};
use tokio::net::TcpListener;

use super::{keys::Keys, *};
use hindsight_runtime::clock::ManualClock;

const KEY: &str = r#"{"kty":"EC","crv":"P-256","kid":"KID","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;

fn keys_of(
    url: &str,
    ca: Option<&std::path::Path>,
    clock: &Arc<ManualClock>,
) -> Result<Keys, SetupError> {
    let provider = Arc::new(Provider::of(url, ca)?);
    Ok(Keys::of(provider, Arc::clone(clock) as _))
}

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
    let keys = keys_of(&url, None, &clock).unwrap();
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

/// An issuer on TLS that answers every connection once and has its keys at `keys`, or beside; its
/// authority, in PEM.
async fn secured(keys: Option<&str>) -> (String, String) {
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
    let keys = keys.map_or_else(|| format!("{url}/keys"), str::to_owned);
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
                format!("{{\"issuer\":\"{issuer}\",\"jwks_uri\":\"{keys}\"}}")
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
    let (url, authority) = secured(None).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
    let keys = |ca| keys_of(&url, ca, &clock);
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

#[tokio::test]
async fn keys_are_not_fetched_in_the_clear_for_an_issuer_on_tls() {
    for at in [
        "http://127.0.0.1:9/keys",
        "http://keys.example/keys",
        "http://localhost:9@keys.example/keys",
        "keys",
    ] {
        let (url, authority) = secured(Some(at)).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, authority).unwrap();
        let clock = Arc::new(ManualClock::at("2026-01-02T00:00:00Z".parse().unwrap()));
        let keys = keys_of(&url, Some(&file), &clock).unwrap();
        let said = report(&keys.find(Some("k1")).await.unwrap_err());
        let expected =
            format!("has its keys at `{at}`; want an address that begins with `https://`");
        assert!(said.contains(&expected), "{said}");
    }
    for issuer in [
        "http://id.example",
        "http://localhost:80@id.example",
        "id.example",
    ] {
        assert!(Provider::of(issuer, None).is_err(), "{issuer}");
    }
}

#[test]
fn only_keys_for_signatures_are_picked() {
    let set = |keys: &str| serde_json::from_str(&format!("{{\"keys\":[{keys}]}}")).unwrap();
    let key = |kid: &str, more: &str| {
        KEY.replace("KID", kid)
            .replacen('{', &format!("{{{more}"), 1)
    };
    let found = |keys: &str, kid| keys::pick(&set(keys), kid).is_some();
    let (plain, signing) = (key("a", ""), key("a", r#""use":"sig","#));
    let (sealing, other) = (key("a", r#""use":"enc","#), key("a", r#""use":"x","#));
    let verifying = key("a", r#""key_ops":["verify"],"#);
    let wrapping = key("a", r#""key_ops":["wrapKey"],"#);
    for good in [&plain, &signing, &verifying] {
        assert!(found(good, Some("a")) && found(good, None), "{good}");
        let both = format!("{sealing},{good}");
        assert!(found(&both, Some("a")) && found(&both, None), "{both}");
    }
    for bad in [&sealing, &other, &wrapping] {
        assert!(!found(bad, Some("a")) && !found(bad, None), "{bad}");
    }
    let two = format!("{plain},{}", key("b", ""));
    assert!(found(&two, Some("b")) && !found(&two, None) && !found(&two, Some("c")));
}

#[track_caller]
fn judged(claims: Value, name_claim: &str) -> Result<String, Rejected> {
    let options = Options {
        issuer: String::new(),
        issuer_ca: None,
        audience: String::new(),
        name_claim: name_claim.to_owned(),
        groups_claim: "groups".to_owned(),
        roles: PathBuf::new(),
        keep_allowed: Duration::ZERO,
        keep_denied: Duration::ZERO,
    };
    let claims = serde_json::from_value(claims).unwrap();
    let now = Timestamp::from_second(1000).unwrap();
    known(claims, &options, now).map(|known| known.caller.name.clone())
}

#[test]
fn an_address_is_a_name_only_if_the_issuer_says_that_it_is_verified() {
    use serde_json::json;
    let with = |verified: Option<Value>| {
        let mut claims = json!({"exp": 2000, "sub": "s", "email": "a@x"});
        if let Some(verified) = verified {
            claims["email_verified"] = verified;
        }
        claims
    };
    for yes in [json!(true), json!("true")] {
        assert_eq!(judged(with(Some(yes)), "email"), Ok("a@x".to_owned()));
    }
    for no in [
        json!(false),
        json!("false"),
        json!("True"),
        json!(""),
        json!(1),
        json!(0),
        json!(null),
        json!([true]),
    ] {
        assert_eq!(
            judged(with(Some(no.clone())), "email"),
            Err(Rejected::UnverifiedEmail),
            "{no}"
        );
        assert_eq!(judged(with(Some(no)), "sub"), Ok("s".to_owned()));
    }
    assert_eq!(judged(with(None), "email"), Err(Rejected::UnverifiedEmail));
    assert_eq!(
        judged(json!({"exp": 2000, "email_verified": true}), "email"),
        Err(Rejected::Name)
    );
}

#[test]
fn times_of_a_token_may_have_fractions() {
    use serde_json::json;
    let at = |exp: Value, nbf: Value| judged(json!({"sub": "s", "exp": exp, "nbf": nbf}), "sub");
    assert!(at(json!(1000.5), json!(999.25)).is_ok());
    assert!(at(json!(2e3), json!(null)).is_ok());
    assert_eq!(at(json!(970.9), json!(null)), Err(Rejected::Expired));
    assert_eq!(at(json!(2000), json!(1031.5)), Err(Rejected::NotYetValid));
    for never in [json!(1e300), json!(i64::MAX), json!(-1e300)] {
        let judged = at(never.clone(), json!(null));
        assert!(
            matches!(judged, Err(Rejected::Claims | Rejected::Expired)),
            "{never}"
        );
    }
}
