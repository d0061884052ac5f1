//! What a server shows, and what it checks clients by.

use std::sync::Arc;

use hindsight_runtime::tls::File;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::{
    self, RootCertStore, crypto::CryptoProvider, pki_types::CertificateDer,
    server::WebPkiClientVerifier,
};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Version};

use crate::app::tls::error::TlsError;

/// What was read of the files.
pub(super) struct Files {
    pub(super) cert: File,
    pub(super) key: File,
    pub(super) client_ca: Option<File>,
}

impl Files {
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for file in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let digest = file.map(|file| Sha256::digest(&file.bytes));
            let digest = digest.unwrap_or_default();
            hash.update(digest);
        }
        hash.finalize().into()
    }
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
    file: &File,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in file.certificates()? {
        roots
            .add(certificate)
            .map_err(|source| TlsError::ClientCa {
                path: file.path.clone(),
                source,
            })?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|source| TlsError::Verifier {
            path: file.path.clone(),
            source,
        })
}
