//! What indexing a field changes: lists by it among 100,000 TaskRuns before and after, on SQLite
//! and PostgreSQL, how fast its index is built, and what it costs every write.
//!
//! `cargo bench --bench indexed` runs it, beside PostgreSQL with `tests/with-postgres`; `RECORDS`
//! chooses another size. Each answer is the same before and after, or it stops.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight::query::{Engine, List, Tokens};
use hindsight_filter::model::{Etag, Payload, Record, Resource, RunResult};
use hindsight_filter::{Filter, Order, indexed::Kind};
use hindsight_storage::{
    Change, Maintenance, Store,
    resolve::{Opened, Options, Schema, open},
};
use jiff::Timestamp;
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Questions, and how they are put.
const ASKED: [(&str, &str); 5] = [
    (
        "one value in 1,000",
        "data.spec.params.exists(p, p.name == 'env' && p.value == 'rare')",
    ),
    (
        "one value in 4",
        "data.spec.params.exists(p, p.name == 'env' && p.value == 'common-1')",
    ),
    (
        "a value of nobody",
        "data.spec.params.exists(p, p.name == 'env' && p.value == 'nobody')",
    ),
    (
        "two values of few",
        "data.spec.params.exists(p, p.name == 'env' && p.value in ['rare', 'rarer'])",
    ),
    (
        "numbers of a range",
        "data.spec.number >= 500 && data.spec.number < 560",
    ),
];
const FIELDS: [(&str, Kind); 2] = [
    ("data.spec.params[name==\"env\"].value", Kind::Text),
    ("data.spec.number", Kind::Number),
];
const CALLS: usize = 21;
const PATIENCE: Duration = Duration::from_secs(6);

fn time(us: i64) -> Timestamp {
    Timestamp::from_microsecond(1_767_225_600_000_000 + us).unwrap()
}

fn run(at: i64, all: i64) -> Record {
    let env = match at % 1_000 {
        7 => "rare".to_owned(),
        8 if at < all / 2 => "rarer".to_owned(),
        other => format!("common-{}", other % 4),
    };
    let steps: Vec<_> = (0..12)
        .map(|step| {
            json!({
                "name": format!("step-{step}"),
                "imageID": format!("registry/image@sha256:{:064x}", at * 31 + step),
                "terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": time(at).to_string()},
                "log": format!("line {at} {step} of what the step said before it ended, as ever"),
            })
        })
        .collect();
    let object = json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "TaskRun",
        "metadata": {"name": format!("run-{at}"), "uid": format!("uid-{at}"),
            "labels": {"tekton.dev/pipeline": format!("p{}", at % 50)}},
        "spec": {"params": [{"name": "revision", "value": format!("{at:040x}")},
            {"name": "env", "value": env}], "number": at},
        "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}],
            "startTime": time(at * 1_000).to_string(), "steps": steps},
    });
    Record {
        name: format!("bench/results/r/records/{at}").parse().unwrap(),
        uid: at.to_string(),
        etag: Etag::from_text(at.to_string()),
        create_time: time(at * 1_000),
        update_time: time(at * 1_000),
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            object.to_string().into_bytes().into(),
        )),
    }
}

async fn fill(store: &dyn Store, from: i64, to: i64, all: i64) -> f64 {
    let began = Instant::now();
    let mut at = from;
    while at < to {
        let end = (at + 500).min(to);
        let changes: Vec<_> = (at..end)
            .map(|at| Change::InsertRecord(run(at, all)))
            .collect();
        for outcome in store.commit_each(&changes).await {
            outcome.unwrap();
        }
        at = end;
    }
    per_second(to - from, began.elapsed())
}

fn per_second(rows: i64, took: Duration) -> f64 {
    f64::from(i32::try_from(rows).unwrap()) / took.as_secs_f64()
}

/// The names on the first page, and the median of the times that it took.
async fn ask(store: &Arc<dyn Store>, text: &str) -> (Vec<String>, Duration) {
    let filter = Arc::new(Filter::compile(text, Resource::Records).unwrap());
    let engine = Engine::new(Arc::clone(store), Tokens::new(b"key"), u64::MAX, 4 << 20);
    let (mut names, mut times) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while times.len() < CALLS && (times.is_empty() || began.elapsed() < PATIENCE) {
        let list = List {
            scope: "-/results/-".parse().unwrap(),
            filter: Arc::clone(&filter),
            order: Order::newest_first(),
            size: NonZeroU32::new(50).unwrap(),
            token: String::new(),
            payloads: true,
            method: "List",
        };
        let called = Instant::now();
        let page = engine.records(list).await.unwrap();
        times.push(called.elapsed());
        names = page.items.iter().map(|row| row.name.to_string()).collect();
    }
    times.sort_unstable();
    (names, times[times.len() / 2])
}

async fn create_index(maintenance: &dyn Maintenance, all: i64) {
    for (path, kind) in FIELDS {
        let path = path.parse().unwrap();
        let began = Instant::now();
        let made = maintenance
            .create_index(&path, kind, time(0))
            .await
            .unwrap();
        let batch = NonZeroU32::new(500).unwrap();
        while !maintenance.build_index(made.id, batch).await.unwrap().ready {}
        println!(
            "  index of {path} built at {:.0} records/s",
            per_second(all, began.elapsed())
        );
    }
}

async fn bench(label: &str, url: &str, all: i64) {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let Opened {
        store, maintenance, ..
    } = open(url, &options).await.unwrap();
    let result = RunResult {
        name: "bench/results/r".parse().unwrap(),
        uid: "r".to_owned(),
        etag: Etag::from_text("r"),
        create_time: time(0),
        update_time: time(0),
        annotations: std::collections::BTreeMap::new(),
        summary: None,
    };
    store
        .commit(&Change::InsertResult(result).into())
        .await
        .unwrap();
    let bytes = run(1, all).data.map_or(0, |data| data.value.len());
    println!("\n{label}: {all} records of {bytes} bytes");
    fill(&*store, 0, all, all).await;
    let without = fill(&*store, all, all + all / 10, all).await;
    let mut before = Vec::new();
    for (_, text) in ASKED {
        before.push(ask(&store, text).await);
    }
    create_index(&*maintenance, all + all / 10).await;
    for ((what, text), (names, took)) in ASKED.into_iter().zip(before) {
        let (found, after) = ask(&store, text).await;
        assert_eq!(found, names, "{text}");
        println!(
            "  {what}: {:.1} ms before, {:.1} ms after, {:.0} times",
            took.as_secs_f64() * 1e3,
            after.as_secs_f64() * 1e3,
            took.as_secs_f64() / after.as_secs_f64()
        );
    }
    let with = fill(&*store, all + all / 10, all + all / 5, all).await;
    println!(
        "  written: {without:.0} records/s before, {with:.0} with {} fields",
        FIELDS.len()
    );
    maintenance.close().await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let all = std::env::var("RECORDS").map_or(100_000, |text| text.parse().unwrap());
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", folder.path().join("b.db").display());
        bench("sqlite", &file, all).await;
        let Ok(server) = std::env::var("HINDSIGHT_TEST_POSTGRES") else {
            println!("without PostgreSQL: HINDSIGHT_TEST_POSTGRES is not set");
            return;
        };
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let create = connection.execute("CREATE DATABASE bench_promoted").await;
        create.unwrap();
        let url = format!("{}/bench_promoted", server.rsplit_once('/').unwrap().0);
        bench("postgres", &url, all).await;
    });
}
