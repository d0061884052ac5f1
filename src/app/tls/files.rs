//! Certificates and keys, as they are read from files.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::{
    self, RootCertStore,
    crypto::CryptoProvider,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject as _},
    },
    server::WebPkiClientVerifier,
};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Version};

use crate::app::tls::error::TlsError;

/// The bytes of the files.
pub(super) struct Files {
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

impl Files {
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for file in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let digest = file.map(Sha256::digest).unwrap_or_default();
            hash.update(digest);
        }
        hash.finalize().into()
    }
}

pub(super) fn pem(path: &Path, what: &'static str, source: pem::Error) -> TlsError {
    TlsError::Pem {
        path: path.to_owned(),
        what,
        source,
    }
}

/// The certificates of a file, of which there must be one.
pub(super) fn certificates(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match all {
        Ok(all) if all.is_empty() => Err(pem::Error::NoItemsFound),
        all => all,
    }
    .map_err(|source| pem(path, "certificate", source))
}

/// When a certificate ends, or why no server can show it.
pub(super) fn expiration(certificate: &CertificateDer<'_>) -> Result<Timestamp, String> {
    let (_, certificate) = X509Certificate::from_der(certificate)
        .map_err(|error| format!("it is no X.509 certificate: {error}"))?;
    if certificate.version() != X509Version::V3 {
        return Err(format!(
            "it is of X.509 version {}, want version 3; make one with the extension \
             subjectAltName, which clients need",
            certificate.version().0 + 1
        ));
    }
    let until = certificate.validity().not_after.timestamp();
    Timestamp::from_second(until).or(Ok(Timestamp::MAX))
}

/// Whoever checks clients by the certificates of a file.
pub(super) fn clients(
    path: &Path,
    bytes: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::ClientCa {
                path: path.to_owned(),
                source,
            })?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|source| TlsError::Verifier {
            path: path.to_owned(),
            source,
        })
}
