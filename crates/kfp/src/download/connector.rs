//! Connections to public addresses: a name is resolved once, all that it resolves to is checked, and one of these
//! addresses is connected to.

use std::{
    fmt::Debug,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::address::is_public;

/// How names are resolved and addresses connected to.
#[async_trait]
pub trait Network: Debug + Send + Sync + 'static {
    /// The addresses of a host.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// A connection to an address that was checked.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// The network of this machine.
#[derive(Debug, Clone, Copy)]
pub struct System;

#[async_trait]
impl Network for System {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = tokio::net::lookup_host((host, 0)).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// Why an address is not connected to.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

impl Refused {
    /// The refusal that is the cause of an error.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref::<Self>() {
                return Some(refused.clone());
            }
            // What an error of input and output wraps is not its source, but in its place.
            let inner = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref);
            if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<Self>()) {
                return Some(refused.clone());
            }
            cause = error.source();
        }
        None
    }
}

/// Connects to what the network resolves, if all of it is public.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    network: Arc<dyn Network>,
}

impl Connector {
    pub(super) fn new(network: Arc<dyn Network>) -> Self {
        Self { network }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let network = Arc::clone(&self.network);
        Box::pin(async move { connect(&*network, &uri).await.map(TokioIo::new) })
    }
}

async fn connect(network: &dyn Network, uri: &Uri) -> io::Result<TcpStream> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = match uri.scheme_str() {
        Some("http") => 80,
        _ => 443,
    };
    let port = uri.port_u16().unwrap_or(port);
    let addresses = match host.parse() {
        Ok(address) => vec![address],
        Err(_name) => network.resolve(host).await?,
    };
    if let Some(inside) = addresses.iter().find(|address| !is_public(**address)) {
        let why = format!("`{host}` is at {inside}, which is not a public address");
        return Err(io::Error::other(Refused(why)));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
    for address in addresses {
        match network.connect(SocketAddr::new(address, port)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
