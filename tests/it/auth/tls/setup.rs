//! Authorities, their files, and connections that trust them.

use std::{path::PathBuf, sync::Arc};

use hindsight_client::{Client, Rpc};
use hindsight_proto::v1alpha2 as pb;
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, SupportedProtocolVersion,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
        version::{TLS12, TLS13},
    },
};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::support::{
    Database, TestServer,
    http::{Http, target},
};

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) cert: String,
    pub(super) key: String,
}

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(super) fn certify(&self) -> Pair {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        Pair {
            cert: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A folder with what a server reads.
pub(super) struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    pub(super) fn new(pair: &Pair) -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        files.put(pair);
        files
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn put(&self, pair: &Pair) {
        std::fs::write(self.path("cert.pem"), &pair.cert).unwrap();
        std::fs::write(self.path("key.pem"), &pair.key).unwrap();
    }

    /// Configuration that names them.
    pub(super) fn keys(&self) -> Vec<(&'static str, String)> {
        let shown = |name| self.path(name).display().to_string();
        vec![
            ("tls_cert", shown("cert.pem")),
            ("tls_key", shown("key.pem")),
        ]
    }
}

pub(super) async fn start(database: &Database, keys: &[(&'static str, String)]) -> TestServer {
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, text)| (*key, text.as_str()))
        .collect();
    TestServer::start_with(database, &keys).await
}

pub(super) fn address(server: &TestServer) -> &str {
    server.url.strip_prefix("http://").unwrap()
}

/// A client that trusts `authority`, speaks `versions` of TLS and `protocol` within.
pub(super) fn trusting(
    authority: &Authority,
    own: Option<&Pair>,
    protocol: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config
}

pub(super) async fn connect(
    server: &TestServer,
    config: ClientConfig,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address(server)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// One list over a connection of its own; the status, or how it broke.
pub(super) async fn listed(stream: TlsStream<TcpStream>) -> Result<u16, hyper::Error> {
    let alpn = stream.get_ref().1.alpn_protocol().unwrap().to_vec();
    let io = TokioIo::new(stream);
    let mut http = if alpn == b"h2" {
        let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await?;
        tokio::spawn(connection);
        Http::Two(sender)
    } else {
        let (sender, connection) = conn::http1::handshake(io).await?;
        tokio::spawn(connection);
        Http::One(sender)
    };
    let path = target("ci/results", &[]);
    Ok(http.send("GET", &path, &[], "").await.status)
}

pub(super) fn rpc(server: &TestServer, authority: &Authority, own: Option<&Pair>) -> Rpc {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some(pair) = own {
        tls = tls.identity(Identity::from_pem(&pair.cert, &pair.key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", address(server))).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect_lazy();
    Client::over(channel, None).unwrap().rpc()
}

pub(super) fn list() -> pb::ListResultsRequest {
    pb::ListResultsRequest {
        parent: "ci".to_owned(),
        ..pb::ListResultsRequest::default()
    }
}

pub(super) const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
