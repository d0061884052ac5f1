//! TLS on the one port: certificates from files, read again when they change. Connections that
//! are there stay as they are; the next one gets the new certificate.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::{CryptoProvider, aws_lc_rs},
        version::{TLS12, TLS13},
    },
    server::TlsStream,
};

use super::reload::Reload;
use crate::config::{CipherSuites, Config, TlsVersion};
use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::report;
use hindsight_runtime::tls::{self, File};

use files::{Files, clients, expiration};

/// How long a client may take until the connection is secure.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Where everything is, and what is wanted.
#[derive(Debug)]
struct Wanted {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    min_version: TlsVersion,
    suites: Option<CipherSuites>,
}

/// What connections are secured by.
#[derive(Debug)]
struct Current {
    server: Arc<ServerConfig>,
    /// When the certificate ends.
    until: Timestamp,
}

/// Secures connections by certificates in files, which are read again when they change.
pub(super) struct Tls {
    wanted: Wanted,
    clock: Arc<dyn Clock>,
    current: RwLock<Arc<Current>>,
    /// The digest of what was read last, or why nothing was; so that it is judged, and told, once.
    seen: Mutex<Result<[u8; 32], String>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// What the configuration wants; nothing if that is no TLS. A certificate that is over is taken,
    /// since clients refuse it themselves, and told of.
    ///
    /// # Errors
    /// If a file cannot be read or used.
    pub(super) fn load(config: &Config, clock: Arc<dyn Clock>) -> Result<Option<Self>, TlsError> {
        let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) else {
            return Ok(None);
        };
        let wanted = Wanted {
            cert: cert.clone(),
            key: key.clone(),
            client_ca: config.tls_client_ca.clone(),
            min_version: config.tls_min_version,
            suites: config.tls_cipher_suites.clone(),
        };
        let files = wanted.read()?;
        let current = wanted.server(&files)?;
        if current.until <= clock.now() {
            tracing::warn!(
                tls.cert = %wanted.cert.display(),
                until = %current.until,
                "the certificate has expired; clients will refuse it"
            );
        }
        Ok(Some(Self {
            wanted,
            clock,
            current: RwLock::new(Arc::new(current)),
            seen: Mutex::new(Ok(files.digest())),
        }))
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When the certificate that is shown now ends.
    pub(super) fn expiration(&self) -> Timestamp {
        self.current().until
    }

    /// Secures one connection.
    ///
    /// # Errors
    /// If the client speaks no TLS, none that is wanted, is not who it should be, or takes long.
    pub(super) async fn accept<I>(&self, io: I) -> io::Result<TlsStream<I>>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        let server = Arc::clone(&self.current().server);
        let handshake = TlsAcceptor::from(server).accept(io);
        tokio::time::timeout(HANDSHAKE, handshake)
            .await
            .map_err(io::Error::from)?
    }
}

impl Reload for Tls {
    fn reload(&self) {
        let read = self.wanted.read();
        let now = match &read {
            Ok(files) => Ok(files.digest()),
            Err(error) => Err(report(error)),
        };
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == now {
                return;
            }
            *seen = now;
        }
        match read.and_then(|files| self.wanted.server(&files)) {
            Ok(new) if new.until <= self.clock.now() && new.until < self.expiration() => {
                tracing::error!(
                    tls.cert = %self.wanted.cert.display(),
                    until = %new.until,
                    "the new certificate has expired; keeping the previous one"
                );
            }
            Ok(new) => {
                tracing::info!(
                    tls.cert = %self.wanted.cert.display(),
                    until = %new.until,
                    "certificate reloaded"
                );
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(new);
            }
            // While files are replaced one by one they may not fit for a moment.
            Err(error) => {
                let error = report(&error);
                tracing::error!(error, "invalid certificate; keeping the previous one");
            }
        }
    }
}

impl Wanted {
    fn read(&self) -> Result<Files, TlsError> {
        Ok(Files {
            cert: File::read(&self.cert)?,
            key: File::read(&self.key)?,
            client_ca: self.client_ca.as_deref().map(File::read).transpose()?,
        })
    }

    fn server(&self, files: &Files) -> Result<Current, TlsError> {
        let chain = files.cert.certificates()?;
        let until = expiration(&chain[0]).map_err(|why| TlsError::Certificate {
            path: self.cert.clone(),
            why,
        })?;
        let provider = Arc::new(provider(self.suites.as_ref()));
        let versions: &[_] = match self.min_version {
            TlsVersion::V1_2 => &[&TLS13, &TLS12],
            TlsVersion::V1_3 => &[&TLS13],
        };
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(TlsError::Suites)?;
        let server = match &files.client_ca {
            Some(file) => server.with_client_cert_verifier(clients(file, provider)?),
            None => server.with_no_client_auth(),
        };
        let server = tls::show(server, &files.cert, &files.key)?;
        let server = Arc::new(server);
        Ok(Current { server, until })
    }
}

/// The cryptography, with the cipher suites that are wanted.
fn provider(suites: Option<&CipherSuites>) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if let Some(suites) = suites {
        let all = std::mem::take(&mut provider.cipher_suites);
        let named = |name: &str| {
            let mut all = all.iter();
            all.find(|suite| suite.suite().as_str() == Some(name))
                .copied()
        };
        provider.cipher_suites = suites.names().filter_map(named).collect();
    }
    provider
}

mod error;

pub use error::TlsError;
mod files;
#[cfg(test)]
mod tests;
