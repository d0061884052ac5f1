//! One great log: how fast it is appended, what it takes, and how long its end, a part of it and a search
//! of all of it take, over gRPC and a server process. Beside it the log of a real build of this machine, which
//! is captured first: what that takes.
//!
//! `make bench-logs` runs it on SQLite and PostgreSQL and prints a line of JSON for each; `SIZE` is in MiB. With
//! `STRICT=1` it fails where a bound is passed.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

mod capture;
#[path = "../api/server.rs"]
#[expect(dead_code, reason = "another bench imports")]
mod server;
mod text;

use std::time::{Duration, Instant};

use hindsight_client::{Client, Logs, Options};
use hindsight_proto::v1::{
    AppendLogRequest, DescribeLogRequest, LogContainer, LogLines, LogSource, ReadLogRequest,
    SearchLogsRequest,
};
use serde_json::json;
use sqlx::{Connection as _, Row as _};

use capture::captured;
use server::{Database, Server, databases};
use text::Build;

const NAME: &str = "ci/results/r/logs/run";
/// The log of the real build.
const REAL: &str = "ci/results/r/logs/real";
/// Text of one message.
const MESSAGE: usize = 1 << 20;
/// Bounds, for a release build and a log of 1 GiB.
const MOST_SHARE: f64 = 0.12;
const MOST_TAIL_MS: u128 = 300;
const MOST_TAIL_KIB: u64 = 8 << 10;
const MOST_SEARCH_S: f64 = 3.0;
const LEAST_MB_S: f64 = 50.0;

#[tokio::main]
async fn main() {
    let size = std::env::var("SIZE").map_or(64, |text| text.parse().unwrap());
    let is_strict = std::env::var_os("STRICT").is_some();
    let mut is_within = true;
    let real = captured();
    for database in databases().await {
        is_within &= measured(&database, size << 20, &real).await;
        database.remove().await;
    }
    assert!(is_within || !is_strict, "a bound is passed");
}

async fn measured(database: &Database, size: usize, real: &(Vec<u8>, Vec<i64>)) -> bool {
    let server = Server::start(database).await;
    let (bytes, appended) = append(&server, size).await;
    let began = Instant::now();
    let log = seal(&server, NAME).await;
    let sealed = began.elapsed();
    assert_eq!(usize::try_from(log.bytes).unwrap(), bytes);
    let share = packed(database).await;
    let packed_in = began.elapsed();
    let peak = server::system::memory_kib(server.id(), "VmHWM:") / 1024;
    append_real(&server, real).await;
    let real_log = seal(&server, REAL).await;
    let real_share = packed(database).await;
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    let bytes_f = bytes as f64;
    let real_share = (real_share.0 - share.0) / (real_share.1 - share.1);
    let share = share.0 / share.1;
    let before = server.rss_kib();
    let tail = ReadLogRequest {
        name: NAME.to_owned(),
        tail: 1000,
        ..ReadLogRequest::default()
    };
    let tail = median(&server, &tail).await;
    let middle = ReadLogRequest {
        name: NAME.to_owned(),
        first_line: log.lines / 2,
        limit: 1000,
        ..ReadLogRequest::default()
    };
    let middle = median(&server, &middle).await;
    let grown = server.rss_kib().saturating_sub(before);
    let searched = search(&server).await;
    let line = json!({
        "database": server.label(),
        "mib": size >> 20,
        "lines": log.lines,
        "append_mb_per_s": bytes_f / 1e6 / appended.as_secs_f64(),
        "seal_ms": sealed.as_millis(),
        "packed_s": packed_in.as_secs_f64(),
        "peak_mib": peak,
        "stored_share": share,
        "real_build_kib": real_log.bytes >> 10,
        "real_build_share": real_share,
        "tail_1000_ms": tail.as_millis(),
        "middle_1000_ms": middle.as_millis(),
        "reads_kib": grown,
        "search_s": searched.as_secs_f64(),
    });
    println!("{line}");
    server.stop().await;
    let gib = bytes_f / f64::from(1 << 30);
    share.max(real_share) <= MOST_SHARE
        && tail.as_millis().max(middle.as_millis()) <= MOST_TAIL_MS
        && grown <= MOST_TAIL_KIB
        && searched.as_secs_f64() <= MOST_SEARCH_S * gib.max(0.1)
        && bytes_f / 1e6 / appended.as_secs_f64() >= LEAST_MB_S
}

fn logs(server: &Server) -> Logs {
    let options = Options {
        deadline: Duration::from_mins(30),
        ..Options::new(server.url())
    };
    Client::new(&options).unwrap().logs()
}

/// Appends a log of about so many bytes over one stream; says how many, and how long it took.
async fn append(server: &Server, size: usize) -> (usize, Duration) {
    let mut build = Build::new();
    // Made before, so that what is measured is the server.
    let mut messages = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    while bytes < size {
        let (text, times) = build.lines(MESSAGE.min(size - bytes));
        bytes += text.len();
        let count = i64::try_from(times.len()).unwrap();
        messages.push(message(NAME, first, text, times));
        first += count;
    }
    let mut logs = logs(server);
    let began = Instant::now();
    let stored = logs.append_log(tokio_stream::iter(messages)).await.unwrap();
    let took = began.elapsed();
    assert_eq!(stored.into_inner().containers[0].lines, first);
    (bytes, took)
}

fn message(name: &str, first_line: i64, text: Vec<u8>, times: Vec<i64>) -> AppendLogRequest {
    AppendLogRequest {
        name: name.to_owned(),
        source: Some(source()),
        lines: Some(LogLines {
            first_line,
            text,
            times,
            holes: Vec::new(),
        }),
        seal: false,
    }
}

/// Appends the log of the real build.
async fn append_real(server: &Server, (text, times): &(Vec<u8>, Vec<i64>)) {
    let message = message(REAL, 0, text.clone(), times.clone());
    let mut logs = logs(server);
    let stored = logs.append_log(tokio_stream::iter(vec![message])).await;
    let lines = stored.unwrap().into_inner().containers[0].lines;
    assert_eq!(usize::try_from(lines).unwrap(), times.len());
}

fn source() -> LogSource {
    LogSource {
        pod: "build-pod".to_owned(),
        container: "step-build".to_owned(),
        restart: 0,
    }
}

async fn seal(server: &Server, name: &str) -> LogContainer {
    let seal = AppendLogRequest {
        name: name.to_owned(),
        source: Some(source()),
        lines: None,
        seal: true,
    };
    let mut logs = logs(server);
    logs.append_log(tokio_stream::iter(vec![seal]))
        .await
        .unwrap();
    let request = DescribeLogRequest {
        name: name.to_owned(),
        only_stored: true,
    };
    let described = logs.describe_log(request).await.unwrap().into_inner();
    described.containers.into_iter().next().unwrap()
}

/// Bytes that sealed logs take, and that they have, once the server has compressed all of them again.
async fn packed(database: &Database) -> (f64, f64) {
    const SUM: &str = "SELECT CAST(sum(stored_bytes) AS DOUBLE PRECISION), \
                       CAST(sum(bytes) AS DOUBLE PRECISION), \
                       CAST(sum(CASE WHEN packed < lines THEN 1 ELSE 0 END) AS BIGINT) \
                       FROM log_sources WHERE sha256 IS NOT NULL";
    let url = database.url();
    loop {
        let (stored, bytes, left): (f64, f64, i64) = match database {
            Database::Sqlite(_) => {
                let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
                let row = sqlx::query(SUM).fetch_one(&mut connection).await.unwrap();
                (row.get(0), row.get(1), row.get(2))
            }
            Database::Postgres { .. } => {
                let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
                let row = sqlx::query(SUM).fetch_one(&mut connection).await.unwrap();
                (row.get(0), row.get(1), row.get(2))
            }
        };
        if left == 0 {
            return (stored, bytes);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The median of how long a read takes.
async fn median(server: &Server, request: &ReadLogRequest) -> Duration {
    let mut logs = logs(server);
    let mut took = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        let mut stream = logs.read_log(request.clone()).await.unwrap().into_inner();
        let mut lines = 0;
        while let Some(message) = stream.message().await.unwrap() {
            lines += message.lines.unwrap().times.len();
        }
        assert_eq!(lines, 1000);
        took.push(began.elapsed());
    }
    took.sort();
    took[took.len() / 2]
}

/// Looks for what is not there, in all of it.
async fn search(server: &Server) -> Duration {
    let mut request = SearchLogsRequest {
        parent: "ci/results/r".to_owned(),
        pattern: "undefined reference to `[a-z]+_never`".to_owned(),
        regex: true,
        ..SearchLogsRequest::default()
    };
    let mut logs = logs(server);
    // The record that the logs belong to.
    let record = hindsight_proto::v1alpha2::Record {
        name: "ci/results/r/records/run".to_owned(),
        ..Default::default()
    };
    let create = hindsight_proto::v1alpha2::CreateRecordRequest {
        record: Some(record),
        ..Default::default()
    };
    server.rpc().create_record(create).await.unwrap();
    let began = Instant::now();
    loop {
        let page = logs
            .search_logs(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert!(page.matches.is_empty());
        if page.next_page_token.is_empty() {
            return began.elapsed();
        }
        request.page_token = page.next_page_token;
    }
}
