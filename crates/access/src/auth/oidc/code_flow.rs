//! Sign-in of browsers at the issuer: the authorization code flow of OpenID Connect with a proof key
//! (PKCE, RFC 7636) and the issuer named in the answer (RFC 9207).

mod error;

use std::{fmt, fmt::Write as _, path::Path, path::PathBuf, sync::Arc, time::Duration};

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::{Serializer, byte_serialize};
use http::{HeaderValue, Uri};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::kept::Kept;
use super::provider::{Discovery, read};
use super::{Claims, Oidc, Rejected, SetupError, claims, until};
use crate::auth::Error;
use hindsight_runtime::error::report;

pub use self::error::SignInError;

/// How many codes are redeemed at once, and how long others wait.
const REDEEMED: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of what no one may guess.
const RANDOM: usize = 32;
/// Longest text of the issuer that is repeated.
const MOST_SAID: usize = 200;

/// As which client of the issuer browsers sign in.
#[derive(Debug, Clone)]
pub struct CodeFlowOptions {
    /// Name of the client at the issuer.
    pub client_id: String,
    /// The file with the secret of the client; a public client has none.
    pub secret: Option<PathBuf>,
    /// What tokens are asked for, in words between blanks.
    pub scopes: String,
}

/// A sign-in that was begun. The browser keeps all but the address, and shows it to nobody.
#[derive(Clone)]
pub struct Begun {
    /// Where the browser goes to sign in.
    pub location: String,
    /// What the issuer sends back with its answer.
    pub state: String,
    /// What the ID token must repeat.
    pub nonce: String,
    /// What proves that the code is redeemed by the one who began.
    pub verifier: String,
}

/// What the issuer answers by the browser; empty where it says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The code, which is redeemed once.
    pub code: &'a str,
    /// The issuer that answers.
    pub issuer: &'a str,
    /// Why there is no code.
    pub error: &'a str,
    /// The same in words.
    pub description: &'a str,
}

/// A token that the server takes, and when it ends.
#[derive(Clone)]
pub struct SignedIn {
    /// A bearer token.
    pub token: String,
    /// From when on it is not taken.
    pub until: Timestamp,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedIn")
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// Sign-in of browsers at one issuer.
#[derive(Debug)]
pub struct CodeFlow {
    oidc: Arc<Oidc>,
    options: CodeFlowOptions,
    host: String,
    discovered: Kept<Discovery>,
    turns: Semaphore,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

impl CodeFlow {
    /// Sign-in for callers whom `oidc` knows. The issuer is asked when the first one signs in. Fails
    /// if the secret cannot be read.
    pub fn new(oidc: Arc<Oidc>, options: CodeFlowOptions) -> Result<Self, SetupError> {
        if let Some(path) = &options.secret {
            secret(path).map_err(|source| SetupError::Secret {
                path: path.clone(),
                source,
            })?;
        }
        let issuer = oidc.provider.issuer();
        let uri = issuer.parse::<Uri>().ok();
        let host = uri.and_then(|uri| Some(uri.authority()?.as_str().to_owned()));
        Ok(Self {
            host: host.unwrap_or_else(|| issuer.to_owned()),
            discovered: Kept::new(Arc::clone(&oidc.clock)),
            turns: Semaphore::new(REDEEMED),
            oidc,
            options,
        })
    }

    /// Host of the issuer.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Begins a sign-in that ends at the address `back`. Fails while the issuer cannot be asked.
    pub async fn begin(&self, back: &str) -> Result<Begun, SignInError> {
        let discovered = self.discovered().await?;
        let at = self.endpoint(
            discovered.authorization_endpoint.as_deref(),
            "authorization",
        )?;
        let [state, nonce, verifier] = [self.random()?, self.random()?, self.random()?];
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let query = Serializer::new(String::new())
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.options.client_id)
            .append_pair("redirect_uri", back)
            .append_pair("scope", &self.options.scopes)
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .finish();
        Ok(Begun {
            location: with_query(at, &query),
            state,
            nonce,
            verifier,
        })
    }

    /// Redeems the code of an answer to a sign-in, which was begun with these secrets and this
    /// address. Fails if the issuer refuses, or sends no token that the server takes.
    pub async fn finish(
        &self,
        (nonce, verifier): (&str, &str),
        back: &str,
        answer: Answer<'_>,
    ) -> Result<SignedIn, SignInError> {
        let turn = tokio::time::timeout(PATIENCE, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(SignInError::Busy);
        };
        let discovered = self.discovered().await?;
        let names_itself = discovered.authorization_response_iss_parameter_supported == Some(true);
        let is_other = answer.issuer != self.oidc.provider.issuer();
        if is_other && (names_itself || !answer.issuer.is_empty()) {
            return Err(SignInError::OtherIssuer {
                host: self.host.clone(),
            });
        }
        if !answer.error.is_empty() {
            return Err(self.refused(answer.error, answer.description));
        }
        let tokens = self
            .redeem(&discovered, answer.code, verifier, back)
            .await?;
        let id = self.checked(&tokens.id_token, nonce).await?;
        self.chosen(tokens, &id).await
    }

    /// The address at which a browser ends its session at the issuer and comes back to `back`; none
    /// if the issuer has none or cannot be asked.
    pub async fn sign_out(&self, back: &str) -> Option<String> {
        let discovered = self.discovered().await.ok()?;
        let at = discovered.end_session_endpoint.as_deref()?;
        let at = self.endpoint(Some(at), "end_session").ok()?;
        let query = Serializer::new(String::new())
            .append_pair("client_id", &self.options.client_id)
            .append_pair("post_logout_redirect_uri", back)
            .finish();
        Some(with_query(at, &query))
    }

    async fn discovered(&self) -> Result<Arc<Discovery>, SignInError> {
        let found = self.discovered.get(self.oidc.provider.discover()).await;
        found.map_err(|error| self.unavailable(&report(&error)))
    }

    fn endpoint<'a>(&self, at: Option<&'a str>, which: &str) -> Result<&'a str, SignInError> {
        let at = at.unwrap_or_default();
        match self.oidc.provider.trusts(at) {
            true => Ok(at),
            false => Err(self.unavailable(&format!(
                "the issuer has its {which}_endpoint at `{at}`; want an address that begins with \
                 `https://`"
            ))),
        }
    }

    async fn redeem(
        &self,
        discovered: &Discovery,
        code: &str,
        verifier: &str,
        back: &str,
    ) -> Result<Tokens, SignInError> {
        let at = self.endpoint(discovered.token_endpoint.as_deref(), "token")?;
        let client = self.options.client_id.as_str();
        let secret = self.secret().await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back),
            ("code_verifier", verifier),
        ];
        let mut credentials = None;
        match &secret {
            Some(secret) if takes_basic(discovered) => {
                credentials = Some(basic(client, secret).ok_or_else(|| {
                    self.unavailable("the secret of the client fits in no header")
                })?);
            }
            Some(secret) => form.extend([("client_id", client), ("client_secret", secret)]),
            None => form.push(("client_id", client)),
        }
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        let answer = self.oidc.provider.post(at, form, credentials);
        let (status, body) = answer
            .await
            .map_err(|error| self.unavailable(&report(&error)))?;
        if status.is_success() {
            return read(&body).map_err(|error| self.unavailable(&format!("{at}: {error}")));
        }
        match read::<Refusal>(&body) {
            Ok(refusal) => {
                let description = refusal.error_description.unwrap_or_default();
                Err(self.refused(&refusal.error, &description))
            }
            Err(_) => Err(self.unavailable(&format!("{at}: {status}"))),
        }
    }

    async fn secret(&self) -> Result<Option<String>, SignInError> {
        let Some(path) = self.options.secret.clone() else {
            return Ok(None);
        };
        let shown = path.display().to_string();
        let read = tokio::task::spawn_blocking(move || secret(&path)).await;
        match read {
            Ok(Ok(secret)) => Ok(Some(secret)),
            Ok(Err(error)) => Err(self.unavailable(&format!("{shown}: {error}"))),
            Err(error) => Err(self.unavailable(&error.to_string())),
        }
    }

    /// The claims of an ID token for this client and this sign-in (OpenID Connect Core, 3.1.3.7).
    async fn checked(&self, token: &str, nonce: &str) -> Result<Claims, SignInError> {
        let (oidc, client) = (&self.oidc, self.options.client_id.as_str());
        let judged = claims(&oidc.keys, &oidc.options.issuer, client, token).await;
        let judged = judged.map_err(|error| self.unavailable(&report(&error)))?;
        let judged = judged.and_then(|claims| {
            until(&claims, oidc.clock.now())?;
            let text = |name| claims.others.get(name).and_then(|claim| claim.0.as_str());
            if text("nonce") != Some(nonce) {
                return Err(Rejected::Nonce);
            }
            // Who it was issued to, where that is not the audience alone.
            if text("azp").is_some_and(|party| party != client) {
                return Err(Rejected::Audience);
            }
            Ok(claims)
        });
        judged.map_err(|reason| SignInError::IdToken {
            host: self.host.clone(),
            reason: reason.name(),
        })
    }

    /// The token that calls are made with: the ID token if it is for the server too, else the access
    /// token. It is judged as any bearer token is.
    async fn chosen(&self, tokens: Tokens, id: &Claims) -> Result<SignedIn, SignInError> {
        let wanted = &self.oidc.options.audience;
        let is_for_server = match id.others.get("aud").map(|claim| &claim.0) {
            Some(Value::String(audience)) => audience == wanted,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(wanted)),
            _ => false,
        };
        let token = match is_for_server {
            true => tokens.id_token,
            false => tokens.access_token.unwrap_or_default(),
        };
        match self.oidc.known(&token).await {
            Ok(known) => Ok(SignedIn {
                token,
                until: known.until,
            }),
            Err(Error::Unavailable { source }) => Err(self.unavailable(&source.to_string())),
            Err(_) => Err(SignInError::NoToken {
                host: self.host.clone(),
                audience: wanted.clone(),
            }),
        }
    }

    fn refused(&self, error: &str, description: &str) -> SignInError {
        let mut said = plain(error);
        if !description.is_empty() {
            // A `String` takes all that is written to it.
            let _written = write!(said, " ({})", plain(description));
        }
        tracing::warn!(issuer = %self.host, said, "the issuer refused a sign-in");
        SignInError::Refused {
            host: self.host.clone(),
            said,
        }
    }

    fn unavailable(&self, error: &str) -> SignInError {
        tracing::warn!(issuer = %self.host, error, "the issuer cannot be asked for a sign-in");
        SignInError::Unavailable {
            host: self.host.clone(),
        }
    }

    fn random(&self) -> Result<String, SignInError> {
        let mut bytes = [0; RANDOM];
        let filled = rand::fill(&mut bytes);
        filled.map_err(|_unspecified| self.unavailable("the system gives no random numbers"))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The secret in a file, without blanks and line ends around it.
fn secret(path: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.trim().to_owned())
}

/// Whether clients show their secret in a header, which is so where the issuer says nothing.
fn takes_basic(discovered: &Discovery) -> bool {
    let methods = discovered.token_endpoint_auth_methods_supported.as_ref();
    methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic"))
}

/// The header of a client with this secret (RFC 6749, 2.3.1).
fn basic(client: &str, secret: &str) -> Option<HeaderValue> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(client), encoded(secret));
    let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn with_query(address: &str, query: &str) -> String {
    let mark = if address.contains('?') { '&' } else { '?' };
    format!("{address}{mark}{query}")
}

/// The beginning of a text, of visible ASCII alone, as RFC 6749 has it.
fn plain(text: &str) -> String {
    let visible = text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    visible.take(MOST_SAID).collect()
}
