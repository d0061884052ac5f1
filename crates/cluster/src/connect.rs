//! A client of the API server, by a kubeconfig or from inside of the cluster, with small buffers.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hyper_timeout::TimeoutConnector;
use hyper_util::{client::legacy, rt::TokioExecutor};
use kube::client::{ClientBuilder, ConfigExt};
use tower::{BoxError, ServiceBuilder};

/// What is read of a connection before it is taken. A container that is followed has a connection of its
/// own, and 400 KiB, as without this, of each of 500 are 200 MiB.
const READ_BUFFER: usize = 32 << 10;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing names a cluster.
    #[error("no cluster was found; name a kubeconfig with --kubeconfig")]
    Nowhere(#[source] kube::config::InferConfigError),
    /// The file is not there, or not for us.
    #[error("kubeconfig `{}` cannot be read", path.display())]
    Unreadable {
        /// Where the kubeconfig is.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file is no kubeconfig, or names no cluster.
    #[error("kubeconfig `{}` leads nowhere", path.display())]
    Malformed {
        /// Where the kubeconfig is.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// What the kubeconfig says does not work.
    #[error("the kubeconfig cannot be used")]
    Unusable(#[source] kube::Error),
    /// Proxies are not supported.
    #[error("the API server is behind the proxy {0}, which is not supported")]
    Proxy(http::Uri),
}

/// A client by the kubeconfig at this path, or by what is there without one.
pub async fn connect(kubeconfig: Option<PathBuf>) -> Result<kube::Client, ConnectError> {
    let mut config = match kubeconfig {
        None => kube::Config::infer().await.map_err(ConnectError::Nowhere)?,
        Some(path) => {
            readable(&path)?;
            let malformed = |source| ConnectError::Malformed {
                path: path.clone(),
                source,
            };
            let read = kube::config::Kubeconfig::read_from(&path).map_err(malformed)?;
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(read, &options).await;
            config.map_err(malformed)?
        }
    };
    // Otherwise a call that meets a busy API server is repeated for minutes, unseen, and keeps a
    // worker that long. What failed is tried again later, and others get their turn.
    config.default_retry = false;
    // Longer than a watch lasts. Each request has a deadline of its own besides; this is for what is
    // written to a connection that has died.
    config.read_timeout = Some(Duration::from_mins(5));
    config.reset_reader_on_write = true;
    client(config)
}

/// Fails if a kubeconfig cannot be read. The error of [`kube`] repeats the path and the cause.
pub fn readable(path: &Path) -> Result<(), ConnectError> {
    let unreadable = |source| ConnectError::Unreadable {
        path: path.to_owned(),
        source,
    };
    std::fs::File::open(path).map(drop).map_err(unreadable)
}

/// Chooses for the whole process.
pub fn choose_cryptography() {
    // Only fails if somebody chose before, and then that is what is wanted.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .unwrap_or_default();
}

/// The client that [`kube::Client::try_from`] makes without retries, but for the size of its buffers.
fn client(config: kube::Config) -> Result<kube::Client, ConnectError> {
    if let Some(proxy) = config.proxy_url {
        return Err(ConnectError::Proxy(proxy));
    }
    let connector = config.rustls_https_connector();
    let mut connector = TimeoutConnector::new(connector.map_err(ConnectError::Unusable)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connections = legacy::Builder::new(TokioExecutor::new())
        .http1_max_buf_size(READ_BUFFER)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(ConnectError::Unusable)?)
        .layer(
            config
                .extra_headers_layer()
                .map_err(ConnectError::Unusable)?,
        )
        .map_err(BoxError::from)
        .service(connections);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
