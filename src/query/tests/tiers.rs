//! Many rows in the database, in files, or in both: lists are those of plain evaluation.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Instant,
};

use jiff::{SignedDuration, Timestamp};
use proptest::{
    prelude::any,
    test_runner::{Config, RngSeed, TestRunner},
};
use tokio::runtime::Runtime;

use super::{
    differential::{agree, ask_all, drawn},
    rows::{Opened, Rows},
};
use hindsight_filter::{
    model::Resource,
    samples::{record_row, result_row},
};
use hindsight_storage::testing::{Database as _, PostgresDatabase, SqliteFile, postgres_server};

/// Records, and filters, of which each thread has some; `HINDSIGHT_TEST_DIFFERENTIAL` says others, as in `100000 5000`
/// (`make differential`). A third number is the seed of both, which is random otherwise, and printed.
const ORDINARY: &str = "5000 500";
const THREADS: u32 = 4;
/// Of five questions one is about results.
const ABOUT_RESULTS: u32 = 5;
/// Records of a result, and days on which results were stored first.
const OF_RESULT: usize = 10;
const DAYS: usize = 6;
/// Pages of a list that are compared, and rows of most pages; a list may have all rows.
const PAGES: usize = 2;
const PAGE: u32 = 100;
/// Questions after which it is said how far the test is; it takes hours with many records.
const TOLD: u32 = 100;

#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by the environment"
)]
fn sizes() -> (usize, u32, u64) {
    let said = std::env::var("HINDSIGHT_TEST_DIFFERENTIAL").unwrap_or(ORDINARY.to_owned());
    let mut said = said.split_whitespace();
    let [records, filters] = [(); 2].map(|()| said.next().unwrap().parse().unwrap());
    let seed = said.next().map(|seed| seed.parse().unwrap());
    let random = || drawn(1, &mut TestRunner::default(), any::<u64>())[0];
    let records = usize::try_from(records).unwrap();
    (records, filters, seed.unwrap_or_else(random))
}

fn config(seed: u64) -> Config {
    Config {
        failure_persistence: None,
        max_shrink_iters: 20,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    }
}

/// Rows of few values over many results and days. One in five has the time of another, one result in ten a name of the
/// small sets.
fn many(records: usize, seed: u64) -> Rows {
    let mut runner = TestRunner::new(config(seed));
    let first: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let count = records / OF_RESULT;
    let mut results = drawn(count, &mut runner, result_row());
    for (at, result) in results.iter_mut().enumerate() {
        if at % 10 > 0 {
            result.name = format!("{}-{at}", result.name).parse().unwrap();
        }
        if at % 5 > 0 {
            let hours = i64::try_from(at * DAYS * 24 / count).unwrap();
            result.create_time = first + SignedDuration::from_hours(hours);
        }
    }
    let mut rows = drawn(records, &mut runner, record_row());
    for (at, record) in rows.iter_mut().enumerate() {
        let result = &results[at * count / records];
        let id = format!("{}-{at}", record.name.id());
        record.name = result.name.record(&id).unwrap();
        if at % 5 > 0 {
            let ms = i64::try_from(at % OF_RESULT / 2).unwrap();
            record.create_time = result.create_time + SignedDuration::from_millis(ms);
        }
    }
    Rows::new(results, rows)
}

#[test]
fn lists_are_the_same_wherever_their_rows_are() {
    let runtime = Runtime::new().unwrap();
    let (records, filters, seed) = sizes();
    println!("{records} records, {filters} filters, seed {seed}");
    let rows = many(records, seed);
    assert!(rows.results.len() > records / OF_RESULT / 2 && rows.records.len() > records / 2);
    let server = postgres_server();
    let made = server.map(|server| runtime.block_on(PostgresDatabase::fresh(&server)));
    let files = [(); 3].map(|()| runtime.block_on(SqliteFile::fresh()));
    let mut urls = vec![
        ("SQLite", files[0].url()),
        ("SQLite, all in files", files[1].url()),
        ("SQLite, half in files", files[2].url()),
    ];
    urls.extend(
        made.iter()
            .map(|made| ("PostgreSQL, half in files", made.url())),
    );
    let fill = async |(name, url): (&'static str, String)| {
        let opened = Opened::at(name, &url).await;
        rows.fill(&*opened.store).await;
        let every = ["all in files", "half in files"];
        if let Some(every) = every.iter().position(|end| name.ends_with(end)) {
            opened.move_to_files(every + 1).await;
        }
        opened
    };
    let databases: Vec<_> = urls
        .into_iter()
        .map(|given| runtime.block_on(fill(given)))
        .collect();
    let (asked, start) = (AtomicU32::new(0), Instant::now());
    let tell = || {
        let asked = asked.fetch_add(1, Ordering::Relaxed) + 1;
        if asked.is_multiple_of(TOLD) {
            let seconds = start.elapsed().as_secs();
            println!("{asked} of {filters} filters agree after {seconds} s");
        }
    };
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let seed = seed
                .wrapping_mul(1 + u64::from(THREADS))
                .wrapping_add(u64::from(thread));
            let (runtime, rows, databases, tell) = (&runtime, &rows, &databases, &tell);
            scope.spawn(move || {
                let results = filters.div_ceil(THREADS * ABOUT_RESULTS);
                let others = filters.div_ceil(THREADS) - results;
                for (resource, cases) in [(Resource::Records, others), (Resource::Results, results)]
                {
                    let config = Config {
                        cases,
                        ..config(seed)
                    };
                    ask_all(&config, resource, PAGE, |_, question| {
                        runtime.block_on(agree((question, PAGES), resource, rows, databases))?;
                        tell();
                        Ok(())
                    });
                }
            });
        }
    });
    for database in databases {
        runtime.block_on(database.close());
    }
    for file in files {
        runtime.block_on(file.remove());
    }
    if let Some(made) = made {
        runtime.block_on(made.remove());
    }
}
