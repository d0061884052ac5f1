//! An issuer of tokens on loopback: discovery, keys that change, and tokens that are not for us.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use axum::{Router, routing::get};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use super::bearer;
use crate::support::{
    Database, TestServer,
    http::{Http, target},
};

/// The keys of an issuer.
#[derive(Clone)]
pub struct Signer {
    pub url: String,
    keys: Arc<Mutex<Vec<(String, KeyPair)>>>,
}

/// An issuer that listens.
pub struct Issuer {
    pub url: String,
    signer: Signer,
    asked: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn jwk(kid: &str, key: &KeyPair) -> Value {
    // An uncompressed point: 4, x, y.
    let point = key.der_bytes();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    // What a key is for stands in its name.
    let (usage, algorithm) = match kid {
        "enc" => ("enc", "ES256"),
        "es384" => ("sig", "ES384"),
        _ => ("sig", "ES256"),
    };
    json!({
        "kty": "EC", "crv": "P-256", "use": usage, "alg": algorithm, "kid": kid,
        "x": part(&point[1..33]), "y": part(&point[33..65]),
    })
}

impl Issuer {
    pub async fn start() -> Self {
        Self::start_beside(|_signer| (Router::new(), json!({}))).await
    }

    /// An issuer that answers more, and says so.
    pub async fn start_beside(more: impl FnOnce(Signer) -> (Router, Value)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = ["k1", "enc", "es384"].map(|kid| (kid.to_owned(), KeyPair::generate().unwrap()));
        let keys = Arc::new(Mutex::new(Vec::from(keys)));
        let asked = Arc::new(AtomicU32::new(0));
        let signer = Signer {
            url: url.clone(),
            keys: Arc::clone(&keys),
        };
        let (router, says) = more(signer.clone());
        let mut told = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let says = says.as_object().unwrap().clone();
        told.as_object_mut().unwrap().extend(says);
        let told = told.to_string();
        let (shown, counted) = (Arc::clone(&keys), Arc::clone(&asked));
        let router = router
            .route("/.well-known/openid-configuration", get(async move || told))
            .route(
                "/keys",
                get(async move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let keys = shown.lock().unwrap();
                    let keys: Vec<_> = keys.iter().map(|(kid, key)| jwk(kid, key)).collect();
                    json!({ "keys": keys }).to_string()
                }),
            );
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            signer,
            asked,
            task,
        }
    }

    fn sign(&self, kid: &str, claims: &Value) -> String {
        self.signer.sign(kid, claims)
    }

    fn claims(&self, user: &str, groups: &[&str]) -> Value {
        self.signer.claims(user, groups)
    }

    pub fn token(&self, user: &str, groups: &[&str]) -> String {
        self.sign("k1", &self.claims(user, groups))
    }
}

impl Signer {
    pub fn sign(&self, kid: &str, claims: &Value) -> String {
        let keys = self.keys.lock().unwrap();
        let (_, key) = keys.iter().find(|(known, _)| known == kid).unwrap();
        signed(kid, key, claims)
    }

    pub fn claims(&self, user: &str, groups: &[&str]) -> Value {
        let soon = jiff::Timestamp::MAX.as_second() / 2;
        json!({"iss": self.url, "aud": "hindsight", "sub": user, "groups": groups, "exp": soon})
    }
}

fn signed(kid: &str, key: &KeyPair, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some(kid.to_owned());
    encode(
        &header,
        claims,
        &EncodingKey::from_ec_der(&key.serialize_der()),
    )
    .unwrap()
}

/// Starts a server that takes tokens of `issuer` and has these roles.
pub async fn start(database: &Database, issuer: &Issuer, roles: &str) -> (TestServer, PathBuf) {
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join("roles.toml");
    std::fs::write(&path, roles).unwrap();
    let shown = path.display().to_string();
    let more = [
        ("auth", "oidc"),
        ("oidc_issuer", issuer.url.as_str()),
        ("oidc_audience", "hindsight"),
        ("oidc_roles_file", shown.as_str()),
    ];
    (TestServer::start_with(database, &more).await, path)
}

async fn status(server: &TestServer, token: &str) -> u16 {
    let mut http = Http::one(&server.url).await;
    let token = bearer(token);
    let headers = [("authorization", token.as_str())];
    http.send("GET", &target("ci/results", &[]), &headers, "")
        .await
        .status
}

const READERS: &str =
    "[[roles]]\ngroups = ['dev']\ngrants = [{parents = ['ci'], role = 'readonly'}]\n";

#[tokio::test]
async fn a_token_counts_that_is_signed_for_us_and_not_over() {
    let (database, issuer) = (Database::sqlite(), Issuer::start().await);
    let (server, path) = start(&database, &issuer, READERS).await;
    let with = |change: Value| {
        let mut claims = issuer.claims("ann", &["dev"]);
        claims
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        issuer.sign("k1", &claims)
    };
    let now =
        hindsight_runtime::clock::Clock::now(&hindsight_runtime::clock::SystemClock).as_second();
    let stranger = KeyPair::generate().unwrap();
    let claims = issuer.claims("ann", &["dev"]);
    let mut parts: Vec<_> = issuer
        .token("ann", &["dev"])
        .split('.')
        .map(str::to_owned)
        .collect();
    parts[1] = URL_SAFE_NO_PAD.encode(issuer.claims("root", &["dev"]).to_string());
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let own_secret = encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(b"k1"),
    );
    let cases = [
        (issuer.token("ann", &["dev"]), 200),
        (with(json!({"aud": ["other", "hindsight"]})), 200),
        (with(json!({"groups": "dev"})), 200),
        (with(json!({"exp": now - 20})), 200),
        (with(json!({"groups": ["ops"]})), 403),
        (with(json!({"groups": 7})), 403),
        (with(json!({"aud": "other"})), 401),
        (with(json!({"iss": "https://other.example"})), 401),
        (with(json!({"exp": now - 60})), 401),
        (with(json!({"nbf": now + 60})), 401),
        (with(json!({"sub": ""})), 401),
        (signed("k1", &stranger, &claims), 401),
        (parts.join("."), 401),
        (format!("{unsigned}.{}.", parts[1]), 401),
        (own_secret.unwrap(), 401),
        ("junk".to_owned(), 401),
        (issuer.sign("enc", &claims), 401),
        (issuer.sign("es384", &claims), 401),
        (with(json!({"exp": now as f64 + 0.5})), 200),
    ];
    for (at, (token, expected)) in cases.iter().enumerate() {
        assert_eq!(status(&server, token).await, *expected, "case {at}");
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1, "keys are kept");
    let page = crate::wire::visit(&server.admin, "/metrics").await;
    for (reason, count) in [
        ("malformed", 2),
        ("algorithm", 2),
        ("key", 1),
        ("signature", 2),
        ("issuer", 1),
        ("audience", 1),
        ("expired", 1),
        ("not_yet_valid", 1),
        ("name", 1),
    ] {
        let line = format!("hindsight_auth_rejected_tokens_total{{reason=\"{reason}\"}} {count}\n");
        assert!(page.contains(&line), "{reason} is not {count}: {page}");
    }
    // The roles of others count once they are in the file.
    let ops = issuer.token("bob", &["ops"]);
    assert_eq!(status(&server, &ops).await, 403);
    std::fs::write(&path, READERS.replace("dev", "ops")).unwrap();
    let taken = async {
        while status(&server, &ops).await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), taken)
        .await
        .unwrap();
    server.stop().await;
}

#[tokio::test]
async fn without_the_issuer_nobody_new_is_known_and_its_keys_go_on_counting() {
    let (database, issuer) = (Database::sqlite(), Issuer::start().await);
    let token = issuer.token("ann", &["dev"]);
    let other = issuer.token("bob", &["dev"]);
    let (server, _) = start(&database, &issuer, READERS).await;
    let away = Issuer::start().await;
    let (late, _) = start(&database, &away, READERS).await;
    let unseen = away.token("ann", &["dev"]);
    away.task.abort();
    while tokio::net::TcpStream::connect(away.url.strip_prefix("http://").unwrap())
        .await
        .is_ok()
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(status(&late, &unseen).await, 503);
    assert_eq!(status(&server, &token).await, 200);
    issuer.task.abort();
    assert_eq!(status(&server, &other).await, 200);
    server.stop().await;
    late.stop().await;
}

#[tokio::test]
async fn a_server_needs_all_that_it_takes_to_judge_tokens() {
    let database = Database::sqlite();
    let config = hindsight::config::Config::load(&hindsight::config::Sources {
        flags: HashMap::from([("auth".to_owned(), "oidc".to_owned())])
            .into_iter()
            .collect(),
        ..Default::default()
    });
    let said = config.unwrap_err().to_string();
    for key in ["oidc_issuer", "oidc_audience", "oidc_roles_file"] {
        assert!(said.contains(&format!("`oidc` needs {key} too")), "{said}");
    }
    let roles = "[[roles]]\ngrants = []\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("roles.toml");
    std::fs::write(&path, roles).unwrap();
    let path = path.display().to_string();
    for (issuer, says) in [
        ("http://id.example", "begins with `https://`"),
        ("https://id.example", "role 1 is bound to no group or user"),
    ] {
        let more = [
            ("auth", "oidc"),
            ("oidc_issuer", issuer),
            ("oidc_audience", "hindsight"),
            ("oidc_roles_file", path.as_str()),
        ];
        let config = crate::support::server::config(&database, &more);
        let clock = Arc::new(hindsight_runtime::clock::SystemClock);
        let started = hindsight::app::App::bind(&config, clock).await;
        let said = hindsight_runtime::error::report(&started.unwrap_err());
        assert!(said.contains(says), "{said}");
    }
}
