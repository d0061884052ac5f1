//! A receiver of events on loopback that answers, fails, hangs, resets, is slow or is away.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, Response, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

/// Everything has to come by then.
const PATIENCE: Duration = Duration::from_secs(90);

/// What it does with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Answers with this status, and these headers.
    Answer(u16, Vec<(&'static str, String)>),
    /// The same with 202, after this time.
    Slow(Duration),
    /// Takes the request and never answers.
    Hang,
    /// Closes the connection.
    Reset,
}

impl Act {
    pub fn status(status: u16) -> Self {
        Self::Answer(status, Vec::new())
    }
}

/// A request that was read.
#[derive(Debug, Clone)]
pub struct Got {
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub body: Value,
    /// Whether it was acknowledged.
    pub taken: bool,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub fn id(&self) -> &str {
        self.header("ce-id")
    }

    /// `started`, `finished` or `interrupted`.
    pub fn moment(&self) -> &str {
        self.header("ce-type").split('.').nth(3).unwrap()
    }

    /// The name of the run.
    pub fn run(&self) -> &str {
        self.body["customData"]["name"].as_str().unwrap_or_default()
    }
}

type Behaviour = Arc<dyn Fn(usize, &Got) -> Act + Send + Sync>;

pub struct Receiver {
    pub address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Receiver {
    /// One that does with each request, of which it is told the number, what `behaviour` says.
    pub async fn start(behaviour: impl Fn(usize, &Got) -> Act + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), None, behaviour).await
    }

    pub async fn at(
        address: SocketAddr,
        tls: Option<TlsAcceptor>,
        behaviour: impl Fn(usize, &Got) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let (seen, behaviour): (_, Behaviour) = (Arc::clone(&got), Arc::new(behaviour));
        let task = tokio::spawn(async move {
            // Connections end with it.
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (seen, behaviour) = (Arc::clone(&seen), Arc::clone(&behaviour));
                let tls = tls.clone();
                connections.spawn(async move {
                    match tls {
                        None => serve(socket, seen, behaviour).await,
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                serve(socket, seen, behaviour).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, got, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// All requests so far.
    pub fn all(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Those that it acknowledged.
    pub fn taken(&self) -> Vec<Got> {
        let all = self.all().into_iter();
        all.filter(|got| got.taken).collect()
    }

    /// All requests, once they are enough.
    pub async fn until(&self, enough: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let all = self.all();
                if enough(&all) {
                    return all;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let said = || {
            let all = self.all();
            let all: Vec<_> = all
                .iter()
                .map(|got| (got.id().to_owned(), got.taken))
                .collect();
            format!("{} requests: {all:?}", all.len())
        };
        waited.await.unwrap_or_else(|_| panic!("{}", said()))
    }

    /// Those that it acknowledged, once there are so many of different ids.
    pub async fn until_taken(&self, count: usize) -> Vec<Got> {
        self.until(|all| ids(all) >= count).await;
        self.taken()
    }
}

/// How many different events were acknowledged.
fn ids(all: &[Got]) -> usize {
    let taken = all.iter().filter(|got| got.taken);
    let ids: std::collections::HashSet<_> = taken.map(Got::id).collect();
    ids.len()
}

async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    seen: Arc<Mutex<Vec<Got>>>,
    behaviour: Behaviour,
) {
    let service = hyper::service::service_fn(move |request| {
        answer(request, Arc::clone(&seen), Arc::clone(&behaviour))
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // A client that goes away is no failure of the test.
    drop(served.await);
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Got>>>,
    behaviour: Behaviour,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let bytes = body
        .collect()
        .await
        .map_err(std::io::Error::other)?
        .to_bytes();
    let mut got = Got {
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap(),
        bytes,
        taken: false,
    };
    let act = {
        let mut seen = seen.lock().unwrap();
        let act = behaviour(seen.len(), &got);
        got.taken = match &act {
            Act::Answer(status, _) => (200..300).contains(status),
            Act::Slow(_) => true,
            Act::Hang | Act::Reset => false,
        };
        seen.push(got);
        act
    };
    let (status, headers) = match act {
        Act::Answer(status, headers) => (status, headers),
        Act::Slow(time) => {
            tokio::time::sleep(time).await;
            (202, Vec::new())
        }
        Act::Hang => std::future::pending().await,
        Act::Reset => return Err(std::io::Error::other("it resets")),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new("what it says".into())).unwrap())
}
