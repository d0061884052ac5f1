//! What it takes to add up a million records, below the server: docs/adr/0012 quotes it.
//!
//! ```text
//! tests/with-postgres cargo bench --bench aggregate
//! ```
//!
//! `HINDSIGHT_BENCH_RECORDS` is the number of records. They are made by the database itself,
//! without payloads, which no question here reads. Beside PostgreSQL's answers stands the first
//! question put to a plain column of `jsonb`. PostgreSQL is left out where
//! `HINDSIGHT_TEST_POSTGRES` names no server.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, is configured by the environment and stops at the unexpected"
)]

mod fill;

use std::{sync::Arc, time::Instant};

use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value};
use hindsight_filter::measure::{Calendar, Depth, Unit};
use hindsight_storage::{
    AggregateQuery, GroupKey, Priority, Quantity, Store, Summed,
    resolve::{Options, Schema, open},
};
use jiff::tz::TimeZone;
use sqlx::{
    ConnectOptions, Executor, Row, postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};

const CALLS: usize = 7;
const CREATED: Column = Column::Object(ObjectField::CreationTime);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(run());
}

async fn run() {
    let records = std::env::var("HINDSIGHT_BENCH_RECORDS");
    let records: i64 = records.map_or(1_000_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("aggregate.db");
    let url = format!("sqlite:{}", path.display());
    let store = opened(&url).await;
    let mut file = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    let began = Instant::now();
    for statement in fill::sqlite(records) {
        file.execute(statement).await.unwrap();
    }
    println!(
        "SQLite with {records} records, filled in {:.1?}",
        began.elapsed()
    );
    ask(&*store).await;
    let Ok(server) = std::env::var("HINDSIGHT_TEST_POSTGRES") else {
        return println!("without PostgreSQL: HINDSIGHT_TEST_POSTGRES is not set");
    };
    let server: PgConnectOptions = server.parse().unwrap();
    let mut admin = server.connect().await.unwrap();
    admin
        .execute("DROP DATABASE IF EXISTS aggregate")
        .await
        .unwrap();
    admin
        .execute("CREATE DATABASE aggregate TEMPLATE template0 ENCODING 'UTF8'")
        .await
        .unwrap();
    let server = server.database("aggregate");
    let store = opened(server.to_url_lossy().as_str()).await;
    let mut database = server.connect().await.unwrap();
    let began = Instant::now();
    for statement in fill::postgres(records) {
        database.execute(statement).await.unwrap();
    }
    println!(
        "PostgreSQL with {records} records, filled in {:.1?}",
        began.elapsed()
    );
    for (what, sql) in [
        ("index", "SELECT pg_relation_size('records_by_creation')"),
        ("table", "SELECT pg_relation_size('records')"),
    ] {
        let bytes: i64 = database.fetch_one(sql).await.unwrap().get(0);
        println!("  {what}: {} bytes per record", bytes / records);
    }
    let first = ask(&*store).await;
    let began = Instant::now();
    database.fetch_all(fill::PLAIN).await.unwrap();
    let plain = began.elapsed().as_secs_f64() * 1e3;
    println!(
        "  the first of plain jsonb: {plain:.0} ms, {:.1} times as long",
        plain / first
    );
}

async fn opened(url: &str) -> Arc<dyn Store> {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    open(url, &options).await.unwrap().store
}

fn piece(unit: Unit, zone: &str) -> GroupKey {
    let zone = TimeZone::get(zone).unwrap();
    GroupKey::Bucket(CREATED, Calendar { unit, zone })
}

fn test(column: Column, value: Value) -> Condition {
    Condition::Test(Test {
        column,
        is: Is::Equal(value),
        negated: false,
    })
}

fn question(keys: Vec<GroupKey>, depth: Depth) -> AggregateQuery {
    let queue = Quantity::Between(CREATED, Column::Began);
    let summed = |of| Summed { of, depth };
    AggregateQuery {
        scope: "-/results/-".parse().unwrap(),
        condition: Condition::All,
        keys,
        counts: vec![test(Column::Outcome, Value::Int(1))],
        amounts: vec![summed(Quantity::Value(Column::Duration)), summed(queue)],
        priority: Priority::Normal,
    }
}

fn questions() -> Vec<(&'static str, AggregateQuery)> {
    let day = || piece(Unit::Day, "UTC");
    let pipeline = || GroupKey::Column(Column::Pipeline);
    let only = |query: AggregateQuery, condition| AggregateQuery { condition, ..query };
    let text = |text: &str| Value::Text(text.to_owned());
    let one = test(Column::Pipeline, text("pipeline-7"));
    let kind = test(Column::DataType, text("tekton.dev/v1.PipelineRun"));
    let parent = AggregateQuery {
        scope: "ns-7/results/-".parse().unwrap(),
        ..question(vec![day()], Depth::Sums)
    };
    vec![
        ("per day", question(vec![day()], Depth::Sums)),
        (
            "per day in Berlin",
            question(vec![piece(Unit::Day, "Europe/Berlin")], Depth::Sums),
        ),
        ("per day, percentiles", question(vec![day()], Depth::Values)),
        (
            "by pipeline per day, percentiles",
            question(vec![pipeline(), day()], Depth::Values),
        ),
        (
            "by pipeline, percentiles",
            question(vec![pipeline()], Depth::Values),
        ),
        ("everything, percentiles", question(vec![], Depth::Values)),
        (
            "one pipeline per day, percentiles",
            only(question(vec![day()], Depth::Values), one),
        ),
        (
            "pipeline runs per day, percentiles",
            only(question(vec![day()], Depth::Values), kind),
        ),
        ("one parent per day", parent),
        (
            "per hour",
            question(vec![piece(Unit::Hour, "UTC")], Depth::Sums),
        ),
        (
            "by label",
            question(
                vec![GroupKey::Column(Column::Label("team".to_owned()))],
                Depth::Sums,
            ),
        ),
    ]
}

/// Asks everything and gives the middle time of the first.
async fn ask(store: &dyn Store) -> f64 {
    let mut first = None;
    for (name, query) in questions() {
        let mut times = Vec::new();
        let mut groups = 0;
        for _ in 0..CALLS {
            let began = Instant::now();
            groups = store.aggregate(&query).await.unwrap().len();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "  {name:<36} {groups:>6} groups  p50 {:>6.0} ms  worst {:>6.0} ms",
            times[CALLS / 2],
            times[CALLS - 1]
        );
        first.get_or_insert(times[CALLS / 2]);
    }
    first.unwrap()
}
