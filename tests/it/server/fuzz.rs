//! Random requests by REST and gRPC to a server process: whatever comes, it does not panic, does not
//! call itself broken, does not grow, and answers the next one.
//!
//! Requests are made from the descriptors and spoilt on their way: names, filters, JSON, base64,
//! headers, protobuf, frames. A few thousand by default, always the same;
//! `HINDSIGHT_TEST_FUZZ_SECONDS` goes on for as long, with another seed each time or the one of
//! `HINDSIGHT_TEST_FUZZ_SEED` (`make fuzz-server`).

mod giants;
mod judge;
mod random;
mod requests;
mod valid;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use serde_json::Value;

use self::{random::Random, requests::TOKEN};
use super::users;
use crate::support::{
    Database,
    database::variable,
    http::{Http, target},
    process::hindsight,
};

const REQUESTS: u64 = 3_000;
const SEED: u64 = 20_260_301;
/// How many are under way at once.
const CALLERS: usize = 8;
/// The most that the server may ever hold, with messages of up to 1 MiB.
const MOST_MIB: u64 = 256;
/// How many tokens and etags are remembered.
const REMEMBERED: usize = 200;
/// More findings than this are not looked for.
const ENOUGH: usize = 10;

/// A server process, and what it logs that it should not.
struct Process {
    child: Child,
    address: String,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(database: &Database, folder: &tempfile::TempDir) -> Self {
        let users = users(folder, &[(TOKEN, "admin")]);
        let audit = folder.path().join("audit.jsonl").display().to_string();
        let mut child = hindsight()
            .args(["serve", "--db", &database.url(), "--log-format", "json"])
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "off"])
            .args(["--auth", "tokens", "--auth-tokens-file", &users])
            .args(["--audit-log", &audit, "--max-message-bytes", "1MiB"])
            .args(["--client-timeout", "300ms", "--scan-budget", "2000"])
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
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&complaints);
        std::thread::spawn(move || {
            // A panic is no JSON.
            let is_odd = |line: &String| !line.starts_with('{') || line.contains("\"ERROR\"");
            for line in lines.map_while(Result::ok).filter(is_odd) {
                heard.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            address,
            complaints,
        }
    }

    /// The most memory that it ever held.
    fn most_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() / 1024
    }

    /// An ordinary request by each protocol.
    async fn answers(&self) {
        let url = format!("http://{}", self.address);
        let mut http = Http::one(&url).await;
        let token = format!("Bearer {TOKEN}");
        let headers = [("authorization", token.as_str())];
        let path = target("ci/results", &[]);
        http.send("GET", &path, &headers, "").await.ok();
        let options = Options {
            token: Some(TOKEN.to_owned()),
            ..Options::new(&url)
        };
        let request = pb::ListResultsRequest {
            parent: "ci".to_owned(),
            ..pb::ListResultsRequest::default()
        };
        let mut rpc = Client::new(&options).unwrap().rpc();
        rpc.list_results(request).await.unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What all callers share.
struct Storm {
    seed: u64,
    address: String,
    end: Option<Instant>,
    next: AtomicU64,
    seen: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Vec<String>>,
}

impl Storm {
    fn goes_on(&self, index: u64) -> bool {
        let early = match self.end {
            Some(end) => Instant::now() < end,
            None => index < REQUESTS,
        };
        early && self.findings.lock().unwrap().len() < ENOUGH
    }

    async fn call(self: Arc<Self>) {
        let methods = valid::methods();
        let mut two = None;
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if !self.goes_on(index) {
                return;
            }
            let mut random = Random::of(self.seed, index);
            let seen = self.seen.lock().unwrap().clone();
            let attempt = requests::attempt(&methods, &mut random, &seen);
            let shown = format!("{attempt:?}");
            let verdict = judge::judge(&self.address, &mut two, attempt).await;
            *self.counts.lock().unwrap().entry(verdict.kind).or_default() += 1;
            if let Some(wrong) = verdict.wrong {
                let finding = format!("seed {}, request {index}: {wrong}\n{shown}", self.seed);
                eprintln!("{finding}\n");
                self.findings.lock().unwrap().push(finding);
            }
            let mut seen = self.seen.lock().unwrap();
            for text in verdict.seen {
                if seen.len() < REMEMBERED {
                    seen.push(text);
                } else {
                    let place = random.below(REMEMBERED);
                    seen[place] = text;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_neither_break_nor_fill_the_server() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let process = Process::start(&database, &folder);
    let span = variable("HINDSIGHT_TEST_FUZZ_SECONDS").map(|text| text.parse().unwrap());
    let seed = match variable("HINDSIGHT_TEST_FUZZ_SEED") {
        Some(seed) => seed.parse().unwrap(),
        None if span.is_some() => uuid::Uuid::new_v4().as_u64_pair().0,
        None => SEED,
    };
    eprintln!("seed {seed}");
    let storm = Arc::new(Storm {
        seed,
        address: process.address.clone(),
        end: span.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        next: AtomicU64::new(0),
        seen: Mutex::default(),
        counts: Mutex::default(),
        findings: Mutex::default(),
    });
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(Arc::clone(&storm).call()))
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let findings = storm.findings.lock().unwrap().join("\n\n");
    let most = process.most_mib();
    eprintln!("{most} MiB at most; {:?}", storm.counts.lock().unwrap());
    assert!(findings.is_empty(), "{findings}");
    let complaints = process.complaints.lock().unwrap().join("\n");
    assert!(complaints.is_empty(), "seed {seed}: {complaints}");
    assert!(most < MOST_MIB, "seed {seed}: the server held {most} MiB");
    process.answers().await;
}
