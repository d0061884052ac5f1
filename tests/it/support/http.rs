//! A plain HTTP client: one connection, whole answers, nothing interpreted.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, Response, body::Incoming, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::net::TcpStream;

pub const PREFIX: &str = "/apis/results.tekton.dev/v1alpha2/parents";

/// One connection, which is never opened again.
#[derive(Debug)]
pub enum Http {
    One(conn::http1::SendRequest<Full<Bytes>>),
    Two(conn::http2::SendRequest<Full<Bytes>>),
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

async fn connect(url: &str) -> TokioIo<TcpStream> {
    let address = url.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    TokioIo::new(stream)
}

impl Http {
    pub async fn one(url: &str) -> Self {
        let (sender, connection) = conn::http1::handshake(connect(url).await).await.unwrap();
        tokio::spawn(connection);
        Self::One(sender)
    }

    /// Speaks HTTP/2 from the first byte.
    pub async fn two(url: &str) -> Self {
        let io = connect(url).await;
        let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), io)
            .await
            .unwrap();
        tokio::spawn(connection);
        Self::Two(sender)
    }

    /// Sends one request for exactly this target.
    pub async fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let target = match self {
            Self::One(_) => target.to_owned(),
            Self::Two(_) => format!("http://localhost{target}"),
        };
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(target);
        if let Self::One(_) = self {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let answer: Response<Incoming> = match self {
            Self::One(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
            Self::Two(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
        };
        let (parts, body) = answer.into_parts();
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    /// Asks for a path below the parents, with a query that is encoded here.
    pub async fn get(&mut self, path: &str, query: &[(&str, &str)]) -> Reply {
        self.send("GET", &target(path, query), &[], "").await
    }

    /// Sends JSON to a path below the parents.
    pub async fn put(&mut self, method: &str, path: &str, body: &Value) -> Reply {
        let headers = [("content-type", "application/json")];
        self.send(method, &target(path, &[]), &headers, body.to_string())
            .await
    }
}

/// A path below the parents, with its query encoded.
pub fn target(path: &str, query: &[(&str, &str)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let query: Vec<_> = query
        .iter()
        .map(|(key, value)| format!("{}={}", encode(key), encode(value)))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{PREFIX}/{path}{mark}{}", query.join("&"))
}
