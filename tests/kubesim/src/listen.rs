//! The simulated server on a socket: HTTP/1.1, plain or over TLS, and kubeconfigs that lead to it.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{policy::ADMIN_TOKEN, service::SimService, sim::Sim, tls::Tls};

/// A simulated server that listens. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Listening {
    /// The address it was bound to.
    pub addr: SocketAddr,
    kubeconfig: PathBuf,
    /// Kubeconfigs of other users; they go when this does.
    others: Mutex<Vec<PathBuf>>,
    sim: Sim,
    tls: Option<Tls>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Sim {
    /// Listens on `addr`; port 0 takes any free port. Several listeners share the state.
    ///
    /// # Errors
    /// When the address cannot be bound, or the kubeconfig cannot be written.
    pub async fn listen(&self, addr: SocketAddr) -> io::Result<Listening> {
        self.listen_with(addr, false).await
    }

    /// The same over TLS, with a certificate of its own that its kubeconfigs trust.
    ///
    /// # Errors
    /// As `listen`, over TLS with a certificate that the kubeconfig trusts.
    pub async fn listen_tls(&self, addr: SocketAddr) -> io::Result<Listening> {
        self.listen_with(addr, true).await
    }

    async fn listen_with(&self, addr: SocketAddr, tls: bool) -> io::Result<Listening> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let tls = tls.then(|| Tls::new(addr)).transpose()?;
        let kubeconfig = write_kubeconfig(addr, tls.as_ref(), ADMIN_TOKEN)?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(accept(
            listener,
            self.service_for(None),
            tls.clone(),
            stop.clone(),
            tasks.clone(),
        ));
        tasks.close();
        Ok(Listening {
            addr,
            kubeconfig,
            others: Mutex::default(),
            sim: self.clone(),
            tls,
            stop,
            tasks,
        })
    }
}

impl Listening {
    /// A kubeconfig of a user who may do everything; it goes when this does.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig of this user, who may do what the policy allows once it is enforced. A service
    /// account is `system:serviceaccount:NAMESPACE:NAME`. It goes when this does.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_as(&self, user: &str) -> io::Result<PathBuf> {
        let token = format!("kubesim-token-of-{user}");
        self.sim.policy().token(&token, user, &[]);
        let path = write_kubeconfig(self.addr, self.tls.as_ref(), &token)?;
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.push(path.clone());
        Ok(path)
    }

    /// The text of the kubeconfig of a user who may do everything.
    pub fn kubeconfig_text(&self) -> String {
        kubeconfig_text(self.addr, self.tls.as_ref(), ADMIN_TOKEN)
    }

    /// A client that comes through the socket, with kube's own retries after 429, 503 and 504.
    ///
    /// # Errors
    /// When kube does not take the kubeconfig.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        let url: http::Uri = url(self.addr, self.tls.as_ref())
            .parse()
            .expect("a socket address makes a URL");
        let mut config = kube::Config::new(url);
        config.root_cert = self.tls.as_ref().map(|tls| vec![tls.certificate.to_vec()]);
        config.auth_info.token = Some(ADMIN_TOKEN.to_owned().into());
        kube::Client::try_from(config)
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
        let others = self
            .others
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for path in others.iter().chain([&self.kubeconfig]) {
            if let Err(error) = std::fs::remove_file(path) {
                let path = path.display();
                tracing::debug!(%error, "kubeconfig `{path}` was gone already");
            }
        }
    }
}

async fn accept(
    listener: TcpListener,
    service: SimService,
    tls: Option<Tls>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(shake(stream, service.clone(), tls.clone(), stop.clone()));
                }
                Err(error) => tracing::warn!(%error, "connection not accepted"),
            },
        }
    }
}

async fn shake(stream: TcpStream, service: SimService, tls: Option<Tls>, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection keeps its delay");
    }
    let Some(tls) = tls else {
        return serve(stream, service, stop).await;
    };
    tokio::select! {
        () = stop.cancelled() => {}
        shaken = tls.accept(stream) => match shaken {
            Ok(stream) => serve(stream, service, stop.clone()).await,
            Err(error) => tracing::debug!(%error, "a connection has no TLS"),
        },
    }
}

async fn serve<S>(stream: S, service: SimService, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
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

fn url(addr: SocketAddr, tls: Option<&Tls>) -> String {
    let scheme = if tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{addr}")
}

fn write_kubeconfig(addr: SocketAddr, tls: Option<&Tls>, token: &str) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = format!("kubesim-{}-{count}.kubeconfig", std::process::id());
    let path = std::env::temp_dir().join(file);
    std::fs::write(&path, kubeconfig_text(addr, tls, token))?;
    Ok(path)
}

fn kubeconfig_text(addr: SocketAddr, tls: Option<&Tls>, token: &str) -> String {
    let (url, trusted) = (url(addr, tls), tls.map(Tls::trusted).unwrap_or_default());
    format!(
        "apiVersion: v1
kind: Config
current-context: kubesim
clusters:
- name: kubesim
  cluster:
    server: {url}{trusted}
contexts:
- name: kubesim
  context:
    cluster: kubesim
    user: kubesim
    namespace: default
users:
- name: kubesim
  user:
    token: {token}
"
    )
}
