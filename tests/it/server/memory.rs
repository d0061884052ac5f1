//! What requests and answers take of the server's memory, whoever sends them and however slowly.
//!
//! `make flood` plays the same with hundreds of connections.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_client::{Client, Options};
use hindsight_proto::{
    v1::{UpsertRequest, upsert_outcome::Outcome},
    v1alpha2 as pb,
};
use hyper::Request;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};
use tonic::Code;

use super::users;
use crate::support::{
    Database, TestServer,
    frames::{CREATE, LARGE, LIST, Raw, Sent, bomb, field, framed, unfinished},
    http::Http,
    process::hindsight,
};

const SOON: Duration = Duration::from_secs(10);
/// The most that a server may hold, whatever is sent to it.
const MOST_MIB: u64 = 300;

/// A server process that knows `ann` and `bob`.
struct Process {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Process {
    fn start(database: &Database, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let users = users(&folder, &[("ann", "admin"), ("bob", "admin")]);
        let mut child = hindsight()
            .args(["serve", "--db", &database.url(), "--log-format", "json"])
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "off"])
            .args(["--auth", "tokens", "--auth-tokens-file", &users])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the server starts").unwrap();
            let entry: Value = serde_json::from_str(&line).unwrap();
            if let Some(address) = entry["address"].as_str() {
                break address.to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// The most memory that it ever held.
    fn most_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() / 1024
    }

    #[track_caller]
    fn is_small(&self) {
        let most = self.most_mib();
        assert!(most < MOST_MIB, "{most} MiB");
    }

    fn client(&self, user: &str) -> Client {
        let options = Options {
            token: Some(user.into()),
            ..Options::new(format!("http://{}", self.address))
        };
        Client::new(&options).unwrap()
    }

    /// Stores a record as this user.
    async fn store(&self, user: &str, id: &str, value: Vec<u8>) {
        let mut rpc = self.client(user).rpc();
        let result = pb::Result {
            name: "ci/results/r".to_owned(),
            ..pb::Result::default()
        };
        let request = pb::CreateResultRequest {
            result: Some(result),
            ..Default::default()
        };
        drop(rpc.create_result(request).await);
        let record = pb::Record {
            name: format!("ci/results/r/records/{id}"),
            data: Some(pb::Any {
                r#type: "blob".to_owned(),
                value: value.into(),
            }),
            ..pb::Record::default()
        };
        let request = pb::CreateRecordRequest {
            record: Some(record),
            ..Default::default()
        };
        rpc.create_record(request).await.unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The code of an answer and what it says, if it comes soon.
async fn code(sent: Sent) -> Option<(i32, String)> {
    let whole = async {
        let answer = sent.answer.await.ok()?;
        let (head, mut body) = answer.into_parts();
        while let Some(part) = body.data().await {
            let part = part.ok()?;
            drop(body.flow_control().release_capacity(part.len()));
        }
        let trailers = body.trailers().await.ok()?.unwrap_or_default();
        let of = |name: &str| {
            let value = head.headers.get(name).or_else(|| trailers.get(name));
            value.map(|value| value.to_str().unwrap_or_default().to_owned())
        };
        let code = of("grpc-status")?.parse().ok()?;
        Some((code, of("grpc-message").unwrap_or_default()))
    };
    tokio::time::timeout(SOON, whole).await.ok().flatten()
}

/// Sends bodies that never end on so many connections, 40 on each, and holds them until told.
async fn stalled(address: &str, connections: usize, token: Option<&'static str>) -> JoinSet<Raw> {
    let body = unfinished();
    let packed = bomb(LARGE);
    let mut sending = JoinSet::new();
    let mut open = JoinSet::new();
    for _ in 0..connections {
        let mut raw = Raw::connect(address, 0).await;
        for n in 0..40 {
            let gzip = n % 2 == 1;
            let Some(mut sent) = raw.call(CREATE, token, gzip).await else {
                break;
            };
            let bytes = if gzip { packed.clone() } else { body.clone() };
            sending.spawn(async move {
                sent.push(bytes, Duration::from_secs(2)).await;
                sent
            });
        }
        open.spawn(async move { raw });
    }
    let sent = sending.join_all().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(sent);
    open
}

#[tokio::test]
async fn who_is_not_known_is_refused_before_their_body_comes() {
    let database = Database::sqlite();
    let folder = tempfile::tempdir().unwrap();
    let users = users(&folder, &[("ann", "admin")]);
    let more = [("auth", "tokens"), ("auth_tokens_file", users.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut raw = Raw::connect(address, 1 << 20).await;
    for path in [
        CREATE,
        LIST,
        "/hindsight.v1.Ingest/Upsert",
        "/hindsight.v1.Queries/Aggregate",
        "/no.such.Service/Method",
    ] {
        for token in [None, Some("eve")] {
            let sent = raw.call(path, token, false).await.unwrap();
            let (code, says) = code(sent).await.expect("it does not wait for a body");
            assert_eq!(code, 16, "{path}: {says}");
        }
    }
    for path in [
        "/apis/results.tekton.dev/v1alpha2/parents/a/results",
        "/%61pis/x",
        "/x",
    ] {
        let request = Request::post(format!("http://localhost{path}"));
        let sent = raw.send(request, Some("eve")).await.unwrap();
        let answer = tokio::time::timeout(SOON, sent.answer).await.unwrap();
        assert_eq!(answer.unwrap().status(), 401, "{path}");
    }
    let mut http = Http::one(&server.url).await;
    assert_eq!(http.send("GET", "/healthz", &[], "").await.status, 200);
    // Anybody may ask how the server is, in few words.
    let health = "/grpc.health.v1.Health/Check";
    let mut short = raw.call(health, None, false).await.unwrap();
    short.push(framed(0, b""), SOON).await;
    short.end();
    assert_eq!(code(short).await.unwrap().0, 0);
    let mut long = raw.call(health, None, false).await.unwrap();
    long.push(framed(0, &[0; 5000]), SOON).await;
    assert_eq!(code(long).await.unwrap().0, 8);
    drop((raw, http));
    server.stop().await;
}

#[tokio::test]
async fn what_strangers_send_takes_no_memory() {
    let database = Database::sqlite();
    let server = Process::start(&database, &[]);
    for token in [None, Some("eve")] {
        stalled(&server.address, 4, token).await;
    }
    let mut raw = Raw::connect(&server.address, 0).await;
    for _ in 0..500 {
        let Some(mut sent) = raw.call(CREATE, None, false).await else {
            break;
        };
        sent.push(framed(0, &[0; 100]), SOON).await;
        sent.reset();
    }
    server.store("bob", "r", b"{}".to_vec()).await;
    server.is_small();
}

#[tokio::test]
async fn heads_that_never_end_are_cut_off_before_they_fill_the_memory() {
    let database = Database::sqlite();
    let server = Process::start(&database, &[]);
    let head = format!(
        "GET /healthz HTTP/1.1\r\nhost: h\r\nx: {}",
        "a".repeat(400 << 10)
    );
    let head: Arc<[u8]> = head.into_bytes().into();
    let mut sending = JoinSet::new();
    for _ in 0..400 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        let head = Arc::clone(&head);
        sending.spawn(async move {
            let sent = stream.write_all(&head).await;
            // Nothing is answered before the head ends.
            let mut answer = [0];
            let end = stream.read(&mut answer);
            sent.is_err() || tokio::time::timeout(SOON, end).await.is_ok()
        });
    }
    let cut = sending
        .join_all()
        .await
        .into_iter()
        .filter(|cut| *cut)
        .count();
    assert!(cut > 250, "{cut} of 400 are cut off; some 80 have room");
    server.store("bob", "r", b"{}".to_vec()).await;
    server.is_small();
}

#[tokio::test]
async fn one_caller_whose_bodies_stall_leaves_memory_to_others() {
    let database = Database::sqlite();
    let server = Process::start(&database, &["--client-timeout", "5s"]);
    let (open, ()) = tokio::join!(stalled(&server.address, 4, Some("ann")), async {
        for n in 0..10 {
            let began = Instant::now();
            server
                .store("bob", &format!("r{n}"), vec![b'x'; 1 << 20])
                .await;
            assert!(began.elapsed() < SOON);
        }
    });
    drop(open);
    server.is_small();
}

#[tokio::test]
async fn answers_that_are_not_taken_stay_within_the_memory_of_their_caller() {
    let database = Database::sqlite();
    let server = Process::start(&database, &["--client-timeout", "3s"]);
    for n in 0..28 {
        server
            .store("ann", &format!("r{n}"), vec![b'x'; 1 << 20])
            .await;
    }
    let request = framed(0, &field(1, b"ci/results/r"));
    let mut raw = Raw::connect(&server.address, 0).await;
    let mut calls = Vec::new();
    for _ in 0..30 {
        let mut sent = raw.call(LIST, Some("ann"), false).await.unwrap();
        sent.push(request.clone(), SOON).await;
        sent.end();
        calls.push(sent);
    }
    let list = pb::ListRecordsRequest {
        parent: "ci/results/r".to_owned(),
        page_size: 2,
        ..pb::ListRecordsRequest::default()
    };
    for _ in 0..5 {
        let mut rpc = server.client("bob").rpc();
        let page = rpc.list_records(list.clone()).await.unwrap().into_inner();
        assert_eq!(page.records.len(), 2);
    }
    // What was not taken is let go, so that its caller is answered again.
    let mut rpc = server.client("ann").rpc();
    rpc.list_records(list).await.unwrap();
    drop(calls);
    server.is_small();
}

#[tokio::test]
async fn a_request_counts_as_in_flight_until_its_answer_is_taken() {
    let database = Database::sqlite();
    let folder = tempfile::tempdir().unwrap();
    let users = users(&folder, &[("ann", "admin")]);
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", users.as_str()),
        ("caller_max_requests", "1"),
        ("client_timeout", "2s"),
    ];
    let open = TestServer::start(&database).await;
    open.given_record("ci/results/r/records/a", "blob", &vec![b'x'; 1 << 20])
        .await;
    open.stop().await;
    let server = TestServer::start_with(&database, &more).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut raw = Raw::connect(address, 0).await;
    let request = framed(0, &field(1, b"ci/results/r"));
    let mut stuck = raw.call(LIST, Some("ann"), false).await.unwrap();
    stuck.push(request.clone(), SOON).await;
    stuck.end();
    let (head, _body) = (&mut stuck.answer).await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let options = Options {
        token: Some("ann".into()),
        ..Options::new(&server.url)
    };
    let mut rpc = Client::new(&options).unwrap().rpc();
    let get = || pb::GetResultRequest {
        name: "ci/results/r".to_owned(),
    };
    let refused = rpc.get_result(get()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let began = Instant::now();
    while rpc.get_result(get()).await.is_err() {
        assert!(began.elapsed() < SOON, "it is let go");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn unary_calls_that_do_not_go_on_are_given_up() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("client_timeout", "300ms")]).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut raw = Raw::connect(address, 1 << 20).await;
    let whole = framed(0, b"\n\x02ci");
    for sent in [0, 3, 7, whole.len()] {
        let mut call = raw.call(LIST, None, false).await.unwrap();
        call.push(whole.slice(..sent), SOON).await;
        let (code, says) = code(call).await.expect("it does not wait for ever");
        assert_eq!(code, 4, "{says}");
        assert!(says.contains("client_timeout"), "{says}");
    }
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn upserts_pay_like_calls() {
    let database = Database::sqlite();
    let folder = tempfile::tempdir().unwrap();
    let users = users(&folder, &[("ann", "admin"), ("bob", "admin")]);
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", users.as_str()),
        ("caller_max_rate", "10"),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let rpc = |user: &str| {
        let options = Options {
            token: Some(user.into()),
            ..Options::new(&server.url)
        };
        Client::new(&options).unwrap()
    };
    let requests = (0..25).map(|id| UpsertRequest {
        id,
        record: Some(pb::Record {
            name: format!("ci/results/r/records/{id}"),
            data: Some(pb::Any {
                r#type: "t".to_owned(),
                value: b"{}".as_slice().into(),
            }),
            ..pb::Record::default()
        }),
        ..UpsertRequest::default()
    });
    let requests: Vec<_> = requests.collect();
    let began = Instant::now();
    let mut ingest = rpc("ann").ingest();
    let answers = ingest.upsert(tokio_stream::iter(requests)).await.unwrap();
    let mut answers = answers.into_inner();
    let mut stored = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        for outcome in answer.outcomes {
            assert!(matches!(outcome.outcome, Some(Outcome::Stored(_))));
            stored += 1;
        }
    }
    assert_eq!(
        stored, 25,
        "a stream is held back, and nothing of it refused"
    );
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "ten at once, and ten a second"
    );
    // Streams of one caller are counted.
    let mut open = Vec::new();
    let refused = loop {
        let silent = tokio_stream::pending::<UpsertRequest>();
        match rpc("bob").ingest().upsert(silent).await {
            Ok(stream) => open.push(stream),
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert_eq!(open.len(), 32);
    drop(open);
    server.stop().await;
}

#[tokio::test]
async fn a_record_that_outgrew_messages_does_not_end_lists() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for (id, size) in [("a", 10), ("b", 3 << 20), ("c", 10)] {
        let name = format!("ci/results/r/records/{id}");
        server.given_record(&name, "blob", &vec![b'x'; size]).await;
    }
    server.stop().await;
    let server = TestServer::start_with(&database, &[("max_message_bytes", "2MiB")]).await;
    let request = pb::ListRecordsRequest {
        parent: "ci/results/r".to_owned(),
        order_by: "create_time asc".to_owned(),
        ..pb::ListRecordsRequest::default()
    };
    let page = server
        .rpc()
        .list_records(request)
        .await
        .unwrap()
        .into_inner();
    let sizes = page.records.iter().map(|record| {
        let data = record.data.as_ref().unwrap();
        (data.r#type.as_str(), data.value.len())
    });
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [("blob", 10), ("blob", 0), ("blob", 10)]
    );
    let refused = server
        .get_record("ci/results/r/records/b")
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let says = refused.message();
    assert!(says.contains("`ci/results/r/records/b` has 31"), "{says}");
    let mut http = Http::one(&server.url).await;
    let reply = http.get("ci/results/r/records/b", &[]).await;
    assert_eq!(reply.status, 413, "{}", reply.text());
    drop(http);
    server.stop().await;
}
