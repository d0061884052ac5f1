//! Logs while everything goes wrong: lines that were written against lines that are stored, with watcher, server,
//! database and object store killed or away, and pods that go two seconds after they end.
//!
//! What was written and went while no watcher was there cannot be known to anybody: a watcher takes seconds to
//! start. So a pod stays for up to 20 seconds, and is counted as late, while no watcher has had its log open at its end,
//! or after it, and lived half a second longer. What a watcher has read and not sent when it is killed the next one
//! finds in the spool.
//!
//! The short form runs with all other tests; `make chaos-logs` plays 2,000 runs.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use hindsight_proto::v1::{DescribeLogRequest, ReadLogRequest};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use kubesim::{Calls, Settings, Sim};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tonic::Status;

use super::blows::{Dice, Stage, Starts};
use crate::support::{
    Database,
    cluster::Cluster,
    database::variable,
    s3::Bucket,
    scene::{Scene, kinds},
};

/// So many runs, and of a thousand lines so many that must be stored.
const SHORT: (usize, usize) = (60, 900);
const LARGE: usize = 999;
const AT_ONCE: usize = 20;
/// Between two faults, on average.
const PAUSE: Duration = Duration::from_secs(3);
/// So long a pod waits for a watcher, which starts and opens logs within a few seconds.
const LATE: Duration = Duration::from_secs(20);
const NAMESPACE: &str = "ci";
/// Until all logs are sealed and packed, after the last run.
const PATIENCE: Duration = Duration::from_secs(240);

/// A line that is no other run's, of which a few take 1 KiB when they are compressed.
fn line(run: usize, at: usize) -> String {
    let mut noise = (run * 1000 + at) as u64;
    let mut text = format!("run {run} line {at} ");
    for _ in 0..4 {
        noise = (noise ^ (noise >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        noise = (noise ^ (noise >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        text += &format!("{noise:016x}");
    }
    text
}

fn count(run: usize) -> usize {
    40 + run % 37
}

/// A watcher has read what there is to read after so many microseconds.
const READ: i64 = 500_000;

/// How watchers have done.
#[derive(Debug, Clone, Default)]
struct Watching {
    starts: Starts,
    /// Pods that had to stay for them.
    late: Arc<AtomicUsize>,
}

impl Watching {
    /// Whether a watcher had the log of a pod open when it ended, or later, and had time to read it.
    fn has_read(&self, sim: &Sim, pod: &str, ended: i64) -> bool {
        let now = SystemClock.now().as_microsecond();
        let opened = opens(sim, pod);
        opened.all().iter().any(|call| {
            let at = call.at.as_microsecond();
            let end = self.starts.end_of(at).unwrap_or(now);
            call.status == Some(200) && at.max(ended) + READ <= end
        })
    }
}

/// The requests for the log of a pod.
fn opens(sim: &Sim, pod: &str) -> Calls {
    sim.calls_that(|call| call.name == pod && call.subresource == "log")
}

fn is_cancelled(n: usize) -> bool {
    n.is_multiple_of(10)
}

/// A run that was played.
#[derive(Debug)]
struct Played {
    uid: String,
    /// When its log ended, in microseconds.
    ended: i64,
    /// How much longer than two seconds its pod stayed.
    late: Duration,
}

/// A run from its begin until two seconds after its end, when its pod goes.
async fn live(sim: Sim, n: usize, watching: Watching) -> (usize, Played) {
    let (name, pod) = (format!("build-{n}"), format!("build-{n}-pod"));
    let run = sim.create(json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {},
    }));
    let uid = run.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let owner = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": name, "uid": uid,
        "controller": true,
    });
    sim.create(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod, "namespace": NAMESPACE, "labels": {"tekton.dev/taskRun": name},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "step-a", "image": "i"}]},
    }))
    .unwrap();
    sim.start_container(NAMESPACE, &pod, "step-a").unwrap();
    for at in 0..count(n) {
        let text = line(n, at) + "\n";
        sim.write_log(NAMESPACE, &pod, "step-a", text).unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    let is_cancelled = is_cancelled(n);
    let code = i32::from(is_cancelled);
    sim.end_container(NAMESPACE, &pod, "step-a", code).unwrap();
    let end_of_log = SystemClock.now().as_microsecond();
    let ended = match is_cancelled {
        true => json!({"type": "Succeeded", "status": "False", "reason": "TaskRunCancelled"}),
        false => json!({"type": "Succeeded", "status": "True", "reason": "Succeeded"}),
    };
    let ran = json!({"exitCode": code, "containerID": "c"});
    let status = json!({
        "podName": pod, "conditions": [ended],
        "steps": [{"container": "step-a", "terminated": ran}],
        "startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:05:00Z",
    });
    let patch = json!({"status": status});
    sim.merge("tekton.dev", "taskruns", NAMESPACE, &name, patch, "tekton")
        .unwrap();
    sleep(Duration::from_secs(2)).await;
    if !watching.has_read(&sim, &pod, end_of_log) {
        watching.late.fetch_add(1, Ordering::SeqCst);
    }
    let begin = Instant::now();
    while !watching.has_read(&sim, &pod, end_of_log) && begin.elapsed() < LATE {
        sleep(Duration::from_millis(100)).await;
    }
    sim.delete("", "pods", NAMESPACE, &pod).unwrap();
    let late = begin.elapsed();
    let played = Played {
        uid,
        ended: end_of_log,
        late,
    };
    (n, played)
}

/// What is stored of the log of a run.
#[derive(Debug, Default)]
struct Stored {
    lines: Vec<String>,
    holes: Vec<String>,
}

/// What is stored of the log of a run, once all of it is sealed.
async fn stored(scene: &Scene, uid: &str) -> Result<Option<Stored>, Status> {
    let name = format!("{NAMESPACE}/results/{uid}/logs/{uid}");
    let mut logs = scene.client().logs();
    let request = DescribeLogRequest {
        name: name.clone(),
        only_stored: true,
    };
    let found = logs.describe_log(request).await?.into_inner().containers;
    if found.is_empty() || !found.iter().all(|container| container.sealed) {
        return Ok(None);
    }
    let request = ReadLogRequest {
        name,
        ..ReadLogRequest::default()
    };
    let mut stored = Stored::default();
    let mut stream = logs.read_log(request).await?.into_inner();
    while let Some(message) = stream.message().await? {
        let Some(lines) = message.lines else { continue };
        let text = String::from_utf8(lines.text).unwrap();
        for (at, line) in (lines.first_line..).zip(text.lines()) {
            match lines.holes.contains(&at) {
                true => stored.holes.push(line.to_owned()),
                false => stored.lines.push(line.to_owned()),
            }
        }
    }
    Ok(Some(stored))
}

/// The log of a run, once the server has all of it.
async fn awaited(stage: &mut Stage, uid: &str, end: Instant) -> Stored {
    loop {
        stage.supervise();
        let last = match stored(&stage.scene, uid).await {
            Ok(Some(stored)) => return stored,
            other => other,
        };
        let log = || stage.scene.log();
        assert!(Instant::now() < end, "{uid}: {last:?}\n{}", log());
        sleep(Duration::from_millis(200)).await;
    }
}

async fn play(db: String, cluster: Option<&Cluster>) {
    let large = variable("HINDSIGHT_TEST_LOGGED_RUNS");
    let (count_of_runs, share) = large.map_or(SHORT, |runs| (runs.parse().unwrap(), LARGE));
    let settings = Settings {
        calls: 4_000_000,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(kubesim::SystemClock));
    sim.install_all(kinds());
    sim.namespace(NAMESPACE);
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let bucket = Bucket::start().await;
    let spool = tempfile::tempdir().unwrap();
    let spool = spool.path().display().to_string();
    let level = "info,hindsight_watcher::log_tasks=debug";
    let mut told = vec!["--logs", "follow", "--finalizers", "--spool", &spool];
    told.extend(["--log-level", level]);
    let scene = Scene::new(db, &listening, &told);
    let scene = scene.with_bucket(&bucket, &["--objects-log-above", "1KiB"]);
    let mut stage = Stage::new(sim, scene);
    stage.bucket = Some(bucket);
    let watching = Watching {
        starts: stage.starts.clone(),
        late: Arc::default(),
    };
    let (mut runs, turns) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for n in 0..count_of_runs {
        let (sim, turns) = (stage.sim.clone(), Arc::clone(&turns));
        let watching = watching.clone();
        runs.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            live(sim, n, watching).await
        });
    }
    let (mut played, mut dice) = (BTreeMap::new(), Dice::new(0x10c5));
    while !runs.is_empty() {
        let pause = PAUSE.mul_f64(0.5 + dice.share());
        let next = Instant::now() + pause;
        while let Ok(Some(run)) = timeout(
            next.saturating_duration_since(Instant::now()),
            runs.join_next(),
        )
        .await
        {
            played.extend([run.unwrap()]);
        }
        stage.strike(&mut dice, cluster);
    }
    stage.calm_down();
    let late = watching.late.load(Ordering::SeqCst);
    judge(&mut stage, &played, share, late).await;
}

/// What there is to know of a log that is not whole, in seconds after its end.
fn told(stage: &Stage, n: usize, run: &Played) -> String {
    let (pod, late) = (format!("build-{n}-pod"), run.late);
    let after = |at: i64| (at - run.ended) as f64 / 1e6;
    let opened = opens(&stage.sim, &pod);
    let opened: Vec<_> = opened
        .all()
        .iter()
        .map(|call| (after(call.at.as_microsecond()), call.status))
        .collect();
    let near = stage.blows.0.iter().map(|(at, blow)| (after(*at), blow));
    let near: Vec<_> = near.filter(|(at, _)| (-20.0..20.0).contains(at)).collect();
    let said = stage.scene.said(&pod);
    format!("its pod stayed {late:?} longer; opened {opened:?}, struck {near:?}\n{said}")
}

/// Compares what was written with what is stored, of which at least `share` in a thousand must be there.
async fn judge(stage: &mut Stage, played: &BTreeMap<usize, Played>, share: usize, late: usize) {
    let end = Instant::now() + PATIENCE;
    let (mut written, mut kept) = (0, 0);
    // Of those that were cancelled.
    let (mut all_cancelled, mut whole_cancelled) = (0, 0);
    let mut holes = BTreeMap::<String, usize>::new();
    for (n, run) in played {
        let stored = awaited(stage, &run.uid, end).await;
        let wanted: Vec<String> = (0..count(*n)).map(|at| line(*n, at)).collect();
        // In order, none twice, none that was not written.
        let mut rest = wanted.iter();
        let is_in_order = |line: &String| rest.any(|wanted| wanted == line);
        assert!(stored.lines.iter().all(is_in_order), "{n}: {stored:?}");
        let is_whole = stored.lines.len() == wanted.len();
        assert!(
            is_whole || !stored.holes.is_empty(),
            "{n}: a hole is marked"
        );
        if !is_whole {
            let (there, all) = (stored.lines.len(), wanted.len());
            eprintln!("{n}: {there} of {all} lines; {}", told(stage, *n, run));
        }
        written += wanted.len();
        kept += stored.lines.len();
        all_cancelled += usize::from(is_cancelled(*n));
        whole_cancelled += usize::from(is_cancelled(*n) && is_whole);
        for hole in stored.holes {
            *holes.entry(hole).or_default() += 1;
        }
    }
    eprintln!(
        "{:?}; {kept} of {written} lines stored, all of {whole_cancelled} of {all_cancelled} cancelled runs; \
         {late} of {} pods went late, holes: {holes:#?}",
        stage.blows,
        played.len(),
    );
    assert!(kept * 1000 >= written * share, "{kept} of {written}");
    // What a busy machine reads too late is no fault of the short form.
    if share == LARGE {
        assert_eq!(whole_cancelled, all_cancelled);
    }
    in_bucket(stage, played, end).await;
}

/// What lay in the database while the bucket was away has come there, and is read from there.
async fn in_bucket(stage: &mut Stage, played: &BTreeMap<usize, Played>, end: Instant) {
    let bucket = stage.bucket.as_ref().unwrap();
    let is_held = |bucket: &Bucket| {
        let objects = bucket.list();
        objects
            .iter()
            .filter(|(name, _)| !name.ends_with("/database"))
            .count()
            >= played.len() / 2
    };
    while !is_held(bucket) {
        assert!(Instant::now() < end, "{:?}", bucket.list());
        sleep(Duration::from_millis(200)).await;
    }
    let (n, run) = played.first_key_value().unwrap();
    let again = awaited(stage, &run.uid, end).await;
    assert!(again.lines.len() <= count(*n), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_outlive_server_watcher_and_bucket_on_sqlite() {
    let database = Database::sqlite();
    play(database.url(), None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_outlive_server_watcher_bucket_and_database_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    play(cluster.url(), Some(&cluster)).await;
}
