//! Why connections cannot be secured.

use std::{io, path::PathBuf};

use tokio_rustls::rustls::{
    self,
    pki_types::pem::{self},
    server::VerifierBuilderError,
};

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
    /// A certificate is none that a server can show.
    #[error("`{}` holds a certificate that cannot be used: {why}", path.display())]
    Certificate {
        /// The certificate or key file, as the configuration names it.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Certificate and key do not work.
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
