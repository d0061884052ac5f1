//! What passes delete, compared with what plain policies over plain lists say, on both databases.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hindsight_filter::model::{Etag, Payload, Record, ResultName, RunResult};
use hindsight_runtime::clock::{Clock as _, ManualClock};
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::{
    Archive, Batch, Change, Hold, Store,
    objects::Bucket,
    resolve::{Opened, Options, Schema, open},
    testing::{Database, PostgresDatabase, SqliteFile, postgres_server},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Deletion, Error, Mode, Retention, Rules, Source, Totals};
use faulty::Faulty;
use hindsight_logs::Redaction;

use crate::query::{Engine, Tokens};
use crate::service::{LogHomes, LogMetrics, Logs, Service};

mod faulty;
mod model;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn days(count: u64) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::try_from(count).unwrap())
}

/// A store in use, and what deletes from it.
struct World {
    opened: Opened,
    clock: Arc<ManualClock>,
    commits: Arc<AtomicUsize>,
}

impl World {
    async fn open(url: &str) -> Self {
        let options = Options {
            max_connections: NonZeroU32::new(4).unwrap(),
            schema: Schema::Migrate,
            ..Options::default()
        };
        Self {
            opened: open(url, &options).await.unwrap(),
            clock: Arc::new(ManualClock::at(now())),
            commits: Arc::default(),
        }
    }

    /// These rules over the store, of which the commit of this number fails.
    fn retention(&self, rules: &str, fails_at: usize) -> Retention {
        self.retention_over(rules, fails_at, false)
    }

    /// The same, or it takes too long.
    fn retention_over(&self, rules: &str, fails_at: usize, is_slow: bool) -> Retention {
        let store: Arc<dyn Store> = Arc::new(Faulty {
            store: Arc::clone(&self.opened.store),
            commits: Arc::clone(&self.commits),
            fails_at,
            is_slow,
        });
        let mut registry = Registry::new();
        let homes = LogHomes::new(Vec::new(), std::time::Duration::from_secs(1), 1);
        let metrics = LogMetrics::new(&mut registry);
        let logs = Arc::clone(&self.opened.logs);
        let logs = Logs::new(logs, homes, Redaction::default(), metrics);
        let clock: Arc<ManualClock> = Arc::clone(&self.clock);
        let engine = Engine::new(Arc::clone(&store), Tokens::new(b"key"), 1_000, 1 << 20);
        let source = Source {
            service: Service::new(Arc::clone(&store), logs, engine, Arc::clone(&clock) as _),
            store,
            index: Arc::clone(&self.opened.index),
            archive: self.opened.archive.clone(),
            maintenance: Arc::clone(&self.opened.maintenance),
            clock,
        };
        Retention::new(Rules::parse(rules).unwrap(), source, &mut registry)
    }

    async fn given(&self, changes: impl IntoIterator<Item = Change>) {
        let changes = changes.into_iter().collect();
        self.opened.store.commit(&Batch { changes }).await.unwrap();
    }

    /// Names of the results that are there.
    async fn left(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let all = "-/results/-".parse().unwrap();
        let query = hindsight_storage::ListQuery {
            limit: NonZeroU32::new(10_000).unwrap(),
            ..super::pass::query(all)
        };
        for listed in self.opened.store.list_results(&query).await.unwrap() {
            names.insert(listed.item.name.to_string());
        }
        names
    }

    async fn close(self) {
        self.opened.maintenance.close().await;
    }
}

/// One pass, and what it told.
async fn passed(
    retention: &Retention,
    mode: Mode,
) -> (Result<Totals, Error>, BTreeMap<String, Deletion>) {
    let (told, mut deletions) = mpsc::channel::<Deletion>(4);
    let listening = async {
        let mut all = BTreeMap::new();
        while let Some(gone) = deletions.recv().await {
            let again = all.insert(gone.name.to_string(), gone);
            assert_eq!(again, None, "nothing is told twice");
        }
        all
    };
    tokio::join!(
        retention.pass(mode, told, CancellationToken::new()),
        listening
    )
}

fn policies(told: &BTreeMap<String, Deletion>) -> BTreeMap<String, String> {
    let pair = |(name, gone): (&String, &Deletion)| (name.clone(), gone.policy.clone());
    told.iter().map(pair).collect()
}

fn result(name: &str, annotations: BTreeMap<String, String>) -> RunResult {
    let stored = now() - days(100);
    RunResult {
        name: name.parse().unwrap(),
        uid: format!("uid of {name}"),
        etag: Etag::new(name, stored),
        create_time: stored,
        update_time: stored,
        annotations,
        summary: None,
    }
}

fn record(name: &str, data_type: &str, object: &serde_json::Value) -> Record {
    let stored = now() - days(100);
    Record {
        name: name.parse().unwrap(),
        uid: format!("uid of {name}"),
        etag: Etag::new(name, stored),
        create_time: stored,
        update_time: stored,
        data: Some(Payload::new(
            data_type.to_owned(),
            serde_json::to_vec(object).unwrap().into(),
        )),
    }
}

/// A result with a pipeline run that ended so many days ago, and tasks of it.
fn finished(name: &str, ago: u64, tasks: usize) -> Vec<Change> {
    let at = (now() - days(ago)).to_string();
    let object = |kind: &str, labels: serde_json::Value| {
        json!({"kind": kind, "metadata": {"name": "x", "labels": labels}, "status": {
            "startTime": at, "completionTime": at,
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]}})
    };
    let top = object("PipelineRun", json!({"tekton.dev/pipeline": "build"}));
    let task = object("TaskRun", json!({"tekton.dev/pipelineRun": "x"}));
    let mut changes = vec![
        Change::InsertResult(result(name, BTreeMap::new())),
        Change::InsertRecord(record(
            &format!("{name}/records/top"),
            "tekton.dev/v1.PipelineRun",
            &top,
        )),
    ];
    for at in 0..tasks {
        let name = format!("{name}/records/task{at}");
        let task = record(&name, "tekton.dev/v1.TaskRun", &task);
        changes.push(Change::InsertRecord(task));
    }
    changes
}

const A_WEEK: &str =
    "run_at = '0 3 * * * UTC'\nbatch = 3\npause = '1ms'\n[default]\nkeep_for = '7d'\n";

/// Runs `test` on a database of each kind.
async fn on_each<F: Future<Output = ()>>(test: impl Fn(String) -> F) {
    let file = SqliteFile::fresh().await;
    test(file.url()).await;
    file.remove().await;
    if let Some(server) = postgres_server() {
        let database = PostgresDatabase::fresh(&server).await;
        test(database.url()).await;
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_what_goes_and_what_plain_policies_say() {
    let mut due = 0;
    for seed in 1..=12 {
        let file = SqliteFile::fresh().await;
        due += model::agrees(&file.url(), seed).await;
        file.remove().await;
        if let Some(server) = postgres_server().filter(|_| seed % 3 == 0) {
            let database = PostgresDatabase::fresh(&server).await;
            model::agrees(&database.url(), seed).await;
            database.remove().await;
        }
    }
    assert!((60..600).contains(&due), "{due} of 720 are due");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_goes_whole_or_not_at_all() {
    on_each(|url| async move {
        let world = World::open(&url).await;
        let tasks = 400;
        world.given(finished("a/results/large", 30, tasks)).await;
        let what = hindsight_storage::Purge::Result("a/results/large".parse().unwrap());
        for (fails_at, left) in [(0, tasks + 1), (1, 0)] {
            world.commits.store(0, Ordering::SeqCst);
            let (came, told) = passed(&world.retention(A_WEEK, fails_at), Mode::Delete).await;
            assert_eq!(
                (came.is_err(), told.len()),
                (left > 0, fails_at),
                "{came:?}"
            );
            let there = world.opened.maintenance.purgeable(&what).await.unwrap();
            assert_eq!(there.records, left as u64, "commit {fails_at} failed");
        }
        world.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_takes_too_long_to_move_keeps_no_others() {
    on_each(|url| async move {
        let mut world = World::open(&url).await;
        let index = Arc::clone(&world.opened.index);
        world.opened.archive = Some(Archive::new(Bucket::in_memory(), index));
        for (name, ago) in [("a/results/first", 30), ("a/results/second", 29)] {
            world.given(finished(name, ago, 2)).await;
        }
        let rules =
            "run_at = '0 3 * * * UTC'\n[default]\nkeep_for = 'forever'\narchive_after = '7d'\n";
        let retention = world.retention_over(rules, 0, true);
        let (totals, told) = passed(&retention, Mode::Delete).await;
        let totals = totals.unwrap();
        assert_eq!((totals.failed, totals.archived, totals.lost), (1, 1, 0));
        assert!(
            totals.is_whole && told.contains_key("a/results/second"),
            "{told:?}"
        );
        world.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_after_an_attempt_ended_stays() {
    on_each(|url| async move {
        let world = World::open(&url).await;
        let at = (now() - days(30)).to_string();
        for (name, deployment) in [("goes-on", "Retrying"), ("over", "Complete")] {
            let job = json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "status": {
                "jobDeploymentStatus": deployment, "jobStatus": "SUCCEEDED",
                "startTime": at, "endTime": at}});
            let name = format!("a/results/{name}");
            let record = record(&format!("{name}/records/top"), "ray.io/v1.RayJob", &job);
            world
                .given(vec![
                    Change::InsertResult(result(&name, BTreeMap::new())),
                    Change::InsertRecord(record),
                ])
                .await;
        }
        let (totals, told) = passed(&world.retention(A_WEEK, usize::MAX), Mode::Delete).await;
        let totals = totals.unwrap();
        assert_eq!((totals.due, totals.unfinished), (1, 1), "{told:?}");
        assert_eq!(world.left().await, ["a/results/goes-on".to_owned()].into());
        world.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_broke_off_is_finished_by_the_next_and_nothing_goes_twice() {
    on_each(|url| async move {
        let world = World::open(&url).await;
        for at in 0..8 {
            world
                .given(finished(&format!("a/results/r{at}"), 10, 2))
                .await;
        }
        world.given(finished("a/results/young", 3, 2)).await;
        let mut gone = BTreeMap::new();
        for fails_at in [2, 0, 3] {
            world.commits.store(0, Ordering::SeqCst);
            let (came, told) = passed(&world.retention(A_WEEK, fails_at), Mode::Delete).await;
            assert!(came.is_err() && told.len() == fails_at, "{came:?}");
            for (name, deletion) in told {
                assert_eq!(gone.insert(name, deletion), None);
            }
        }
        let retention = world.retention(A_WEEK, usize::MAX);
        let (totals, told) = passed(&retention, Mode::Delete).await;
        assert_eq!(totals.unwrap().due, 3);
        gone.extend(told);
        assert_eq!(gone.len(), 8);
        assert_eq!(world.left().await, ["a/results/young".to_owned()].into());
        world.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_servers_each_result_is_deleted_and_counted_by_one() {
    on_each(|url| async move {
        let (one, two) = (World::open(&url).await, World::open(&url).await);
        for at in 0..20 {
            one.given(finished(&format!("a/results/r{at}"), 10, 1))
                .await;
        }
        let (first, second) = (
            one.retention(A_WEEK, usize::MAX),
            two.retention(A_WEEK, usize::MAX),
        );
        let (first, second) = tokio::join!(
            Box::pin(passed(&first, Mode::Delete)),
            Box::pin(passed(&second, Mode::Delete))
        );
        let (by_first, by_second) = (first.0.unwrap(), second.0.unwrap());
        assert_eq!(by_first.due + by_second.due, 20);
        let names: BTreeSet<_> = first.1.keys().chain(second.1.keys()).collect();
        assert_eq!(names.len(), 20, "none was told by both");
        assert!(one.left().await.is_empty());
        one.close().await;
        two.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_at_a_time_passes_by_the_schedule() {
    on_each(|url| async move {
        let world = World::open(&url).await;
        world.given(finished("a/results/r", 10, 1)).await;
        let retention = world.retention(A_WEEK, usize::MAX);
        let held = world.opened.maintenance.hold_cursor(
            "retention.pass",
            "another",
            std::time::Duration::from_secs(600),
        );
        assert!(held.await.unwrap().is_some());
        let turn = Mode::Turn {
            holder: "this".to_owned(),
        };
        let (totals, told) = passed(&retention, turn.clone()).await;
        assert_eq!((totals.unwrap().is_whole, told.len()), (false, 0));
        let time = std::time::Duration::ZERO;
        let free = world
            .opened
            .maintenance
            .hold_cursor("retention.pass", "another", time);
        free.await.unwrap();
        let (totals, told) = passed(&retention, turn).await;
        assert_eq!((totals.unwrap().is_whole, told.len()), (true, 1));
        world.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_passes_at_its_start_and_when_the_file_says() {
    let file = SqliteFile::fresh().await;
    let world = World::open(&file.url()).await;
    world.given(finished("a/results/old", 10, 0)).await;
    world.given(finished("a/results/young", 6, 0)).await;
    let retention = world.retention(A_WEEK, usize::MAX);
    let stopping = CancellationToken::new();
    let running = tokio::spawn(retention.run(stopping.clone()));
    while world.left().await.len() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(world.left().await, ["a/results/young".to_owned()].into());
    stopping.cancel();
    running.await.unwrap();
    // Of another one that begins later, and waits for the time of day.
    let rules = format!("at_start = false\n{A_WEEK}");
    let retention = world.retention(&rules, usize::MAX);
    world.clock.set("2026-06-03T02:59:59.5Z".parse().unwrap());
    let stopping = CancellationToken::new();
    let running = tokio::spawn(retention.run(stopping.clone()));
    let began = world.clock.now();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(world.left().await.len(), 1, "it is not yet {began}");
    world.clock.set("2026-06-03T03:00:00Z".parse().unwrap());
    while !world.left().await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    stopping.cancel();
    running.await.unwrap();
    world.close().await;
    file.remove().await;
}

fn held(name: &ResultName, expire_time: Option<Timestamp>) -> Change {
    Change::InsertHold(Hold {
        result: name.clone(),
        reason: "asked for".to_owned(),
        caller: "ann".to_owned(),
        create_time: now() - days(90),
        expire_time,
    })
}
