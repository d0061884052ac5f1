//! The watcher from end to end: a simulated API server, the watcher as a process of its own, the
//! server as another, a database. How many finished runs a second become durable, over the stream
//! and with calls of their own; and what it takes to find 50,000 finished runs at the start.
//!
//! `make bench` runs it; `cargo bench --bench watcher -- rate` and `-- start` run one part, and `RUNS`
//! and `EXISTING` in the environment make it smaller. Runs are counted as objects: a PipelineRun and
//! its three TaskRuns of about 10 KB are four. Each line of `target/bench/watcher.jsonl` is one
//! figure, written after every record was read back: its end is stored, once, for every object.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that meets the unexpected stops"
)]

mod corpus;
mod process;
mod stored;

#[expect(dead_code, reason = "the bench of the API times single calls as well")]
#[path = "../api/measure.rs"]
mod measure;
#[expect(dead_code, reason = "the bench of the API imports as well")]
#[path = "../api/server.rs"]
mod server;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kubesim::{Crd, Listening, Settings, Sim, SystemClock};

use crate::{
    corpus::Group,
    measure::Figures,
    process::Watcher,
    server::{Database, Server},
};

/// Objects that become finished while the watcher looks, and that are there before it comes.
const RUNS: usize = 10_000;
const EXISTING: usize = 50_000;
/// Groups of runs that are unfinished at a time.
const UNDER_WAY: usize = 50;
/// Finished runs that may wait to be stored before no more finish.
const AHEAD: u64 = 2_000;
/// How often it is looked how far the watcher is.
const POLL: Duration = Duration::from_millis(20);
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(300);

#[expect(
    clippy::disallowed_methods,
    reason = "the harness is told by the environment"
)]
fn size(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("bench");
    std::fs::create_dir_all(&target).unwrap();
    let mut figures = Figures::new(target.join("watcher.jsonl"));
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wants = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    runtime.block_on(async {
        if wants("rate") {
            let groups = corpus::groups(size("RUNS", RUNS));
            for (way, arguments) in [("stream", &[][..]), ("calls", &["--plain-calls"])] {
                for database in server::databases().await {
                    println!("\n{}, {way}", database.label());
                    rate(&database, way, arguments, &groups, &mut figures).await;
                    database.remove().await;
                }
            }
        }
        if wants("start") {
            let groups = corpus::groups(size("EXISTING", EXISTING));
            for database in server::databases().await {
                println!("\n{}, from the start", database.label());
                start(&database, &groups, &mut figures).await;
                database.remove().await;
            }
        }
    });
    println!("\nwritten to {}", figures.path().display());
}

/// A cluster that remembers enough for every watch.
async fn cluster() -> (Sim, Listening) {
    let settings = Settings {
        history: 200_000,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    sim.install_all(Crd::tekton());
    for namespace in corpus::namespaces() {
        sim.namespace(&namespace);
    }
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (sim, listening)
}

/// Waits until the watcher has stored `wanted` objects, and tells about each look.
async fn until_stored(watcher: &Watcher, wanted: u64, mut look: impl FnMut(u64)) {
    let patience = Instant::now() + PATIENCE;
    loop {
        let stored = watcher.stored().await;
        look(stored);
        if stored >= wanted {
            return;
        }
        assert!(Instant::now() < patience, "{stored} of {wanted} are stored");
        tokio::time::sleep(POLL).await;
    }
}

/// Runs begin and end as fast as they are stored.
async fn rate(
    database: &Database,
    way: &str,
    arguments: &[&str],
    groups: &[Group],
    figures: &mut Figures,
) {
    let (sim, listening) = cluster().await;
    let server = Server::start(database).await;
    let watcher = Watcher::start(&listening, &server, arguments).await;
    let before = (watcher.cpu(), process::cpu(server.id()));
    let stored = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let feeding = {
        let (sim, stored, groups) = (sim.clone(), Arc::clone(&stored), groups.to_vec());
        tokio::task::spawn_blocking(move || feed(&sim, &stored, &groups))
    };
    let wanted = corpus::objects(groups);
    until_stored(&watcher, wanted, |now| stored.store(now, Ordering::Relaxed)).await;
    let took = began.elapsed();
    feeding.await.unwrap();
    let (label, per_second) = (database.label(), wanted as f64 / took.as_secs_f64());
    stored::check(&server, groups).await;
    figures.value(label, &format!("{way}_runs_per_second"), per_second as u64);
    let share = |cpu: f64| (cpu * 1e6 / wanted as f64) as u64;
    let cpu = [
        watcher.cpu() - before.0,
        process::cpu(server.id()) - before.1,
    ];
    figures.value(label, &format!("{way}_watcher_cpu_us_a_run"), share(cpu[0]));
    figures.value(label, &format!("{way}_server_cpu_us_a_run"), share(cpu[1]));
    figures.value(label, &format!("{way}_peak_rss_mib"), watcher.peak_mib());
    watcher.stop().await;
    server.stop().await;
    listening.stop().await;
}

/// Creates and finishes all runs, never far ahead of what is stored.
fn feed(sim: &Sim, stored: &AtomicU64, groups: &[Group]) {
    let mut finished = 0;
    for n in 0..groups.len() + UNDER_WAY {
        if let Some(group) = groups.get(n) {
            group.create(sim);
        }
        if let Some(group) = n.checked_sub(UNDER_WAY).and_then(|n| groups.get(n)) {
            group.finish(sim);
            finished += corpus::GROUP as u64;
        }
        while finished > stored.load(Ordering::Relaxed) + AHEAD {
            std::thread::sleep(POLL / 4);
        }
    }
}

/// Everything has finished before the watcher comes.
async fn start(database: &Database, groups: &[Group], figures: &mut Figures) {
    let (label, wanted) = (database.label(), corpus::objects(groups));
    let (sim, listening) = cluster().await;
    let server = Server::start(database).await;
    let idle = Watcher::start(&listening, &server, &[]).await;
    let none = idle.rss_kib();
    idle.stop().await;
    for group in groups {
        group.load(&sim);
    }
    let version = sim.version();
    let began = Instant::now();
    let watcher = Watcher::start(&listening, &server, &[]).await;
    until_stored(&watcher, wanted, |_| {}).await;
    let took = began.elapsed();
    // Each is told once where it is stored.
    sim.until(|sim| sim.version() >= version + wanted).await;
    let told = began.elapsed();
    let per_run = |kib: u64| kib.saturating_sub(none) * 1024 / wanted;
    let after = watcher.rss_kib();
    stored::check(&server, groups).await;
    figures.value(label, "start_caught_up_ms", millis(took));
    figures.value(label, "start_annotated_ms", millis(told));
    figures.value(label, "start_peak_rss_mib", watcher.peak_mib());
    figures.value(label, "start_bytes_a_run_afterwards", per_run(after));
    watcher.stop().await;
    let began = Instant::now();
    let again = Watcher::start(&listening, &server, &[]).await;
    figures.value(label, "restart_seen_ms", millis(began.elapsed()));
    figures.value(label, "restart_peak_rss_mib", again.peak_mib());
    figures.value(label, "restart_bytes_a_run", per_run(again.rss_kib()));
    assert_eq!(sim.version(), version + wanted, "a restart writes nothing");
    assert_eq!(again.stored().await, 0, "a restart stores nothing");
    again.stop().await;
    server.stop().await;
    listening.stop().await;
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap()
}
