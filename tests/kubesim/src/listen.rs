//! The simulated server on a socket: plain HTTP/1.1, and a kubeconfig that leads to it.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{service::SimService, sim::Sim};

/// A simulated server that listens. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Listening {
    /// The address it was bound to.
    pub addr: SocketAddr,
    kubeconfig: PathBuf,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Sim {
    /// Listens on `addr`; port 0 takes any free port. Several listeners share the state.
    ///
    /// # Errors
    /// When the address cannot be bound, or the kubeconfig cannot be written.
    pub async fn listen(&self, addr: SocketAddr) -> io::Result<Listening> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = format!("kubesim-{}-{count}.kubeconfig", std::process::id());
        let kubeconfig = std::env::temp_dir().join(file);
        std::fs::write(&kubeconfig, kubeconfig_text(addr))?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(accept(
            listener,
            self.service(),
            stop.clone(),
            tasks.clone(),
        ));
        tasks.close();
        Ok(Listening {
            addr,
            kubeconfig,
            stop,
            tasks,
        })
    }
}

impl Listening {
    /// A kubeconfig that leads here; it goes when this does.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The text of that kubeconfig.
    pub fn kubeconfig_text(&self) -> String {
        kubeconfig_text(self.addr)
    }

    /// A client that comes through the socket, with kube's own retries after 429, 503 and 504.
    ///
    /// # Errors
    /// When kube does not take the kubeconfig.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        let url: http::Uri = format!("http://{}", self.addr)
            .parse()
            .expect("a socket address makes a URL");
        kube::Client::try_from(kube::Config::new(url))
    }

    /// Closes every connection and the port, and waits until that is done.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Err(error) = std::fs::remove_file(&self.kubeconfig) {
            let path = self.kubeconfig.display();
            tracing::debug!(%error, "kubeconfig `{path}` was gone already");
        }
    }
}

async fn accept(
    listener: TcpListener,
    service: SimService,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(serve(stream, service.clone(), stop.clone()));
                }
                Err(error) => tracing::warn!(%error, "a connection was not accepted"),
            },
        }
    }
}

async fn serve(stream: TcpStream, service: SimService, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection keeps its delay");
    }
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { service.answer(request).await }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new());
    let connection = server.serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        () = stop.cancelled() => {}
        outcome = connection => if let Err(error) = outcome {
            tracing::debug!(%error, "a connection broke");
        },
    }
}

fn kubeconfig_text(addr: SocketAddr) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: kubesim
clusters:
- name: kubesim
  cluster:
    server: http://{addr}
contexts:
- name: kubesim
  context:
    cluster: kubesim
    user: kubesim
    namespace: default
users:
- name: kubesim
  user: {{}}
"
    )
}
