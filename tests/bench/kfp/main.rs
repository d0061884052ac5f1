//! Lists of pipelines in the database, with filters and orders: SIZE pipelines with ten versions each; and of objects of a
//! simulated cluster.
//!
//! `make bench-kfp` runs it on both databases; `SIZE=1000` is its short form. Each line of `target/bench/kfp.jsonl` is a
//! case, with the median and the 95th percentile in milliseconds; every answer is compared with what was filled in. With
//! `STRICT=1` it fails where a 95th percentile is over its bound.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

mod fill;
mod objects;

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_kfp::{
    Database,
    query::{ListAsk, Query, Scope},
    store::PipelineStore as _,
};
use hindsight_storage::{
    resolve::{Options, Schema, open},
    testing::{Database as _, PostgresDatabase, SqliteFile, postgres_server},
};
use serde_json::json;

/// What a list may take.
const BOUND: Duration = Duration::from_millis(25);
/// How often each case is asked.
const ASKED: u64 = 100;
/// Items of a page.
const PAGE: i32 = 20;

/// A question, and how many items pass it.
struct Case {
    name: &'static str,
    ask: fn(u64, u64) -> ListAsk,
    total: fn(u64, u64) -> u64,
}

fn filter(operation: &str, key: &str, value: &str) -> String {
    let predicate = json!({"operation": operation, "key": key, "string_value": value});
    json!({ "predicates": [predicate] }).to_string()
}

fn ask(filter: String, sort_by: &str) -> ListAsk {
    ListAsk {
        page_size: PAGE,
        sort_by: sort_by.to_owned(),
        filter,
        ..ListAsk::default()
    }
}

/// How many numbers below `size` have this text in them.
fn with(size: u64, text: &str) -> u64 {
    let numbers = (0..size).map(|number| format!("pipeline-{number}"));
    numbers.filter(|name| name.contains(text)).count() as u64
}

const CASES: [Case; 7] = [
    Case {
        name: "by time",
        ask: |_, _| ask(String::new(), ""),
        total: |size, _| size,
    },
    Case {
        name: "by name, downwards",
        ask: |_, _| ask(String::new(), "name desc"),
        total: |size, _| size,
    },
    Case {
        name: "of a display name",
        ask: |size, turn| {
            let name = format!("Pipeline {}", turn * 7919 % size);
            ask(filter("EQUALS", "display_name", &name), "")
        },
        total: |_, _| 1,
    },
    Case {
        name: "of a common part of the name, by time downwards",
        ask: |_, turn| {
            let part = format!("LINE-{}", 1 + turn % 9);
            ask(filter("IS_SUBSTRING", "name", &part), "created_at desc")
        },
        total: |size, turn| with(size, &format!("line-{}", 1 + turn % 9)),
    },
    Case {
        name: "of a rare part of the name, by display name",
        ask: |size, turn| {
            let part = format!("-{}", size - 1 - turn % 50);
            ask(filter("IS_SUBSTRING", "name", &part), "display_name")
        },
        total: |size, turn| with(size, &format!("-{}", size - 1 - turn % 50)),
    },
    Case {
        name: "of a range of time, by display name downwards",
        ask: |_, turn| {
            let after = json!({
                "operation": "GREATER_THAN_EQUALS", "key": "created_at",
                "long_value": fill::FIRST_SECOND + i64::try_from(turn * 10).unwrap(),
            });
            let filter = json!({ "predicates": [after] }).to_string();
            ask(filter, "display_name desc")
        },
        total: |size, turn| size.saturating_sub(turn * 10),
    },
    Case {
        name: "of a tag, by name",
        ask: |_, turn| {
            ask(
                filter("EQUALS", "tags.team", &format!("t{}", turn % 100)),
                "name",
            )
        },
        total: |size, turn| (size + 99 - turn % 100) / 100,
    },
];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = folder.join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let mut out = File::create(folder.join("kfp.jsonl")).unwrap();
    let size = std::env::var("SIZE").unwrap_or("100000".to_owned());
    let size = size.parse().unwrap();
    let missed = runtime.block_on(async {
        let file = SqliteFile::fresh().await;
        let mut missed = run("sqlite", &file.url(), size, &mut out).await;
        file.remove().await;
        if let Some(server) = postgres_server() {
            let database = PostgresDatabase::fresh(&server).await;
            missed += run("postgres", &database.url(), size, &mut out).await;
            database.remove().await;
        }
        for (case, times) in objects::run().await {
            let ms = |percent| percentile(&times, percent).as_secs_f64() * 1000.0;
            let line = json!({
                "database": "kubernetes", "case": case, "p50_ms": ms(50), "p95_ms": ms(95),
            });
            println!("{line}");
            writeln!(out, "{line}").unwrap();
            missed += usize::from(percentile(&times, 95) > objects::BOUND);
        }
        missed
    });
    match missed > 0 && std::env::var("STRICT").is_ok() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Fills a database and asks; gives how many cases are over the bound.
async fn run(label: &str, url: &str, size: u64, out: &mut File) -> usize {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(url, &options).await.unwrap();
    let begun = Instant::now();
    fill::fill(url, size).await;
    println!("{label}: {size} pipelines in {:?}", begun.elapsed());
    let store = Database::new(Arc::clone(&opened.pipelines));
    let mut missed = 0;
    let mut say = |case: &str, times: Vec<Duration>| {
        let p95 = percentile(&times, 95);
        missed += usize::from(p95 > BOUND);
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let line = json!({
            "database": label, "pipelines": size, "case": case,
            "p50_ms": ms(percentile(&times, 50)), "p95_ms": ms(p95),
        });
        println!("{line}");
        writeln!(out, "{line}").unwrap();
    };
    let namespace = || Scope::Pipelines {
        namespace: String::new(),
    };
    for case in &CASES {
        let mut times = Vec::new();
        for turn in 0..ASKED {
            let query = Query::new(namespace(), &(case.ask)(size, turn), usize::MAX).unwrap();
            let begun = Instant::now();
            let page = store.pipelines(&query).await.unwrap();
            times.push(begun.elapsed());
            assert_eq!(page.total, (case.total)(size, turn), "{} {turn}", case.name);
            let items = u64::try_from(page.items.len()).unwrap();
            assert_eq!(items, page.total.min(20), "{}", case.name);
            assert!(page.items.iter().all(|item| query.matches(item)));
            let places = page.items.iter().map(|item| query.position(item));
            assert!(
                places
                    .clone()
                    .zip(places.skip(1))
                    .all(|(a, b)| query.order(&a, &b).is_lt())
            );
        }
        say(case.name, times);
    }
    // A walk, page by page.
    let mut times = Vec::new();
    let mut token = String::new();
    for _ in 0..ASKED {
        let ask = ListAsk {
            page_token: token,
            ..ask(String::new(), "display_name")
        };
        let query = Query::new(namespace(), &ask, usize::MAX).unwrap();
        let begun = Instant::now();
        let page = store.pipelines(&query).await.unwrap();
        times.push(begun.elapsed());
        token = page.next;
    }
    say("the next page, by display name", times);
    let mut times = Vec::new();
    for turn in 0..ASKED {
        let scope = Scope::Versions {
            pipeline_id: fill::pipeline_id(turn * 7919 % size),
        };
        let ask = ask(filter("IS_SUBSTRING", "name", "v"), "created_at desc");
        let query = Query::new(scope, &ask, usize::MAX).unwrap();
        let begun = Instant::now();
        let page = store.versions(&query).await.unwrap();
        times.push(begun.elapsed());
        assert_eq!((page.total, page.items.len()), (10, 10));
    }
    say("versions of a pipeline, by time downwards", times);
    opened.maintenance.close().await;
    missed
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}
