//! A client of HTTP/2 that does only what it is told: it grants no window, stops in the middle of a
//! body, or sends what unpacks to a thousand times as much.

use std::{future::poll_fn, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use h2::{
    Reason, SendStream,
    client::{self, ResponseFuture, SendRequest},
};
use hyper::Request;
use tokio::net::TcpStream;

/// The largest message of a server with default settings, less what it adds.
pub const LARGE: usize = 31 << 20;
/// A call whose body may be as large.
pub const CREATE: &str = "/tekton.results.v1alpha2.Results/CreateRecord";
pub const LIST: &str = "/tekton.results.v1alpha2.Results/ListRecords";

/// An HTTP/2 connection whose frames the test controls.
#[derive(Debug)]
pub struct Raw(SendRequest<Bytes>);

/// A request that was sent, or a part of it.
#[derive(Debug)]
pub struct Sent {
    pub answer: ResponseFuture,
    pub body: SendStream<Bytes>,
}

impl Raw {
    /// A connection to `address` that grants each stream this window.
    pub async fn connect(address: &str, window: u32) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut builder = client::Builder::new();
        builder.initial_window_size(window);
        let (sender, connection) = builder.handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends the head of a gRPC call.
    pub async fn call(&mut self, path: &str, token: Option<&str>, gzip: bool) -> Option<Sent> {
        let mut request = Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if gzip {
            request = request.header("grpc-encoding", "gzip");
        }
        self.send(request, token).await
    }

    /// Sends any head; nothing comes of it on a connection that is over.
    pub async fn send(
        &mut self,
        mut request: hyper::http::request::Builder,
        token: Option<&str>,
    ) -> Option<Sent> {
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        poll_fn(|cx| self.0.poll_ready(cx)).await.ok()?;
        let sent = self.0.send_request(request.body(()).unwrap(), false);
        let (answer, body) = sent.ok()?;
        Some(Sent { answer, body })
    }
}

impl Sent {
    /// Sends bytes as fast as the server takes them, for at most this long; says how many it took.
    pub async fn push(&mut self, bytes: Bytes, wait: Duration) -> usize {
        let mut left = bytes.clone();
        let pushing = async {
            while !left.is_empty() {
                self.body.reserve_capacity(left.len().min(16 << 10));
                match poll_fn(|cx| self.body.poll_capacity(cx)).await {
                    Some(Ok(room)) => {
                        let part = left.split_to(room.min(left.len()));
                        if self.body.send_data(part, false).is_err() {
                            return;
                        }
                    }
                    Some(Err(_)) | None => return,
                }
            }
        };
        drop(tokio::time::timeout(wait, pushing).await);
        bytes.len() - left.len()
    }

    pub fn end(&mut self) {
        drop(self.body.send_data(Bytes::new(), true));
    }

    pub fn reset(&mut self) {
        self.body.send_reset(Reason::CANCEL);
    }
}

pub fn framed(flag: u8, message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag][..], &length, message].concat().into()
}

/// A framed message of zeros, less its last byte.
pub fn unfinished() -> Bytes {
    let whole = framed(0, &vec![0; LARGE]);
    whole.slice(..whole.len() - 1)
}

/// A small message that unpacks to one of so many bytes.
pub fn bomb(bytes: usize) -> Bytes {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut gzip, &vec![0; bytes]).unwrap();
    framed(1, &gzip.finish().unwrap())
}

/// A field of protobuf that holds bytes.
pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        encoded.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
    encoded.extend(bytes);
    encoded
}
