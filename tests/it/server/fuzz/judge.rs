//! Sends what was made, and says what is wrong with the answer.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::requests::Attempt;

/// No answer takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long frames may have an effect.
const MOMENT: Duration = Duration::from_millis(20);

/// What comes first for those who expect leave to go on.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What was seen of an answer.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Counts it: `HTTP 200`, `gRPC 3`.
    pub kind: String,
    /// What must not be.
    pub wrong: Option<String>,
    /// Page tokens and etags in it.
    pub seen: Vec<String>,
}

/// Sends it to the server at `address`, over `two` if that is a well-made HTTP/2 client.
pub async fn judge(address: &str, two: &mut Option<Two>, attempt: Attempt) -> Verdict {
    let judged = async {
        match attempt {
            Attempt::One(bytes) => one(address, &bytes).await,
            Attempt::Frames(bytes) => frames(address, &bytes).await,
            Attempt::Two {
                path,
                headers,
                body,
            } => {
                let client = match two.take() {
                    Some(client) if !client.0.is_closed() => client,
                    _ => Two::connect(address).await,
                };
                call(two.insert(client), &path, &headers, body).await
            }
        }
    };
    timeout(PATIENCE, judged).await.unwrap_or_else(|_| Verdict {
        kind: "silence".to_owned(),
        wrong: Some("no answer".to_owned()),
        seen: Vec::new(),
    })
}

async fn frames(address: &str, bytes: &[u8]) -> Verdict {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // It may hang up on the way.
    let sent = timeout(Duration::from_secs(5), stream.write_all(bytes)).await;
    let mut answer = [0; 4096];
    while matches!(timeout(MOMENT, stream.read(&mut answer)).await, Ok(Ok(1..))) {}
    Verdict {
        kind: format!(
            "frames {}",
            if matches!(sent, Ok(Ok(()))) {
                "taken"
            } else {
                "cut off"
            }
        ),
        ..Verdict::default()
    }
}

async fn one(address: &str, bytes: &[u8]) -> Verdict {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let mut answer = Vec::new();
    let mut sending = std::pin::pin!(write.write_all(bytes));
    let mut sent = false;
    loop {
        tokio::select! {
            _ = &mut sending, if !sent => sent = true,
            count = read.read_buf(&mut answer) => {
                if let Some(rest) = answer.strip_prefix(CONTINUE) {
                    answer = rest.to_vec();
                }
                if !matches!(count, Ok(1..)) || is_whole(&answer) {
                    break;
                }
            }
        }
    }
    let status = answer
        .strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let Some(status) = status.map(|digits| String::from_utf8_lossy(digits).into_owned()) else {
        return Verdict {
            kind: "HTTP closed".to_owned(),
            // HTTP/1.0 and HTTP/2 are answered as such.
            ..Verdict::default()
        };
    };
    let body = end_of_head(&answer).map_or(&[][..], |end| &answer[end..]);
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let mut seen = Vec::new();
    if let Some(json) = &json {
        tokens(json, &mut seen);
    }
    Verdict {
        wrong: refused_wrongly(&status, json.as_ref())
            .map(|why| format!("{why}: {}", String::from_utf8_lossy(&answer))),
        kind: format!("HTTP {status}"),
        seen,
    }
}

/// What a refusal must not be.
fn refused_wrongly(status: &str, json: Option<&Value>) -> Option<String> {
    let number: u16 = status.parse().ok()?;
    if [500, 502, 503].contains(&number) {
        return Some("the server says that it is broken".to_owned());
    }
    let code = json?.get("code")?.as_i64()?;
    let mapped = hindsight_runtime::error::http_status(i32::try_from(code).unwrap_or_default());
    // Of a body that is too large, and of one that is not JSON, the status says more than the code.
    (number != mapped && ![413, 415].contains(&number) && number >= 400)
        .then(|| format!("{code} is not {number}"))
}

fn end_of_head(answer: &[u8]) -> Option<usize> {
    Some(answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4)
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = end_of_head(answer) else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + length)
}

/// Everything in an answer that a later request may give back.
fn tokens(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "etag" || name == "next_page_token" => {
                        found.push(text.to_owned());
                    }
                    _ => tokens(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| tokens(item, found)),
        _ => {}
    }
}

/// A well-made HTTP/2 client.
#[derive(Debug)]
pub struct Two(conn::http2::SendRequest<Full<Bytes>>);

impl Two {
    async fn connect(address: &str) -> Self {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let shaken = conn::http2::handshake(TokioExecutor::new(), io).await;
        let (sender, connection) = shaken.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }
}

async fn call(two: &mut Two, path: &str, headers: &[(String, Vec<u8>)], body: Vec<u8>) -> Verdict {
    let mut request = Request::post(format!("http://localhost{path}"));
    for (name, value) in headers {
        request = request.header(name, value.as_slice());
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let broken = |error: hyper::Error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        Verdict {
            kind: "gRPC broken off".to_owned(),
            wrong: Some(format!("the stream broke off: {error}: {source:?}")),
            seen: Vec::new(),
        }
    };
    let answered = match two.0.send_request(request).await {
        Ok(answered) => answered,
        Err(error) => return broken(error),
    };
    let (parts, body) = answered.into_parts();
    let body = match body.collect().await {
        Ok(body) => body,
        Err(error) => return broken(error),
    };
    let status = parts.headers.get("grpc-status").cloned();
    let status = status.or_else(|| body.trailers()?.get("grpc-status").cloned());
    let code = status.map(|status| status.to_str().unwrap().to_owned());
    let message = parts.headers.get("grpc-message");
    let wrong = match (parts.status.as_u16(), code.as_deref()) {
        (200, Some("2" | "13" | "14" | "15")) => Some("the server says that it is broken"),
        (200, Some(_)) | (404 | 415 | 431 | 501, _) => None,
        _ => Some("no status of gRPC"),
    };
    Verdict {
        kind: format!("gRPC {}", code.unwrap_or_else(|| parts.status.to_string())),
        wrong: wrong.map(|why| format!("{why}: {} {message:?}", parts.status)),
        seen: Vec::new(),
    }
}
