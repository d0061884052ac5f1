//! A provider of identities on loopback, at which browsers sign in: it checks what the authorization code
//! flow and PKCE ask of it, and deviates where a test says so.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Redirect, Response},
    routing::{get, post},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::auth::oidc::{Issuer, Signer};

pub const CLIENT: &str = "pages";
pub const SECRET: &str = "s3cret+/ of pages";

/// How a provider deviates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twist {
    None,
    /// The ID token is for the client alone; the access token is a JWT for the server.
    AccessToken,
    /// Both tokens are for another client.
    OtherAudience,
    /// The ID token is for the client, and nothing is for the server.
    OnlyClient,
    OtherNonce,
    /// The ID token was issued to another party.
    OtherParty,
    /// A token with many groups.
    Large,
    /// The token ends in 5 minutes, by the clock of the test.
    Short(i64),
    /// An answer of 2 MiB.
    Huge,
    /// No answer to requests for tokens until it is told to, or ever.
    Held,
    Silent,
}

struct Asked {
    challenge: String,
    nonce: String,
    back: String,
}

/// What a provider remembers.
pub struct State {
    pub twist: Mutex<Twist>,
    codes: Mutex<HashMap<String, Asked>>,
    /// Requests for tokens, and how many were under way at once at most.
    pub asked: AtomicU32,
    under_way: AtomicU32,
    pub at_once: AtomicU32,
    released: Semaphore,
    back: String,
}

pub struct Provider {
    pub issuer: Issuer,
    pub state: Arc<State>,
}

/// Parameters of an address or a form.
pub fn parameters(text: &str) -> HashMap<String, String> {
    let plain = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text)
            .decode_utf8()
            .unwrap()
            .into_owned()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

fn refused(error: &str) -> Response {
    let said = json!({"error": error, "error_description": "said the provider\u{7}"});
    (StatusCode::BAD_REQUEST, said.to_string()).into_response()
}

impl State {
    /// The page on which a person signs in, who does so at once.
    fn authorize(&self, signer: &Signer, uri: &Uri) -> Response {
        let given = parameters(uri.query().unwrap_or_default());
        let mut scopes = given["scope"].split(' ');
        assert!(scopes.any(|scope| scope == "openid"));
        assert_eq!(given["response_type"], "code");
        assert_eq!(given["client_id"], CLIENT);
        assert_eq!(given["redirect_uri"], self.back);
        assert_eq!(given["code_challenge_method"], "S256");
        for random in ["state", "nonce", "code_challenge"] {
            assert_eq!(given[random].len(), 43, "{random}");
        }
        let mut codes = self.codes.lock().unwrap();
        let code = format!("code-{}", codes.len());
        let asked = Asked {
            challenge: given["code_challenge"].clone(),
            nonce: given["nonce"].clone(),
            back: given["redirect_uri"].clone(),
        };
        codes.insert(code.clone(), asked);
        let (back, state) = (&self.back, &given["state"]);
        let issuer = signer.url.replace(':', "%3A").replace('/', "%2F");
        Redirect::to(&format!("{back}?code={code}&state={state}&iss={issuer}")).into_response()
    }

    async fn token(&self, signer: &Signer, headers: &HeaderMap, form: &str) -> Response {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let at_once = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.at_once.fetch_max(at_once, Ordering::SeqCst);
        let twist = *self.twist.lock().unwrap();
        match twist {
            Twist::Held => self.released.acquire().await.unwrap().forget(),
            Twist::Silent => std::future::pending().await,
            _ => {}
        }
        let answer = self.tokens(signer, headers, form, twist);
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    fn tokens(&self, signer: &Signer, headers: &HeaderMap, form: &str, twist: Twist) -> Response {
        let pair = "pages:s3cret%2B%2F+of+pages";
        let expected = format!("Basic {}", STANDARD.encode(pair));
        let shown = headers.get(header::AUTHORIZATION);
        if shown.is_none_or(|shown| *shown != expected) {
            return refused("invalid_client");
        }
        let given = parameters(form);
        assert_eq!(given["grant_type"], "authorization_code");
        let Some(asked) = self.codes.lock().unwrap().remove(&given["code"]) else {
            return refused("invalid_grant");
        };
        let verifier = &given["code_verifier"];
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        if challenge != asked.challenge || given["redirect_uri"] != asked.back {
            return refused("invalid_grant");
        }
        let mut id = signer.claims("ann", &["dev"]);
        id["nonce"] = json!(asked.nonce);
        id["aud"] = json!([CLIENT, "hindsight"]);
        id["azp"] = json!(CLIENT);
        let mut access = json!("opaque");
        match twist {
            Twist::None | Twist::Held | Twist::Silent => {}
            Twist::AccessToken => {
                id["aud"] = json!(CLIENT);
                access = json!(signer.sign("k1", &signer.claims("ann", &["dev"])));
            }
            Twist::OtherAudience => {
                id["aud"] = json!("other");
                access = json!(signer.sign("k1", &id));
            }
            Twist::OnlyClient => {
                id["aud"] = json!(CLIENT);
                access = json!(signer.sign("k1", &id));
            }
            Twist::OtherNonce => id["nonce"] = json!("n".repeat(43)),
            Twist::OtherParty => id["azp"] = json!("other"),
            Twist::Large => {
                let groups = (0..300).map(|at| format!("group-{at}"));
                id["groups"] = groups.collect::<Vec<_>>().into();
            }
            Twist::Short(end) => id["exp"] = json!(end),
            Twist::Huge => access = json!("a".repeat(2 << 20)),
        }
        let token = signer.sign("k1", &id);
        let all = json!({"id_token": token, "access_token": access, "token_type": "Bearer"});
        all.to_string().into_response()
    }
}

impl Provider {
    /// A provider that sends browsers back to `back`, and announces this beside its endpoints.
    pub async fn start(back: &str, announced: Value) -> Self {
        let state = Arc::new(State {
            twist: Mutex::new(Twist::None),
            codes: Mutex::default(),
            asked: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            at_once: AtomicU32::new(0),
            released: Semaphore::new(0),
            back: back.to_owned(),
        });
        let kept = Arc::clone(&state);
        let issuer = Issuer::start_beside(|signer| {
            let mut says = json!({
                "authorization_endpoint": format!("{}/authorize?tenant=a", signer.url),
                "token_endpoint": format!("{}/token", signer.url),
                "end_session_endpoint": format!("{}/end", signer.url),
            });
            let announced = announced.as_object().unwrap().clone();
            says.as_object_mut().unwrap().extend(announced);
            let (one, two) = (signer.clone(), signer);
            let (asked, told) = (Arc::clone(&kept), kept);
            let router = Router::new()
                .route(
                    "/authorize",
                    get(async move |uri: Uri| asked.authorize(&one, &uri)),
                )
                .route(
                    "/token",
                    post(async move |headers: HeaderMap, body: Bytes| {
                        let form = String::from_utf8(body.to_vec()).unwrap();
                        told.token(&two, &headers, &form).await
                    }),
                )
                .route(
                    "/end",
                    // A browser that is told nothing stays where it is.
                    get(async move || StatusCode::NO_CONTENT),
                );
            (router, says)
        });
        Self {
            issuer: issuer.await,
            state,
        }
    }

    pub fn twist(&self, twist: Twist) {
        *self.state.twist.lock().unwrap() = twist;
    }

    pub fn asked(&self) -> u32 {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Answers what is held once so many are, and all that come later.
    pub async fn release_at(&self, held: u32) {
        while self.state.under_way.load(Ordering::SeqCst) < held {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.twist(Twist::None);
        self.state.released.add_permits(100);
    }
}
