//! Access by the tokens of an issuer (OpenID Connect): who a caller is, and to which groups they
//! belong, is in a token that the issuer signed; what they may do is in a file of roles.

mod code_flow;
mod kept;
mod keys;
mod provider;
mod rejected;
mod roles;

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hindsight_run::json::{self, Plain};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::KeyAlgorithm};
use serde::Deserialize;
use serde_json::Value;

pub use self::code_flow::{Answer, Begun, CodeFlow, CodeFlowOptions, SignInError, SignedIn};
use self::{keys::Keys, provider::Provider, rejected::Rejected, roles::Roles};
use super::{
    Access, Authorizer, Caller, Credentials, Error, Grant,
    cache::{Cache, CachePolicy, digest},
    metrics::{Metrics, Rejections},
};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::report;
use hindsight_runtime::telemetry::Registry;

/// How many answers are remembered, of each kind.
const REMEMBERED: usize = 10_000;
/// Longest header of a token, encoded; those of issuers have some hundred characters.
const MAX_HEADER_CHARS: usize = 4 << 10;
/// By how much the clock of the issuer may differ.
const LEEWAY: i64 = 30;
/// What tokens may be signed by: keys of which only the public half is known here.
const SIGNED_BY: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Whose tokens are taken, and what they mean.
#[derive(Debug, Clone)]
pub struct Options {
    /// The issuer, exactly as tokens name it.
    pub issuer: String,
    /// Authorities in PEM, by one of which it is certified; those of the system if absent.
    pub issuer_ca: Option<PathBuf>,
    /// For whom tokens must be.
    pub audience: String,
    /// The claim with the name of a caller.
    pub name_claim: String,
    /// The claim with the groups of a caller.
    pub groups_claim: String,
    /// The file of roles.
    pub roles: PathBuf,
    /// For how long a token that was good is not looked at again.
    pub keep_allowed: Duration,
    /// For how long a token that was not good is not looked at again.
    pub keep_denied: Duration,
}

/// Why tokens of an issuer cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The issuer cannot be asked safely.
    #[error("`{issuer}` is no issuer; want an address that begins with `https://`")]
    Issuer {
        /// Configured issuer; plain `http://` is accepted for this machine only.
        issuer: String,
    },
    /// No authority is known by which the issuer could be told from others.
    #[error("the authorities of the system cannot be read")]
    Authorities(#[source] std::io::Error),
    /// The issuer cannot be told from others by the authorities of this file.
    #[error("no issuer can be trusted by `{}`: {why}", path.display())]
    Authority {
        /// Configured path of the PEM file with certificate authorities.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The secret of the client cannot be read.
    #[error("the secret of the client cannot be read from `{}`", path.display())]
    Secret {
        /// Configured path of the secret.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file of roles cannot be read.
    #[error("the file of roles `{}` cannot be read", path.display())]
    Unreadable {
        /// Configured path of the file of roles.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file of roles makes no sense.
    #[error("`{}`: {why}", path.display())]
    Roles {
        /// Configured path of the file of roles.
        path: PathBuf,
        /// The mistake, with its line or the number of its role.
        why: String,
    },
}

/// Times may have a fraction (RFC 7519, NumericDate).
#[derive(Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
    #[serde(flatten)]
    others: BTreeMap<String, Plain>,
}

/// Whose token it is.
#[derive(Debug)]
struct Known {
    caller: Arc<Caller>,
    groups: Vec<String>,
    until: Timestamp,
}

/// Access by the tokens of an issuer.
pub struct Oidc {
    options: Options,
    clock: Arc<dyn Clock>,
    provider: Arc<Provider>,
    keys: Arc<Keys>,
    verified: Cache<Arc<Known>>,
    rejections: Rejections,
    roles: RwLock<Arc<Roles>>,
    /// What was read last, so that it is judged, and told, once.
    seen: Mutex<Result<String, String>>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Oidc {
    /// Reads the roles. The issuer is asked when the first token comes.
    ///
    /// # Errors
    /// If the issuer is none that can be asked, or the roles make no sense.
    pub fn new(
        options: Options,
        clock: Arc<dyn Clock>,
        registry: &mut Registry,
    ) -> Result<Self, SetupError> {
        let provider = Provider::of(&options.issuer, options.issuer_ca.as_deref())?;
        let provider = Arc::new(provider);
        let keys = Keys::of(Arc::clone(&provider), Arc::clone(&clock));
        let text = read(&options.roles)?;
        let roles = parse(&options.roles, &text)?;
        let keep = CachePolicy {
            allowed: options.keep_allowed,
            denied: options.keep_denied,
            most: REMEMBERED,
        };
        Ok(Self {
            rejections: Rejections::new(registry),
            verified: Cache::new(
                Arc::clone(&clock),
                keep,
                Metrics::new(registry).of("tokens"),
            ),
            roles: RwLock::new(Arc::new(roles)),
            seen: Mutex::new(Ok(text)),
            provider,
            keys: Arc::new(keys),
            options,
            clock,
        })
    }

    /// Reads the roles again. What changed counts for the next call; a file that cannot be used
    /// is logged, and the roles of before stay.
    pub fn reload(&self) {
        let read = read(&self.options.roles);
        let now = match &read {
            Ok(text) => Ok(text.clone()),
            Err(error) => Err(report(error)),
        };
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return;
            }
            *seen = now;
        }
        match read.and_then(|text| parse(&self.options.roles, &text)) {
            Ok(roles) => {
                *self.roles.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(roles);
                tracing::info!(path = %self.options.roles.display(), "roles reloaded");
            }
            Err(error) => {
                let error = report(&error);
                tracing::error!(error, "invalid roles file; keeping the previous roles");
            }
        }
    }

    async fn decide(
        &self,
        credentials: &Credentials,
        access: &Access,
    ) -> Result<Arc<Caller>, Error> {
        if !credentials.acting_for.is_empty() {
            // To answer as the caller itself would give away what only the caller may see.
            return Err(Error::Impersonation("this server does not take them"));
        }
        let roles = Arc::clone(&self.roles.read().unwrap_or_else(PoisonError::into_inner));
        let mut refusal = Error::NoToken;
        for token in credentials.tried() {
            let answer = match self.known(token).await {
                Ok(known) if roles.allow(&known.caller.name, &known.groups, access) => {
                    return Ok(Arc::clone(&known.caller));
                }
                Ok(known) => Error::Denied {
                    caller: Arc::clone(&known.caller),
                },
                Err(error) => error,
            };
            refusal = refusal.or(answer);
        }
        Err(refusal)
    }

    async fn known(&self, token: &str) -> Result<Arc<Known>, Error> {
        let question = || {
            let (keys, options) = (Arc::clone(&self.keys), self.options.clone());
            let (token, now) = (token.to_owned(), self.clock.now());
            let rejections = self.rejections.clone();
            async move {
                match verify(&keys, &options, &token, now).await? {
                    Ok(known) => Ok(Some(Arc::new(known))),
                    Err(reason) => {
                        rejections.count(reason.name());
                        tracing::debug!(%reason, "a token was rejected");
                        Ok(None)
                    }
                }
            }
        };
        let known = self
            .verified
            .ask(digest([token.as_bytes()]), question)
            .await?;
        known
            .filter(|known| self.clock.now() < known.until)
            .ok_or(Error::BadToken)
    }
}

/// The caller of `token`, or why it is rejected.
async fn verify(
    keys: &Keys,
    options: &Options,
    token: &str,
    now: Timestamp,
) -> Result<Result<Known, Rejected>, Error> {
    let claims = claims(keys, &options.issuer, &options.audience, token).await?;
    Ok(claims.and_then(|claims| known(claims, options, now)))
}

/// What a token says that `issuer` signed for `audience`, whenever that was, or why it is rejected.
async fn claims(
    keys: &Keys,
    issuer: &str,
    audience: &str,
    token: &str,
) -> Result<Result<Claims, Rejected>, Error> {
    let header = has_plain_header(token).then(|| decode_header(token).ok());
    let Some(header) = header.flatten() else {
        return Ok(Err(Rejected::Malformed));
    };
    if !SIGNED_BY.contains(&header.alg) {
        return Ok(Err(Rejected::Algorithm));
    }
    let Some(key) = keys.find(header.kid.as_deref()).await? else {
        return Ok(Err(Rejected::Key));
    };
    let is_for = |named| named == KeyAlgorithm::from(header.alg);
    if !key.common.key_algorithm.is_none_or(is_for) {
        return Ok(Err(Rejected::Algorithm));
    }
    let Ok(key) = DecodingKey::from_jwk(&key) else {
        return Ok(Err(Rejected::Key));
    };
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    // Time is ours to tell.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    let decoded = decode::<Claims>(token, &key, &validation);
    Ok(decoded
        .map(|token| token.claims)
        .map_err(|error| Rejected::of(error.kind())))
}

/// Whether the header of `token` is safe to read: the library does so before it looks at the
/// signature, and keeps members that it does not know in the values of a parser that gives some
/// keys a meaning ([`json`]).
fn has_plain_header(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    header.len() <= MAX_HEADER_CHARS
        && URL_SAFE_NO_PAD
            .decode(header)
            .is_ok_and(|text| !json::names_private_keys(&text))
}

/// When claims end, which have begun.
fn until(claims: &Claims, now: Timestamp) -> Result<Timestamp, Rejected> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of floats keeps to the bounds"
    )]
    let seconds = |time: f64| time.floor() as i64;
    let until = seconds(claims.exp)
        .checked_add(LEEWAY)
        .and_then(|second| Timestamp::from_second(second).ok())
        .ok_or(Rejected::Claims)?;
    if until <= now {
        return Err(Rejected::Expired);
    }
    if claims
        .nbf
        .is_some_and(|from| seconds(from).saturating_sub(LEEWAY) > now.as_second())
    {
        return Err(Rejected::NotYetValid);
    }
    Ok(until)
}

fn known(claims: Claims, options: &Options, now: Timestamp) -> Result<Known, Rejected> {
    let until = until(&claims, now)?;
    let claim = |name: &str| claims.others.get(name).map(|Plain(value)| value);
    let name = claim(&options.name_claim)
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .ok_or(Rejected::Name)?;
    // Somebody may write any address into their profile. Some issuers send a text.
    let is_proved = match claim("email_verified") {
        Some(Value::Bool(proved)) => *proved,
        Some(Value::String(text)) => text == "true",
        _ => false,
    };
    if options.name_claim == "email" && !is_proved {
        return Err(Rejected::UnverifiedEmail);
    }
    let groups = match claim(&options.groups_claim) {
        Some(Value::String(group)) => vec![group.clone()],
        Some(Value::Array(groups)) => {
            let texts = groups.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let caller = Caller {
        name: name.to_owned(),
        by: None,
    };
    Ok(Known {
        caller: Arc::new(caller),
        groups,
        until,
    })
}

#[async_trait]
impl Authorizer for Oidc {
    async fn identify(&self, credentials: &Credentials) -> Result<Arc<Caller>, Error> {
        let mut refusal = Error::NoToken;
        for token in credentials.tried() {
            match self.known(token).await {
                Ok(known) => return Ok(Arc::clone(&known.caller)),
                Err(error) => refusal = refusal.or(error),
            }
        }
        Err(refusal)
    }

    async fn authorize(&self, credentials: &Credentials, access: Access) -> Result<Grant, Error> {
        let caller = self.decide(credentials, &access).await?;
        Ok(Grant::new(access, caller))
    }
}

fn read(path: &std::path::Path) -> Result<String, SetupError> {
    std::fs::read_to_string(path).map_err(|source| SetupError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn parse(path: &std::path::Path, text: &str) -> Result<Roles, SetupError> {
    Roles::parse(text).map_err(|why| SetupError::Roles {
        path: path.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests;
