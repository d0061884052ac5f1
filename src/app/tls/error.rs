//! Why connections cannot be secured.

use std::path::PathBuf;

use hindsight_runtime::tls;
use tokio_rustls::rustls::{self, server::VerifierBuilderError};

/// Why connections cannot be secured. No text repeats what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file holds no certificate, key or pair of them.
    #[error(transparent)]
    File(#[from] tls::Error),
    /// A certificate is none that a server can show.
    #[error("`{}` holds a certificate that cannot be used: {why}", path.display())]
    Certificate {
        /// The certificate or key file, as the configuration names it.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate is none that could have signed others.
    #[error("`{}` holds a certificate that no client can be checked by", path.display())]
    ClientCa {
        /// The file of certificates.
        path: PathBuf,
        /// What the TLS library found wrong with the certificate.
        #[source]
        source: rustls::Error,
    },
    /// No cipher suite of those that are wanted belongs to a version that is.
    #[error("tls_cipher_suites and tls_min_version leave nothing to speak")]
    Suites(#[source] rustls::Error),
    /// No client could be checked.
    #[error("no client can be checked by the certificates in `{}`", path.display())]
    Verifier {
        /// The file of certificates.
        path: PathBuf,
        /// Why the TLS library makes no verifier of them.
        #[source]
        source: VerifierBuilderError,
    },
}
