//! The certificate of the webhook, which is read again when its files change.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{error, info};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// Why connections cannot be secured. No text repeats what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not there, or not ours to read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file as the configuration names it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file holds nothing of what it is for.
    #[error("`{}` holds no {what} in PEM", path.display())]
    Pem {
        /// The file as the configuration names it.
        path: PathBuf,
        /// What it is for.
        what: &'static str,
        /// What the parser said.
        #[source]
        source: pem::Error,
    },
    /// Certificate and key do not work.
    #[error("the certificate in `{}` and the key in `{}` do not work together", cert.display(), key.display())]
    Pair {
        /// The file of certificates.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What the TLS library found.
        #[source]
        source: rustls::Error,
    },
}

/// The certificate with which connections begin, read again when its file changes.
#[derive(Debug)]
pub(crate) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<ServerConfig>>,
}

/// The content of both files.
#[derive(PartialEq, Eq)]
struct Files {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads both files. It fails if they cannot be used.
    pub(crate) fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = read(cert, key)?;
        Ok(Self {
            current: RwLock::new(Arc::new(server(cert, key, &files)?)),
            cert: cert.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Secures one connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let current = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(current).accept(stream).await
    }

    /// Looks at the files for as long as it is polled. Connections that are there stay as they are.
    pub(crate) async fn follow(&self) {
        let mut seen = read(&self.cert, &self.key).ok();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = read(&self.cert, &self.key).ok();
            if now == seen {
                continue;
            }
            // While files are replaced one by one they may not fit for a moment.
            match self.reload() {
                Ok(()) => info!(tls.cert = %self.cert.display(), "certificate reloaded"),
                Err(error) => error!(%error, "invalid certificate; keeping the previous one"),
            }
            seen = now;
        }
    }

    fn reload(&self) -> Result<(), TlsError> {
        let files = read(&self.cert, &self.key)?;
        let new = server(&self.cert, &self.key, &files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(())
    }
}

fn read(cert: &Path, key: &Path) -> Result<Files, TlsError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| TlsError::Unreadable {
            path: path.to_owned(),
            source,
        })
    };
    Ok(Files {
        cert: read(cert)?,
        key: read(key)?,
    })
}

fn server(cert: &Path, key: &Path, files: &Files) -> Result<ServerConfig, TlsError> {
    let pem = |path: &Path, what, source| TlsError::Pem {
        path: path.to_owned(),
        what,
        source,
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&files.cert).collect();
    let chain = match chain {
        Ok(chain) if chain.is_empty() => Err(pem::Error::NoItemsFound),
        chain => chain,
    };
    let chain = chain.map_err(|source| pem(cert, "certificate", source))?;
    let private = PrivateKeyDer::from_pem_slice(&files.key);
    let private = private.map_err(|source| pem(key, "private key", source))?;
    let pair = |source| TlsError::Pair {
        cert: cert.to_owned(),
        key: key.to_owned(),
        source,
    };
    let mut server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(pair)?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(server)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use rcgen::{CertificateParams, KeyPair};

    use super::{Tls, TlsError};

    fn put(folder: &Path) {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("cert.pem"), made.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    }

    #[test]
    fn files_that_do_not_fit_leave_the_certificate_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        assert!(matches!(
            Tls::load(&cert, &key),
            Err(TlsError::Unreadable { .. })
        ));
        put(folder.path());
        let tls = Tls::load(&cert, &key).unwrap();
        let current = || Arc::clone(&tls.current.read().unwrap());
        let first = current();
        std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
        assert!(matches!(tls.reload(), Err(TlsError::Pair { .. })));
        std::fs::write(&cert, "nothing").unwrap();
        assert!(matches!(tls.reload(), Err(TlsError::Pem { .. })));
        assert!(Arc::ptr_eq(&first, &current()));
        put(folder.path());
        tls.reload().unwrap();
        assert!(!Arc::ptr_eq(&first, &current()));
    }
}
