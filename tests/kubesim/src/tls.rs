//! A certificate that a listener makes for itself, and the kubeconfigs that trust it.

use std::{io, net::SocketAddr, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How a listener speaks TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    pub(crate) certificate: CertificateDer<'static>,
    pem: String,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Makes a certificate for an address.
    pub(crate) fn new(addr: SocketAddr) -> io::Result<Self> {
        let names = vec![addr.ip().to_string(), "localhost".into()];
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let certificate = cert.der().clone();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .map_err(io::Error::other)?;
        Ok(Self {
            acceptor: Arc::new(config).into(),
            certificate,
            pem: cert.pem(),
        })
    }

    /// Begins TLS on an accepted connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }

    /// The line by which a kubeconfig trusts the listener.
    pub(crate) fn trusted(&self) -> String {
        let data = BASE64_STANDARD.encode(&self.pem);
        format!("\n    certificate-authority-data: {data}")
    }
}
