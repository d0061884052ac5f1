//! What requests to other servers are made with: connections, whom they trust, and secrets in files. Redirects are
//! not followed, and no proxy is asked.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderValue;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs as provider,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use hindsight_runtime::error::report;

/// How long a connection stays open without a request.
const IDLE: Duration = Duration::from_secs(60);
/// How often files of secrets are read again.
const RENEW: Duration = Duration::from_secs(10);

/// A client of HTTP/1.1.
pub(crate) type HttpClient = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that trusts the authorities of a file alone, or those of the system. It fails with what is
/// wrong with the authorities.
pub(crate) fn client(ca: Option<&Path>, connecting: Duration) -> Result<HttpClient, String> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(connecting));
    let builder = HttpsConnectorBuilder::new();
    let builder = match ca {
        Some(path) => builder.with_tls_config(trusting(path)?),
        None => builder
            .with_provider_and_native_roots(provider::default_provider())
            .map_err(|error| report(&error))?,
    };
    let connector = builder.https_or_http().enable_http1().wrap_connector(http);
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector))
}

/// A secret in a file, which is read again now and then.
pub(crate) struct Secret {
    path: PathBuf,
    read: Mutex<(Arc<str>, Instant)>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secret").field(&self.path).finish()
    }
}

impl Secret {
    /// Reads it for the first time. It fails with what is wrong with the file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        Ok(Self {
            path: path.to_owned(),
            read: Mutex::new((content(path)?, Instant::now())),
        })
    }

    /// The secret as it is now.
    pub(crate) fn now(&self) -> Result<Arc<str>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.1.elapsed() > RENEW {
            let text = content(&self.path);
            read.0 = text.map_err(|why| format!("{}: {why}", self.path.display()))?;
            read.1 = Instant::now();
        }
        Ok(Arc::clone(&read.0))
    }

    /// The value of the header `authorization` with it.
    pub(crate) fn bearer(&self) -> Result<HeaderValue, String> {
        let value = HeaderValue::from_str(&format!("Bearer {}", self.now()?));
        let mut value = value.map_err(|_odd| "the token is no text of a header".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// What a file holds, without the spaces and lines around it.
fn content(path: &Path) -> Result<Arc<str>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err("is empty".to_owned()),
        text => Ok(text.into()),
    }
}

/// Trust in the authorities of a file alone.
fn trusting(path: &Path) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    for certificate in all {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it holds no certificate in PEM".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
