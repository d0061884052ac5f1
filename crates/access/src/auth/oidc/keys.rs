//! The keys of an issuer: found by discovery, kept, and asked for again when they are old or a
//! token names one that is not among them.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};
use serde::{Deserialize, de::DeserializeOwned};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::{Error, SetupError};
use hindsight_runtime::clock::Clock;

/// After how long keys are asked for again.
const FRESH: SignedDuration = SignedDuration::from_mins(10);
/// For how long they are believed while the issuer does not answer.
const STALE: SignedDuration = SignedDuration::from_hours(24);
/// How often the issuer is asked at most: tokens with made-up keys must not make us ask it.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes that are read of one answer of the issuer.
const MOST: usize = 1 << 20;

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<Arc<JwkSet>>,
    read: Option<Timestamp>,
    asked: Option<Timestamp>,
}

/// Trust in the authorities of a file alone.
fn trusting(path: &Path) -> Result<ClientConfig, SetupError> {
    let refuse = |why: String| SetupError::Authority {
        path: path.to_owned(),
        why,
    };
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("it holds no certificate in PEM".to_owned()));
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct Keys {
    issuer: String,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// One asks, the others wait for what comes of it.
    asking: tokio::sync::Mutex<()>,
}

impl Keys {
    /// The keys of `issuer`, who is certified by an authority in the file `ca`, or one of the
    /// system's.
    pub(super) fn of(
        issuer: &str,
        ca: Option<&Path>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        if !is_secure(issuer) && !is_loopback(issuer) {
            return Err(SetupError::Issuer {
                issuer: issuer.to_owned(),
            });
        }
        let builder = HttpsConnectorBuilder::new();
        let builder = match ca {
            None => builder
                .with_provider_and_native_roots(aws_lc_rs::default_provider())
                .map_err(SetupError::Authorities)?,
            Some(path) => builder.with_tls_config(trusting(path)?),
        };
        let connector = builder.https_or_http().enable_http1().build();
        Ok(Self {
            issuer: issuer.to_owned(),
            client: Client::builder(TokioExecutor::new()).build(connector),
            clock,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        })
    }

    /// The key of this name; without a name, the only one there is.
    pub(super) async fn find(&self, kid: Option<&str>) -> Result<Option<Jwk>, Error> {
        if let Some(keys) = self.current(FRESH)
            && let Some(key) = pick(&keys, kid)
        {
            return Ok(Some(key));
        }
        let outcome = self.renew().await;
        match (self.current(STALE), outcome) {
            (Some(keys), Ok(())) => Ok(pick(&keys, kid)),
            (Some(keys), Err(error)) => match pick(&keys, kid) {
                Some(key) => Ok(Some(key)),
                None => Err(error),
            },
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(unanswered("the issuer was asked a moment ago")),
        }
    }

    fn current(&self, age: SignedDuration) -> Option<Arc<JwkSet>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_young = self.clock.now().duration_since(state.read?) < age;
        state.keys.clone().filter(|_| is_young)
    }

    /// Asks the issuer, unless that was done lately.
    async fn renew(&self) -> Result<(), Error> {
        let _asking = self.asking.lock().await;
        let now = self.clock.now();
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state
                .asked
                .is_some_and(|asked| now.duration_since(asked) < PAUSE)
            {
                return Ok(());
            }
            state.asked = Some(now);
        }
        let keys = tokio::time::timeout(PATIENCE, self.ask())
            .await
            .map_err(|_elapsed| unanswered("the issuer does not answer"))??;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keys = Some(Arc::new(keys));
        state.read = Some(now);
        Ok(())
    }

    async fn ask(&self) -> Result<JwkSet, Error> {
        let issuer = self.issuer.trim_end_matches('/');
        let found: Discovery = self
            .get(&format!("{issuer}/.well-known/openid-configuration"))
            .await?;
        if found.issuer != self.issuer {
            return Err(unanswered(format!(
                "the issuer calls itself `{}` and not `{}`",
                found.issuer, self.issuer
            )));
        }
        // Whoever answers in the clear in between could sign for anybody.
        let at = found.jwks_uri;
        let is_local = is_loopback(&self.issuer) && is_loopback(&at);
        if !is_secure(&at) && !is_local {
            return Err(unanswered(format!(
                "the issuer has its keys at `{at}`; want an address that begins with `https://`"
            )));
        }
        self.get(&at).await
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, Error> {
        let failed = |error: &dyn std::fmt::Display| unanswered(format!("{url}: {error}"));
        let address = url.parse().map_err(|error| failed(&error))?;
        let answer = self
            .client
            .get(address)
            .await
            .map_err(|error| failed(&error))?;
        if !answer.status().is_success() {
            return Err(failed(&answer.status()));
        }
        let body = Limited::new(answer.into_body(), MOST).collect().await;
        let body = body.map_err(|error| failed(&error))?.to_bytes();
        serde_json::from_slice(&body).map_err(|error| failed(&error))
    }
}

fn is_secure(url: &str) -> bool {
    url.parse::<Uri>()
        .is_ok_and(|uri| uri.scheme_str() == Some("https"))
}

/// Whether it is plain HTTP to this machine.
fn is_loopback(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| {
        uri.scheme_str() == Some("http")
            && matches!(uri.host(), Some("127.0.0.1" | "[::1]" | "localhost"))
    })
}

/// Among the keys for signatures the one of this name; without a name, the only one.
pub(super) fn pick(keys: &JwkSet, kid: Option<&str>) -> Option<Jwk> {
    let mut all = keys.keys.iter().filter(|key| signs(key));
    match kid {
        Some(_) => all.find(|key| key.common.key_id.as_deref() == kid).cloned(),
        None => all.next().filter(|_| all.next().is_none()).cloned(),
    }
}

/// Whether a key is for signatures (RFC 7517, 4.2 and 4.3).
fn signs(key: &Jwk) -> bool {
    let by_use = key.common.public_key_use.as_ref();
    let by_operations = key.common.key_operations.as_ref();
    by_use.is_none_or(|it| *it == PublicKeyUse::Signature)
        && by_operations.is_none_or(|all| all.contains(&KeyOperations::Verify))
}

fn unanswered(why: impl Into<String>) -> Error {
    Error::Unavailable {
        source: Arc::new(std::io::Error::other(why.into())),
    }
}
