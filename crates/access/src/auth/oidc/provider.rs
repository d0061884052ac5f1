//! Calls to an issuer: its discovery document and what that refers to. Each is bounded in time and
//! size, and none goes over the network in the clear.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::{Error, SetupError};

/// How long the issuer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes that are read of one answer of the issuer.
const MOST: usize = 1 << 20;

/// What an issuer says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Discovery {
    issuer: String,
    pub(super) jwks_uri: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) end_session_endpoint: Option<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
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

/// The way to one issuer.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Provider {
    /// The way to `issuer`, who is certified by an authority in the file `ca`, or by one of the system.
    pub(super) fn of(issuer: &str, ca: Option<&Path>) -> Result<Self, SetupError> {
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
        })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Asks the issuer what it says of itself.
    pub(super) async fn discover(&self) -> Result<Discovery, Error> {
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
        Ok(found)
    }

    /// Whether what is at this address may be believed: who answers in the clear in between could
    /// sign for anybody.
    pub(super) fn trusts(&self, at: &str) -> bool {
        is_secure(at) || is_loopback(&self.issuer) && is_loopback(at)
    }

    /// JSON at an address.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, Error> {
        let request = Request::get(url).body(Full::default());
        let (status, body) = self.send(url, request).await?;
        if !status.is_success() {
            return Err(unanswered(format!("{url}: {status}")));
        }
        read(&body).map_err(|error| unanswered(format!("{url}: {error}")))
    }

    /// What is answered to a form, of a client that shows these credentials.
    pub(super) async fn post(
        &self,
        url: &str,
        form: String,
        credentials: Option<HeaderValue>,
    ) -> Result<(StatusCode, Bytes), Error> {
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        if let Some(credentials) = credentials {
            request = request.header(header::AUTHORIZATION, credentials);
        }
        self.send(url, request.body(Full::from(form))).await
    }

    async fn send(
        &self,
        url: &str,
        request: http::Result<Request<Full<Bytes>>>,
    ) -> Result<(StatusCode, Bytes), Error> {
        let failed = |error: &dyn std::fmt::Display| unanswered(format!("{url}: {error}"));
        let request = request.map_err(|error| failed(&error))?;
        let whole = async {
            let answer = self.client.request(request).await;
            let answer = answer.map_err(|error| failed(&error))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MOST).collect().await;
            let body = body.map_err(|error| failed(&error))?.to_bytes();
            Ok((status, body))
        };
        let whole = tokio::time::timeout(PATIENCE, whole).await;
        whole.map_err(|_elapsed| unanswered("the issuer does not answer"))?
    }
}

/// Reads an answer of the issuer into a type that holds no JSON as it came.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(body)
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

pub(super) fn unanswered(why: impl Into<String>) -> Error {
    Error::Unavailable {
        source: Arc::new(std::io::Error::other(why.into())),
    }
}
