//! Everything goes wrong at once and all the time: watcher, server and database are killed every few
//! seconds, watches break, versions are too old, the API server errs, is slow and lags behind, and somebody else
//! deletes every run one second after it ended. Nothing is missing, unfinished or doubled in the
//! store, and nothing was collected before it was stored.
//!
//! The short form runs with all other tests; `make chaos` plays 20,000 runs, 100 a second.

mod blows;
mod check;
mod logs;
mod workflows;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use kubesim::{Finished, Plan, Player, Playing, Settings, Sim, SystemClock};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{
    Database,
    cluster::Cluster,
    database::variable,
    scene::{Scene, kinds, left},
};
use blows::{Dice, Stage};

#[derive(Debug, Clone, Copy)]
struct Extent {
    runs: usize,
    rate: f64,
    /// How long a run takes.
    life: Duration,
    /// Between two blows, on average.
    pause: Duration,
    /// Until all is stored, after the last run.
    patience: Duration,
    /// Whether the latency is a promise, and not only printed.
    is_measured: bool,
}

fn extent() -> Extent {
    match variable("HINDSIGHT_TEST_CHAOS") {
        None => Extent {
            runs: 160,
            rate: 20.0,
            life: Duration::from_secs(2),
            pause: Duration::from_millis(800),
            patience: Duration::from_secs(120),
            is_measured: false,
        },
        Some(runs) => Extent {
            runs: runs.parse().expect("HINDSIGHT_TEST_CHAOS is a number"),
            rate: 100.0,
            life: Duration::from_secs(3),
            pause: Duration::from_secs(3),
            patience: Duration::from_secs(240),
            is_measured: true,
        },
    }
}

fn plan(extent: &Extent, runs: usize, seed: u64, namespace: &str) -> Plan {
    Plan {
        runs,
        rate: extent.rate,
        seed,
        concurrency: 2000,
        life: extent.life,
        // The name of a run tells when it was deleted, so no name comes twice.
        namespaces: (0..3).map(|n| format!("{namespace}-{n}")).collect(),
        ..Plan::default()
    }
}

/// Runs that somebody else deleted.
#[derive(Debug, Default)]
struct Pruned {
    all: AtomicUsize,
    /// Later than it wanted to.
    late: AtomicUsize,
}

/// How long somebody else leaves a finished run alone.
const PRUNED_AFTER: Duration = Duration::from_secs(1);

/// Deletes every run that nobody owns one second after it ended, until it is dropped, whatever
/// else goes on.
///
/// What lived and went while nobody looked cannot be known to anybody. So a run that the watcher
/// never had in its hands, it or a child, is left until it had, and is counted as late.
async fn prune(sim: Sim, playing: Arc<Playing>, pruned: Arc<Pruned>) {
    let mut due: Vec<(Instant, bool, Finished)> = Vec::new();
    let mut children: HashMap<String, Vec<Finished>> = HashMap::new();
    let mut known = 0;
    loop {
        for run in playing.finished_after(known) {
            known += 1;
            match run.owner.clone() {
                Some(owner) => children.entry(owner).or_default().push(run),
                None => due.push((Instant::now() + PRUNED_AFTER, false, run)),
            }
        }
        let now = Instant::now();
        due.retain_mut(|(at, is_late, run)| {
            if *at > now {
                return true;
            }
            let family = children.get(&run.uid).into_iter().flatten();
            if !family.chain([&*run]).all(|run| was_seen(&sim, run)) {
                if !std::mem::replace(is_late, true) {
                    pruned.late.fetch_add(1, Ordering::Relaxed);
                }
                // Not at once: this is a thread of the cluster's process.
                *at = now + PRUNED_AFTER;
                return true;
            }
            pruned.all.fetch_add(1, Ordering::Relaxed);
            // It may have been collected just now.
            drop(sim.delete(&run.group, &run.plural, &run.namespace, &run.name));
            children.remove(&run.uid);
            false
        });
        sleep(Duration::from_millis(50)).await;
    }
}

/// Whether the watcher has written onto it, or it is gone: without a write of the watcher nothing
/// goes here.
fn was_seen(sim: &Sim, run: &Finished) -> bool {
    let found = sim.get(&run.group, &run.plural, &run.namespace, &run.name);
    found.is_none_or(|found| {
        let metadata = &found["metadata"];
        let is_held = metadata["finalizers"]
            .as_array()
            .is_some_and(|f| !f.is_empty());
        is_held || metadata["annotations"]["results.tekton.dev/stored"] == json!("true")
    })
}

/// Waits until the cluster is empty.
async fn empty(stage: &mut Stage, patience: Duration) {
    let end = Instant::now() + patience;
    loop {
        let none = stage.sim.until(|sim| left(sim) == 0);
        if timeout(Duration::from_millis(500), none).await.is_ok() {
            return;
        }
        stage.supervise();
        let left = left(&stage.sim);
        assert!(
            Instant::now() < end,
            "{left} objects are left in the cluster: {:#?}\n{}",
            some_left(&stage.sim),
            stage.scene.log()
        );
    }
}

/// What the first objects say that are left.
fn some_left(sim: &Sim) -> Vec<Value> {
    let all = kinds()
        .into_iter()
        .flat_map(|kind| sim.list(&kind.group, &kind.plural));
    all.map(|object| object["metadata"].clone())
        .take(3)
        .collect()
}

async fn play(db: String, cluster: Option<&Cluster>) {
    let extent = extent();
    let settings = Settings {
        calls: 4_000_000,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    sim.install_all(kinds());
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().display().to_string();
    let told = [
        "--finalizers",
        "--writes-per-second=100000",
        "--deletes-per-second=100000",
        "--collect",
        "--grace",
        "0s",
        "--recheck",
        "1s",
    ];
    let told = [&told[..], &["--spool", &spool]].concat();
    let mut stage = Stage::new(sim, Scene::new(db, &listening, &told));
    // While all is calm.
    let calm = Player::new(&stage.sim, plan(&extent, extent.runs / 10, 7, "calm")).start();
    calm.over().await;
    empty(&mut stage, extent.patience).await;
    let records = stage.stored(calm.finished().len(), extent.patience).await;
    let p99 = check::latency(&calm.finished(), &records);
    assert!(!extent.is_measured || p99 < 5.0, "{p99} s");
    // And while it is not.
    let storm = plan(&extent, extent.runs, 42, "storm");
    let playing = Arc::new(Player::new(&stage.sim, storm).start());
    let pruned: Arc<Pruned> = Arc::default();
    let pruner = tokio::spawn(prune(
        stage.sim.clone(),
        Arc::clone(&playing),
        Arc::clone(&pruned),
    ));
    let mut dice = Dice::new(0x5eed);
    while !playing.progress().over {
        let pause = extent.pause.mul_f64(0.5 + dice.share());
        drop(timeout(pause, playing.over()).await);
        stage.strike(&mut dice, cluster);
    }
    stage.calm_down();
    let progress = playing.progress();
    assert_eq!((progress.finished, progress.lost), (extent.runs, 0));
    let began = Instant::now();
    empty(&mut stage, extent.patience).await;
    eprintln!(
        "{:?}; all gone {:.1} s after the last run; {} of {} were pruned late, because nobody had \
         seen them",
        stage.blows,
        began.elapsed().as_secs_f64(),
        pruned.late.load(Ordering::Relaxed),
        pruned.all.load(Ordering::Relaxed),
    );
    pruner.abort();
    let mut finished = playing.finished();
    finished.extend(calm.finished());
    // What is gone from the cluster may still be on its way.
    let records = stage.stored(finished.len(), extent.patience).await;
    check::all(&stage, &finished, &records);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_loses_and_doubles_nothing_on_sqlite() {
    let database = Database::sqlite();
    play(database.url(), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_loses_and_doubles_nothing_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    play(cluster.url(), Some(&cluster)).await;
}
