//! A flood: bodies that stall, bombs of gzip, answers that are not taken and requests that are reset,
//! from strangers and from one caller, while others ask for little.

use std::{
    future::poll_fn,
    io::Read as _,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::Response;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    PACE, SMALL, load, middle, p95,
    raw::{CREATE, LARGE, LIST, Raw, bomb, field, framed, unfinished},
    rounded,
    server::{Database, Server},
    users,
};

/// The arguments of the processes that flood and that swallow a flood.
pub const FLOOD: &str = "flooding";
pub const SINK: &str = "sink";
/// Requests on each connection.
const STREAMS: usize = 40;
/// How long a flood goes on at most.
const LONGEST: Duration = Duration::from_secs(120);
const TURNS: usize = 3;
const SPAN: Duration = Duration::from_secs(5);
/// The most that the server may hold.
const MOST_MIB: u64 = 300;
/// The one caller who floods.
const CALLER: &str = "max";

const KINDS: [&str; 4] = ["stalled", "bombs", "windows", "resets"];

/// Floods `address` until the input ends; then says how many requests were sent, and how many
/// were answered at once.
pub async fn flood(address: &str, connections: usize, kind: &str, token: Option<&'static str>) {
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    std::thread::spawn(move || {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        until.store(true, Ordering::Relaxed);
    });
    let body = match kind {
        "stalled" => unfinished(),
        "bombs" => bomb(LARGE),
        "windows" => framed(0, &field(1, b"-/results/-")),
        _ => framed(0, &[0; 64]),
    };
    let sent = Arc::new(AtomicU64::new(0));
    let answered = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for _ in 0..connections {
        let (address, kind, body) = (address.to_owned(), kind.to_owned(), body.clone());
        let (over, sent) = (Arc::clone(&over), Arc::clone(&sent));
        let answered = Arc::clone(&answered);
        all.spawn(async move {
            let began = Instant::now();
            while !over.load(Ordering::Relaxed) && began.elapsed() < LONGEST {
                let mut raw = Raw::connect(&address, 0).await;
                let mut open = JoinSet::new();
                for _ in 0..STREAMS {
                    let path = if kind == "windows" { LIST } else { CREATE };
                    let Some(mut call) = raw.call(path, token, kind == "bombs").await else {
                        break;
                    };
                    sent.fetch_add(1, Ordering::Relaxed);
                    let (kind, body) = (kind.clone(), body.clone());
                    open.spawn(async move {
                        call.push(body, Duration::from_secs(5)).await;
                        match kind.as_str() {
                            "windows" => call.end(),
                            "resets" => call.reset(),
                            _ => {}
                        }
                        let soon = Duration::from_millis(100);
                        let answered = timeout(soon, &mut call.answer).await.is_ok();
                        (call, answered)
                    });
                }
                let held = open.join_all().await;
                let now = held.iter().filter(|(_, is_answered)| *is_answered).count();
                answered.fetch_add(now as u64, Ordering::Relaxed);
                let held_for = if kind == "resets" { 100 } else { 5_000 };
                for _ in 0..held_for / 100 {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    sleep(Duration::from_millis(100)).await;
                }
                drop(held);
            }
        });
    }
    all.join_all().await;
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    println!("{} {}", count(&sent), count(&answered));
}

/// Refuses whatever comes, and does nothing else.
pub async fn sink() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (end, mut ended) = oneshot::channel();
    std::thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        end.send(()).ok();
    });
    loop {
        let (stream, _) = tokio::select! {
            _ = &mut ended => return,
            accepted = listener.accept() => accepted.unwrap(),
        };
        tokio::spawn(async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else {
                return;
            };
            while let Some(Ok((_request, mut answer))) = connection.accept().await {
                let head = Response::builder().header("grpc-status", "16");
                drop(answer.send_response(head.body(()).unwrap(), true));
            }
            poll_fn(|cx| connection.poll_closed(cx)).await.ok();
        });
    }
}

/// A process of this program, which ends with its input.
struct Role(Child);

impl Role {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("nice");
        command
            .args(["-n", "19"])
            .arg(std::env::current_exe().unwrap());
        command.args(arguments).stdin(Stdio::piped());
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// What it says first.
    fn line(&mut self) -> String {
        let mut said = Vec::new();
        let out = self.0.stdout.as_mut().unwrap();
        let mut one = [0];
        while out.read(&mut one).unwrap() == 1 && one != *b"\n" {
            said.push(one[0]);
        }
        String::from_utf8(said).unwrap()
    }

    /// Ends it; what it said.
    fn stop(mut self) -> String {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Floods a server with so many connections in each way, from strangers and from one caller.
pub async fn floods(database: &Database, connections: usize, tell: &mut impl FnMut(Value)) {
    let folder = tempfile::tempdir().unwrap();
    let file = users(&folder, &[&SMALL[..], &[CALLER]].concat());
    let mut swallows = Role::start(&[SINK]);
    let sink = swallows.line();
    let connections = connections.to_string();
    for token in ["", CALLER] {
        for kind in KINDS {
            let flags = ["--auth", "tokens", "--auth-tokens-file", &file];
            let server = Server::start(database, &flags).await;
            let address = server.url().strip_prefix("http://").unwrap().to_owned();
            let small: Vec<_> = SMALL.iter().map(|name| server.client(Some(name))).collect();
            load::little(&small, PACE, SPAN / 5).await;
            let (mut beside_sink, mut beside, mut sent) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..TURNS {
                for (address, took) in [(&sink, &mut beside_sink), (&address, &mut beside)] {
                    let flood = Role::start(&[FLOOD, address, &connections, kind, token]);
                    sleep(SPAN / 5).await;
                    took.push(p95(load::little(&small, PACE, SPAN).await));
                    sent.push(flood.stop());
                }
            }
            let mib = server.most_mib();
            let (alone, beside) = (middle(beside_sink), middle(beside));
            let from = if token.is_empty() {
                "strangers"
            } else {
                "one caller"
            };
            tell(json!({
                "bench": format!("flood_{kind}"), "from": from, "connections": connections,
                "sent_answered": sent, "most_mib": mib, "at_most_mib": MOST_MIB,
                "p95_ms_beside_sink": rounded(alone), "p95_ms": rounded(beside),
                "ratio": rounded(beside / alone), "at_most": 1.25,
            }));
            assert!(mib < MOST_MIB, "{kind} from {from}: {mib} MiB");
        }
    }
    swallows.stop();
}
