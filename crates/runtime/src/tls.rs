//! Certificates and private keys in files, for whatever secures connections by them.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio_rustls::rustls::{
    self, ConfigBuilder, ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::WantsServerCert,
};

/// Why a file is of no use for secure connections. No text repeats what is in the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is absent, or may not be read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file as the configuration names it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file holds nothing of what it is for.
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
    /// Certificate and key are not of each other, or the library takes one of them not.
    #[error("the certificate in `{}` and the key in `{}` do not work together", cert.display(), key.display())]
    Pair {
        /// The file of certificates.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What the TLS library found, such as a key of another certificate.
        #[source]
        source: rustls::Error,
    },
}

/// A file, and the bytes that were read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path as the configuration names it.
    pub path: PathBuf,
    /// All that is in it.
    pub bytes: Vec<u8>,
}

impl File {
    /// Reads the file at `path`. It fails with [`Error::Unreadable`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Self { path, bytes }),
            Err(source) => Err(Error::Unreadable { path, source }),
        }
    }

    /// The certificates in it, of which there is one at least. It fails with [`Error::Pem`].
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.bytes).collect();
        match all {
            Ok(all) if all.is_empty() => Err(pem::Error::NoItemsFound),
            all => all,
        }
        .map_err(|source| self.holds_no("certificate", source))
    }

    fn holds_no(&self, what: &'static str, source: pem::Error) -> Error {
        Error::Pem {
            path: self.path.clone(),
            what,
            source,
        }
    }
}

/// Shows the certificates of `cert`, by the private key in `key`, over HTTP/2 and HTTP/1.1. It fails with
/// [`Error::Pem`] or [`Error::Pair`].
pub fn show(
    server: ConfigBuilder<ServerConfig, WantsServerCert>,
    cert: &File,
    key: &File,
) -> Result<ServerConfig, Error> {
    let private = PrivateKeyDer::from_pem_slice(&key.bytes)
        .map_err(|source| key.holds_no("private key", source))?;
    let mut server = server
        .with_single_cert(cert.certificates()?, private)
        .map_err(|source| Error::Pair {
            cert: cert.path.clone(),
            key: key.path.clone(),
            source,
        })?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(server)
}
