//! SIGTERM under load: what was acknowledged stays, what was sent is answered, and whoever comes
//! later is refused cleanly.
//!
//! Each writer tells apart a call that was answered, one that was never sent, and one that was cut
//! off, which must not be. It opens a new connection whenever the server gives up the old one,
//! until none is taken.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{StreamExt as _, future::join_all, stream};
use hindsight_client::{Client, Options};
use hindsight_proto::{
    Message as _,
    v1::{UpsertRequest, upsert_outcome::Outcome},
    v1alpha2 as pb,
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, Version,
    body::Incoming,
    client::conn::{self, TrySendError},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    task::JoinHandle,
    time::timeout,
};
use tonic::Code;

use crate::support::{
    Database, TestServer, each_database,
    http::{Http, target},
    program::Program,
};

/// Writers on a connection of HTTP/1.1 each.
const PLAIN: usize = 8;
/// Connections of HTTP/2, and how many writers share each.
const SHARED: (usize, usize) = (3, 6);
const STREAMS: usize = 2;
/// How many writes are acknowledged before the signal.
const BEFORE: usize = 400;
/// Whoever has not answered after so long does not.
const PATIENCE: Duration = Duration::from_secs(30);
const TYPE: &str = "tekton.dev/v1.TaskRun";

type Records = BTreeMap<String, Bytes>;

fn payload(name: &str) -> Bytes {
    let script = "make test; ".repeat(100);
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"script":"{script}"}}}}"#).into()
}

fn record(name: &str) -> pb::Record {
    let data = pb::Any {
        r#type: TYPE.to_owned(),
        value: payload(name),
    };
    pb::Record {
        name: name.to_owned(),
        data: Some(data),
        ..pb::Record::default()
    }
}

#[derive(Default)]
struct Load {
    acknowledged: AtomicUsize,
    news: Notify,
    told: AtomicBool,
    after: AtomicUsize,
}

impl Load {
    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        if self.told.load(Ordering::SeqCst) {
            self.after.fetch_add(1, Ordering::SeqCst);
        }
        self.news.notify_one();
    }
}

/// What is spoken over a connection.
enum Protocol {
    Plain(conn::http1::SendRequest<Full<Bytes>>),
    Grpc(conn::http2::SendRequest<Full<Bytes>>),
}

/// A connection, and how it ends.
struct Line {
    speech: Protocol,
    end: JoinHandle<hyper::Result<()>>,
}

impl Line {
    /// `None` if nobody takes connections any more.
    async fn open(url: &str, grpc: bool) -> Option<Self> {
        let stream = match TcpStream::connect(url.strip_prefix("http://").unwrap()).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
            Err(error) => panic!("a connection is refused in another way: {error}"),
        };
        stream.set_nodelay(true).unwrap();
        let io = TokioIo::new(stream);
        Some(if grpc {
            let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), io)
                .await
                .expect("a connection that was taken is used");
            Self {
                speech: Protocol::Grpc(sender),
                end: tokio::spawn(connection),
            }
        } else {
            let (sender, connection) = conn::http1::handshake(io).await.unwrap();
            Self {
                speech: Protocol::Plain(sender),
                end: tokio::spawn(connection),
            }
        })
    }

    /// The connection ended without an error.
    async fn ended(self) {
        drop(self.speech);
        let end = self.end.await.unwrap();
        end.expect("the server ends connections in order");
    }
}

impl Protocol {
    fn again(&self) -> Self {
        match self {
            Self::Plain(_) => panic!("one connection of HTTP/1.1 serves one writer"),
            Self::Grpc(sender) => Self::Grpc(sender.clone()),
        }
    }

    /// Stores a record; `false` if the connection takes no more, and nothing was sent.
    async fn store(&mut self, name: &str) -> bool {
        let answer = match self {
            Self::Plain(sender) => {
                if sender.ready().await.is_err() {
                    return false;
                }
                sender.try_send_request(as_json(name)).await
            }
            Self::Grpc(sender) => {
                if sender.ready().await.is_err() {
                    return false;
                }
                sender.try_send_request(as_message(name)).await
            }
        };
        match answer {
            Ok(answer) => {
                stored(name, answer).await;
                true
            }
            Err(unsent) => {
                never_sent(name, unsent);
                false
            }
        }
    }
}

fn never_sent(name: &str, mut error: TrySendError<Request<Full<Bytes>>>) {
    let unsent = error.take_message().is_some();
    let error = error.into_error();
    assert!(unsent, "{name} was sent and not answered: {error:?}");
}

/// The whole answer says that it was stored.
async fn stored(name: &str, answer: Response<Incoming>) {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await;
    let body = body.unwrap_or_else(|error| panic!("the answer to {name} is cut off: {error:?}"));
    let said = body.trailers().and_then(|all| all.get("grpc-status"));
    let said = said.or_else(|| parts.headers.get("grpc-status")).cloned();
    let stored = match parts.version {
        Version::HTTP_2 => said.is_some_and(|status| status == "0"),
        _ => parts.status == 200,
    };
    let text = body.to_bytes();
    assert!(
        stored,
        "{name}: {parts:?} {}",
        String::from_utf8_lossy(&text)
    );
}

fn as_json(name: &str) -> Request<Full<Bytes>> {
    let (result, _) = name.rsplit_once("/records/").unwrap();
    let value = STANDARD.encode(payload(name));
    let body = json!({"name": name, "data": {"type": TYPE, "value": value}});
    Request::post(target(&format!("{result}/records"), &[]))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

fn as_message(name: &str) -> Request<Full<Bytes>> {
    let request = pb::CreateRecordRequest {
        record: Some(record(name)),
        ..pb::CreateRecordRequest::default()
    };
    let message = request.encode_to_vec();
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len()).unwrap());
    body.put_slice(&message);
    Request::post("http://localhost/tekton.results.v1alpha2.Results/CreateRecord")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(body.freeze()))
        .unwrap()
}

/// Writes one record after the other while the connection takes them.
async fn write(mut speech: Protocol, writer: &str, from: usize, load: &Load) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("ci/results/w/records/{writer}-{}", from + names.len());
        if !speech.store(&name).await {
            return names;
        }
        load.acknowledge();
        names.push(name);
    }
}

/// Writers over one connection at a time, until nobody takes another.
async fn writers(url: String, own: usize, grpc: Option<usize>, load: Arc<Load>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(line) = Line::open(&url, grpc.is_some()).await {
        let from = all.len();
        let Some(many) = grpc else {
            let (speech, end) = (line.speech, line.end);
            all.extend(write(speech, &format!("plain{own}"), from, &load).await);
            end.await
                .unwrap()
                .expect("the server ends connections in order");
            continue;
        };
        let writing = (0..many).map(|n| {
            let (speech, load) = (line.speech.again(), Arc::clone(&load));
            async move { write(speech, &format!("shared{own}-{n}"), from, &load).await }
        });
        all.extend(join_all(writing).await.into_iter().flatten());
        line.ended().await;
    }
    all
}

/// A stream of upserts, as many under way as the server takes. It ends when the server says so.
async fn streamed(url: String, own: usize, load: Arc<Load>) -> Vec<String> {
    let name = move |n: u64| format!("ci/results/w/records/stream{own}-{n}");
    let requests = stream::iter(0..).then(move |n| async move {
        tokio::time::sleep(Duration::from_micros(500)).await;
        UpsertRequest {
            id: n,
            record: Some(record(&name(n))),
            ..UpsertRequest::default()
        }
    });
    let client = Client::new(&Options::new(url)).unwrap();
    let mut answers = client.ingest().upsert(requests).await.unwrap().into_inner();
    let mut names = Vec::new();
    loop {
        match answers.message().await {
            Ok(answer) => {
                for outcome in answer.expect("the server says why it stops").outcomes {
                    let stored = matches!(outcome.outcome, Some(Outcome::Stored(_)));
                    assert!(stored, "{outcome:?}");
                    load.acknowledge();
                    names.push(name(outcome.id));
                }
            }
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                let says = status.message();
                assert!(says.contains("the server is stopping"), "{status:?}");
                return names;
            }
        }
    }
}

async fn records(server: &TestServer) -> Records {
    let (mut all, mut token) = (Records::new(), String::new());
    loop {
        let request = pb::ListRecordsRequest {
            parent: "-/results/-".to_owned(),
            page_size: 1000,
            page_token: token,
            ..pb::ListRecordsRequest::default()
        };
        let reply = server.rpc().list_records(request).await.unwrap();
        let reply = reply.into_inner();
        let each = reply.records.into_iter();
        all.extend(each.map(|r| (r.name, r.data.unwrap().value)));
        token = reply.next_page_token;
        if token.is_empty() {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_loses_no_write_and_resets_no_connection() {
    for database in each_database().await {
        let url = database.url();
        let program = Program::start("serve", &["--db", &url, "--metrics-listen", "off"]).await;
        let result = pb::CreateResultRequest {
            result: Some(pb::Result {
                name: "ci/results/w".to_owned(),
                ..pb::Result::default()
            }),
            ..pb::CreateResultRequest::default()
        };
        let client = Client::new(&Options::new(&program.url)).unwrap();
        client.rpc().create_result(result).await.unwrap();

        let load = Arc::new(Load::default());
        let (to, shared) = (|| program.url.clone(), || Arc::clone(&load));
        let mut writing: Vec<JoinHandle<Vec<String>>> = Vec::new();
        for n in 0..PLAIN {
            writing.push(tokio::spawn(writers(to(), n, None, shared())));
        }
        for n in 0..SHARED.0 {
            writing.push(tokio::spawn(writers(to(), n, Some(SHARED.1), shared())));
        }
        for n in 0..STREAMS {
            writing.push(tokio::spawn(streamed(to(), n, shared())));
        }
        while load.acknowledged.load(Ordering::SeqCst) < BEFORE {
            load.news.notified().await;
        }
        load.told.store(true, Ordering::SeqCst);
        let (code, said) = program.terminate().await;
        let mut acknowledged = Vec::new();
        for writer in writing {
            acknowledged.extend(writer.await.unwrap());
        }
        assert_eq!(code, Some(0), "{said:#?}");
        assert!(
            !said.iter().any(|line| line.contains("grace is over")),
            "{said:#?}"
        );
        let after = load.after.load(Ordering::SeqCst);
        assert!(after > 0, "nothing was under way when the signal came");

        let server = TestServer::start(&database).await;
        let kept = records(&server).await;
        for name in &acknowledged {
            assert_eq!(kept.get(name), Some(&payload(name)), "{name}");
        }
        eprintln!(
            "{} acknowledged, {after} of them after the signal; {} kept",
            acknowledged.len(),
            kept.len()
        );
        server.stop().await;
        database.remove().await;
    }
}

async fn connect(server: &TestServer) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Everything that comes until the server closes in order.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    read.expect("the server closes").expect("without a reset");
    text
}

#[tokio::test]
async fn requests_that_are_on_their_way_when_the_server_stops_are_answered() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_connections", "2")]).await;
    let path = target("ci/results", &[]);
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
    // One was answered before, one is half there, one waits until another goes.
    let mut known = connect(&server).await;
    known
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = [0; 15];
    known.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    known.write_all(head.as_bytes()).await.unwrap();
    let mut half = connect(&server).await;
    half.write_all(head.as_bytes()).await.unwrap();
    let mut waiting = connect(&server).await;
    waiting
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .unwrap();

    server.tell_to_stop();
    let late = async {
        while TcpStream::connect(server.url.strip_prefix("http://").unwrap())
            .await
            .is_ok()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, late).await.expect("nobody else is taken");
    for stream in [&mut known, &mut half] {
        stream.write_all(b"\r\n").await.unwrap();
    }
    for stream in [known, half, waiting] {
        let answer = rest(stream).await;
        let (_, last) = answer.rsplit_once("HTTP/1.1 ").unwrap_or(("", &answer));
        assert!(answer.contains("200 OK"), "{answer}");
        assert!(last.contains("connection: close"), "{answer}");
    }
    let stopped = timeout(PATIENCE, server.stop()).await;
    assert!(stopped.is_ok(), "nobody is left");
}

#[tokio::test]
async fn a_server_stops_soon_although_connections_are_kept_for_later() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("shutdown_grace", "10m")]).await;
    let mut one = Http::one(&server.url).await;
    let mut two = Http::two(&server.url).await;
    for http in [&mut one, &mut two] {
        assert_eq!(http.get("ci/results", &[]).await.status, 200);
    }
    let silent = connect(&server).await;
    let stopped = timeout(PATIENCE, server.stop()).await;
    assert!(stopped.is_ok(), "the server waits for idle connections");
    drop((silent, one, two));
}
