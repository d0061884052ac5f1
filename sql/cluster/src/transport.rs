//! How processes of a cluster talk: each has a certificate of one CA, and refuses others that have none.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use ballista_core::extension::{EndpointOverrideFn, SessionConfigExt as _};
use datafusion::prelude::SessionConfig;
use hindsight_connect::Failure;
use tokio::net::TcpListener;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use url::Url;

use crate::args;

/// Largest message between processes, in bytes: a plan with rows of the database, or rows of an answer.
pub(crate) const MESSAGE: usize = 64 << 20;
/// A connection takes so long at most, and is looked after so often.
const CONNECT: Duration = Duration::from_secs(5);
const ALIVE: Duration = Duration::from_secs(15);
/// The name that all certificates are for: addresses of executors come and go.
const NAME: &str = "hindsight-sql-cluster";

/// The certificate of this process and of the CA.
#[derive(Clone)]
pub(crate) struct Tls {
    ca: Certificate,
    identity: Identity,
}

impl fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// What the command line says; none if it says nothing. It fails if a file cannot be read.
    pub(crate) fn of(args: &args::Tls) -> Result<Option<Self>, Failure> {
        let args::Tls {
            cluster_ca,
            cluster_cert,
            cluster_key,
        } = args;
        let (Some(ca), Some(cert), Some(key)) = (cluster_ca, cluster_cert, cluster_key) else {
            return Ok(None);
        };
        let read = |path: &PathBuf| {
            let read = std::fs::read(path);
            read.map_err(|error| {
                Failure::usage(format!("`{}` cannot be read: {error}", path.display()))
            })
        };
        Ok(Some(Self {
            ca: Certificate::from_pem(read(ca)?),
            identity: Identity::from_pem(read(cert)?, read(key)?),
        }))
    }
}

/// The builder of a server, which takes connections of the cluster alone if it has certificates. It fails if they
/// cannot be used.
pub(crate) fn server(tls: Option<&Tls>) -> Result<Server, Failure> {
    let builder = Server::builder().tcp_nodelay(true);
    let Some(tls) = tls else { return Ok(builder) };
    let config = ServerTlsConfig::new()
        .identity(tls.identity.clone())
        .client_ca_root(tls.ca.clone());
    builder.tls_config(config).map_err(|error| {
        Failure::usage(format!(
            "the certificate or its key cannot be used: {error}"
        ))
    })
}

/// How the scheduler at `url` is reached. It fails if the URL or the certificate cannot be used.
pub(crate) fn endpoint_of(url: &Url, tls: Option<&Tls>) -> Result<Endpoint, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("the scheduler at {url} cannot be asked: {error}"))
    };
    let plain = Endpoint::from_shared(url.to_string()).map_err(|error| wrong(&error))?;
    match tls {
        None => Ok(plain),
        Some(tls) => endpoint(tls.clone())(plain).map_err(|error| wrong(&error)),
    }
}

/// What makes endpoints of the cluster use TLS.
pub(crate) fn endpoint(tls: Tls) -> EndpointOverrideFn {
    Arc::new(move |endpoint: Endpoint| {
        let uri = endpoint
            .uri()
            .to_string()
            .replacen("http://", "https://", 1);
        let config = ClientTlsConfig::new()
            .ca_certificate(tls.ca.clone())
            .identity(tls.identity.clone())
            .domain_name(NAME);
        let endpoint = Endpoint::from_shared(uri)?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_while_idle(true);
        Ok(endpoint.tls_config(config)?)
    })
}

/// Listens on an address, whose port is chosen here if it is 0. It fails if other machines could connect without
/// certificates, because a process that connects can read the archive.
pub(crate) async fn bind(
    address: SocketAddr,
    tls: Option<&Tls>,
) -> Result<(TcpListener, SocketAddr), Failure> {
    if tls.is_none() && !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "a process that connects to {address} can read the archive; give --cluster-ca, --cluster-cert and --cluster-key, or \
             listen on a loopback address such as 127.0.0.1:{}",
            address.port()
        )));
    }
    let listener = TcpListener::bind(address).await;
    let listener =
        listener.map_err(|error| Failure::other(format!("cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// The configuration of statements by which processes reach each other.
pub(crate) fn configured(config: SessionConfig, tls: Option<&Tls>) -> SessionConfig {
    let config = config.with_ballista_grpc_client_max_message_size(MESSAGE);
    match tls {
        None => config,
        Some(tls) => config
            .with_ballista_use_tls(true)
            .with_ballista_override_create_grpc_client_endpoint(endpoint(tls.clone())),
    }
}
