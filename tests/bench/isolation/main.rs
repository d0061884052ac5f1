//! What authentication costs, and how well callers are isolated from one another: the rate of calls of
//! known callers beside that of anonymous calls, and how long small calls take beside a caller with
//! large ones, or beside a flood.
//!
//! `make bench-isolation` runs it; `cargo bench --bench isolation -- auth` does one part alone, and so
//! do `fairness` and `flood`.
//! Each line of `target/bench/isolation.jsonl` is one figure, with what it should reach. What is compared
//! is measured in turns, in the same run, and the middle of the turns counts.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::print_stdout,
    reason = "a benchmark that meets the unexpected stops"
)]

mod flood;
mod load;
#[path = "../../it/support/frames.rs"]
mod raw;
mod server;

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read as _, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hindsight_client::Client;
use kubesim::Sim;
use serde_json::{Value, json};

use crate::server::{Database, Server};

const TURNS: usize = 5;
/// How long one turn is.
const SPAN: Duration = Duration::from_secs(2);
/// Callers at once, each with a connection.
const CALLERS: usize = 16;
/// Those who ask for little, and how often.
const SMALL: [&str; 4] = ["ann", "bob", "eve", "kim"];
const PACE: Duration = Duration::from_millis(20);
/// Connections of a flood.
const FLOODING: usize = 200;
/// The argument of the process that asks for much.
const MUCH: &str = "much";
/// What the one who asks for much asks for at the same time.
const AT_ONCE: usize = 6;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, much, url] = &arguments[..]
        && much == MUCH
    {
        return runtime.block_on(be_busy(url));
    }
    if let [_, role, address, connections, kind, token] = &arguments[..]
        && role == flood::FLOOD
    {
        let token = (!token.is_empty()).then(|| &*token.clone().leak());
        let connections = connections.parse().unwrap();
        return runtime.block_on(flood::flood(address, connections, kind, token));
    }
    if let [_, sink] = &arguments[..]
        && sink == flood::SINK
    {
        return runtime.block_on(flood::sink());
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.parent().unwrap().join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("isolation.jsonl");
    let mut file = File::create(&path).unwrap();
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wants = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    runtime.block_on(async {
        for database in server::databases().await {
            println!("\n{}", database.label);
            let filled = Server::start(&database, &[]).await;
            load::fill(&filled.client(None)).await;
            drop(filled);
            let mut tell = |figure: Value| {
                println!("  {figure}");
                let mut line = figure;
                line["database"] = database.label.into();
                writeln!(file, "{line}").unwrap();
            };
            if wants("auth") {
                auth(&database, &mut tell).await;
            }
            if wants("fairness") {
                fairness(&database, &mut tell).await;
            }
            if wants("flood") {
                flood::floods(&database, FLOODING, &mut tell).await;
            }
            database.remove().await;
        }
    });
    println!("\nwritten to {}", path.display());
}

fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A file of users, whose names are their tokens.
fn users(folder: &tempfile::TempDir, names: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        let hash = hindsight_access::auth::token_hash(name);
        writeln!(
            text,
            "[[users]]\nname = '{name}'\nsha256 = ['{hash}']\n\
             grants = [{{parents = ['*'], role = 'admin'}}]"
        )
        .unwrap();
    }
    let path = folder.path().join("users.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

async fn auth(database: &Database, tell: &mut impl FnMut(Value)) {
    let folder = tempfile::tempdir().unwrap();
    let file = users(&folder, &["ann"]);
    let sim = Sim::new();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let group = "results.tekton.dev";
    let policy = sim.policy();
    policy
        .token("ann", "ann", &[])
        .allow("ann", "get", group, "records", "*");
    let kubeconfig = listening.kubeconfig().display().to_string();
    let modes: [(&str, Vec<&str>); 3] = [
        ("off", vec![]),
        (
            "tokens",
            vec!["--auth", "tokens", "--auth-tokens-file", &file],
        ),
        (
            "kubernetes",
            vec!["--auth", "kubernetes", "--auth-kubeconfig", &kubeconfig],
        ),
    ];
    let mut servers = Vec::new();
    for (mode, flags) in &modes {
        let server = Server::start(database, flags).await;
        let token = (*mode != "off").then_some("ann");
        let clients: Vec<Client> = (0..CALLERS).map(|_| server.client(token)).collect();
        load::gets(&clients, SPAN / 4).await;
        servers.push((*mode, server, clients, Vec::new()));
    }
    for turn in 0..TURNS {
        for at in 0..servers.len() {
            // Nobody is always the first.
            let at = (at + turn) % modes.len();
            let (_, _, clients, rates) = &mut servers[at];
            rates.push(load::gets(clients, SPAN).await);
        }
    }
    let ratios: Vec<(&str, f64)> = servers[1..]
        .iter()
        .map(|(mode, _, _, rates)| {
            let each = rates
                .iter()
                .zip(&servers[0].3)
                .map(|(with, without)| with / without);
            (*mode, middle(each.collect()))
        })
        .collect();
    for (mode, _, _, rates) in servers {
        let rate = middle(rates).round();
        tell(json!({"bench": format!("get_auth_{mode}"), "callers": CALLERS, "per_second": rate}));
    }
    for (mode, ratio) in ratios {
        tell(
            json!({"bench": format!("auth_{mode}_to_off"), "ratio": rounded(ratio), "at_least": 0.9}),
        );
    }
    tell(
        json!({"bench": "reviews", "tokens": sim.policy().token_reviews(), "access": sim.policy().access_reviews()}),
    );
}

/// The time within which 95 of 100 calls are answered, in milliseconds.
fn p95(mut took: Vec<Duration>) -> f64 {
    took.sort_unstable();
    took[took.len() * 95 / 100].as_secs_f64() * 1e3
}

/// The caller who asks for much, as a process that lets others go first, because it would be on
/// another machine.
struct Busy(Child);

impl Busy {
    fn start(server: &Server) -> Self {
        let mut command = Command::new("nice");
        command
            .args(["-n", "19"])
            .arg(std::env::current_exe().unwrap());
        let piped = command.args([MUCH, server.url()]).stdin(Stdio::piped());
        Self(piped.stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Ends it; how many of its calls were answered.
    fn stop(mut self) -> u64 {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

/// Asks for much until the input ends, and says how many calls were answered.
async fn be_busy(url: &str) {
    let client = server::client(url, Some("max"));
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        until.store(true, Ordering::Relaxed);
    });
    println!("{}", load::much(&client, AT_ONCE, &over).await);
}

async fn fairness(database: &Database, tell: &mut impl FnMut(Value)) {
    let folder = tempfile::tempdir().unwrap();
    let file = users(&folder, &[&SMALL[..], &["max"]].concat());
    let flags = ["--auth", "tokens", "--auth-tokens-file", &file];
    let server = Server::start(database, &flags).await;
    let small: Vec<Client> = SMALL.iter().map(|name| server.client(Some(name))).collect();
    load::little(&small, PACE, SPAN / 2).await;
    let (mut alone, mut beside, mut answered) = (Vec::new(), Vec::new(), 0);
    for _ in 0..TURNS {
        alone.push(p95(load::little(&small, PACE, SPAN).await));
        let busy = Busy::start(&server);
        beside.push(p95(load::little(&small, PACE, SPAN).await));
        answered += busy.stop();
    }
    assert!(answered > 0, "somebody asked for much");
    let (alone, beside) = (middle(alone), middle(beside));
    tell(json!({"bench": "small_calls_alone", "p95_ms": rounded(alone)}));
    tell(
        json!({"bench": "small_calls_beside_large", "p95_ms": rounded(beside), "large_answered": answered}),
    );
    tell(json!({"bench": "large_moves_p95", "ratio": rounded(beside / alone), "at_most": 1.25}));
}
