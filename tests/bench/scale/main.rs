//! Reading at scale: what get, lists, filters and scans take with 10,000, 100,000 and 1,000,000
//! records, over the wire, on SQLite and PostgreSQL.
//!
//! `make bench-scale` runs it; `SIZES='10000 1000000'` chooses other sizes and
//! `DATABASES=sqlite` one database. The data sets stay in `target/bench/scale`; the first run
//! makes them. `ONLY='clients get wide'` measures parts, and `CASES='two labels'` the questions of clients
//! that are named so,
//! `CALLS=1000` times each. Rows are counted and the checksum of all payloads is compared before anything is
//! measured. `target/bench/scale.jsonl` gets one line for each figure. Beside them stand the same
//! questions put to a plain column of JSON, searched row by row, in the same run.
//!
//! `make bench-runs` is the part `ONLY=runs`: calls of `hindsight.v1.Runs`, into
//! `target/bench/runs.jsonl`. With `STRICT=1` it fails where a figure misses its bound.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

mod cases;
mod clients;
mod corpus;
mod data;
mod figures;
mod plain;
mod runs;
mod server;
mod wide;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use hindsight_client::Rpc;
use hindsight_proto::v1alpha2 as pb;

use crate::{
    cases::Case,
    corpus::Run,
    data::{Database, per_second},
    figures::{Figures, Times},
    server::Server,
};

/// Calls of one question, unless they take longer than [`PATIENCE`] together.
const CALLS: usize = 40;
const PATIENCE: Duration = Duration::from_millis(1500);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let target = target.parent().unwrap().join("bench");
    let folder = target.join("scale");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let chosen = variable("DATABASES", "sqlite postgres");
    let only = variable("ONLY", "");
    let file = match only.as_str() {
        "runs" => "runs.jsonl",
        _ => "scale.jsonl",
    };
    let mut figures = Figures::new(&target.join(file));
    let sizes = variable("SIZES", "10000");
    runtime.block_on(async {
        for records in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
            for database in Database::each(&folder, records, &chosen, "bench-scale").await {
                println!("\n{} with {records} records", database.label);
                (figures.database, figures.records) = (database.label, records);
                runs::clean(&database).await;
                database.fill().await;
                database.verify(&folder).await;
                if only != "fill" {
                    measure(&database, &only, &mut figures).await;
                }
            }
        }
    });
    match figures.missed.as_slice() {
        [] => println!("\nevery figure is as it should be"),
        missed => println!("\nmissed:\n  {}", missed.join("\n  ")),
    }
    println!("{}", target.join(file).display());
    if !figures.missed.is_empty() && !variable("STRICT", "").is_empty() {
        std::process::exit(1);
    }
}

/// Measures one database; `only` names a part.
async fn measure(database: &Database, only: &str, figures: &mut Figures) {
    // It adds runs of its own and starts its own server.
    if only == "runs" {
        return runs::measure(database, figures).await;
    }
    let server = Server::start(database).await;
    let wanted = |part: &str| only.is_empty() || only.split_whitespace().any(|one| one == part);
    if wanted("get") {
        get(&server, database, figures).await;
    }
    if wanted("lists") {
        for case in cases::plain(database) {
            list(&server, &case, figures).await;
        }
        depth(&server, figures).await;
    }
    if wanted("memory") {
        memory(&server, figures).await;
    }
    if wanted("clients") {
        let part = std::env::var("CASES").unwrap_or_default();
        for case in clients::cases(database) {
            if case.name.contains(&part) {
                list(&server, &case, figures).await;
            }
        }
    }
    if wanted("wide") {
        wide::measure(&server, database, figures).await;
    }
    if wanted("filters") {
        for case in cases::filtered(database) {
            list(&server, &case, figures).await;
        }
    }
    if wanted("scan") {
        scan(&server, database, figures).await;
    }
    server.stop().await;
}

/// Records by their names, each once.
async fn get(server: &Server, database: &Database, figures: &mut Figures) {
    let mut rpc = server.rpc();
    let mut times = Times::default();
    let runs = database.runs();
    for call in 0..1_100_usize {
        let run = Run::new(call.wrapping_mul(7_919) % runs, runs);
        let record = run.rows().1.swap_remove(call % corpus::RECORDS);
        let name = record.name.to_string();
        let began = Instant::now();
        let reply = rpc.get_record(pb::GetRecordRequest { name }).await.unwrap();
        let took = began.elapsed();
        let data = reply.into_inner().data.unwrap();
        assert!(
            data.value == record.data.unwrap().value,
            "the payload that was made"
        );
        if call >= 100 {
            times.add(took);
        }
    }
    figures.timed("get a record by name", &times, 1, (990, 2.0));
}

/// One page; its names, and the token of the next.
async fn page(rpc: &mut Rpc, case: &Case, size: i32, token: String) -> (Vec<String>, String) {
    if case.records {
        let request = pb::ListRecordsRequest {
            parent: case.parent.clone(),
            filter: case.filter.clone(),
            order_by: case.order.to_owned(),
            page_size: size,
            page_token: token,
        };
        let reply = rpc.list_records(request).await;
        let reply = reply
            .unwrap_or_else(|e| panic!("{}: {e}", case.name))
            .into_inner();
        let names = reply
            .records
            .into_iter()
            .map(|record| record.name)
            .collect();
        return (names, reply.next_page_token);
    }
    let request = pb::ListResultsRequest {
        parent: case.parent.clone(),
        filter: case.filter.clone(),
        order_by: case.order.to_owned(),
        page_size: size,
        page_token: token,
    };
    let reply = rpc.list_results(request).await;
    let reply = reply
        .unwrap_or_else(|e| panic!("{}: {e}", case.name))
        .into_inner();
    let names = reply
        .results
        .into_iter()
        .map(|result| result.name)
        .collect();
    (names, reply.next_page_token)
}

/// First pages of a list.
async fn list(server: &Server, case: &Case, figures: &mut Figures) {
    let mut rpc = server.rpc();
    let mut times = Times::default();
    let mut rows = 0;
    let began = Instant::now();
    let calls = std::env::var("CALLS").map_or(CALLS, |calls| calls.parse().unwrap());
    let patience = PATIENCE * u32::try_from(calls.div_ceil(CALLS)).unwrap();
    for call in 0..=calls {
        let started = Instant::now();
        let (names, _) = page(&mut rpc, case, 50, String::new()).await;
        let took = started.elapsed();
        rows = names.len();
        assert!(
            case.rows.is_none_or(|wanted| wanted == rows),
            "{}: {rows} rows",
            case.name
        );
        // The first call plans and connects.
        if call > 0 || took > patience {
            times.add(took);
        }
        if began.elapsed() > patience {
            break;
        }
    }
    figures.timed(&case.name, &times, rows, case.target);
}

/// What the thousandth page takes beside the first.
async fn depth(server: &Server, figures: &mut Figures) {
    let case = Case {
        name: "pages".to_owned(),
        records: true,
        parent: "-/results/-".to_owned(),
        filter: String::new(),
        order: "create_time desc",
        rows: None,
        target: (990, 10.0),
    };
    let mut rpc = server.rpc();
    let (mut token, mut deep) = (String::new(), String::new());
    let mut seen = std::collections::HashSet::new();
    let pages = (figures.records / 50).min(1_000);
    for _ in 0..pages {
        let (names, next) = page(&mut rpc, &case, 50, token.clone()).await;
        assert!(
            names.into_iter().all(|name| seen.insert(name)),
            "a record came twice"
        );
        deep = std::mem::replace(&mut token, next);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), pages * 50, "no record is missing");
    // In turns, so that both are as warm as each other.
    let (mut first, mut last) = (Times::default(), Times::default());
    for _ in 0..40 {
        for (times, token) in [(&mut first, String::new()), (&mut last, deep.clone())] {
            let began = Instant::now();
            page(&mut rpc, &case, 50, token).await;
            times.add(began.elapsed());
        }
    }
    let ratio = last.quantile(500) / first.quantile(500);
    figures.value(
        &format!("page {pages} beside page 1"),
        ratio,
        "times",
        Some(ratio <= 1.5),
    );
}

/// Pages as large as they may be.
async fn memory(server: &Server, figures: &mut Figures) {
    for (name, records, parent) in [
        ("page of 10,000 results", false, "-"),
        ("page of 10,000 records", true, "-/results/-"),
    ] {
        let case = Case {
            name: name.to_owned(),
            records,
            parent: parent.to_owned(),
            filter: String::new(),
            order: "",
            rows: None,
            target: (990, 10.0),
        };
        let mut rpc = server.rpc().max_decoding_message_size(64 << 20);
        server.forget_peak();
        let began = Instant::now();
        let (names, _) = page(&mut rpc, &case, 10_000, String::new()).await;
        let took = began.elapsed();
        let mut times = Times::default();
        times.add(took);
        figures.timed(name, &times, names.len(), (990, 60_000.0));
        let peak = server.peak_mib();
        let peak = f64::from(u32::try_from(peak).unwrap());
        figures.value(
            &format!("server memory, {name}"),
            peak,
            "MiB",
            Some(peak < 200.0),
        );
    }
}

/// A filter that no index answers, over as many records as take a second or two.
async fn scan(server: &Server, database: &Database, figures: &mut Figures) {
    let share = (database.records / 100_000).max(1);
    let day = corpus::day(90 - 90 / i64::try_from(share).unwrap());
    let plain_table = &mut plain::fill(database).await;
    let (by_name, by_parameter) = plain::search(&mut plain_table.0).await;
    let name_rate = per_second(plain_table.1, by_name);
    let parameter_rate = per_second(plain_table.1, by_parameter);
    figures.value(
        "plain column, searched by name",
        name_rate,
        "records/s",
        None,
    );
    figures.value(
        "plain column, searched by parameter",
        parameter_rate,
        "records/s",
        None,
    );
    let since = format!("create_time >= {day}");
    let count = format!(
        "SELECT count(*) FROM records WHERE create_us >= {}",
        corpus::day_us(90 - 90 / i64::try_from(share).unwrap())
    );
    let mut below = plain::Plain::connect(&database.url).await;
    let count = usize::try_from(below.number(count).await).unwrap();
    below.close().await;
    for (name, filter) in [
        (
            "scan by parameter",
            "data.spec.params.exists(p, p.value == \"nobody\")",
        ),
        (
            "scan by step",
            "data.status.steps.exists(s, s.terminated.exitCode == 137)",
        ),
        (
            "scan by image",
            "data.status.taskSpec.steps.exists(s, s.image.startsWith(\"nowhere\"))",
        ),
    ] {
        let case = Case {
            name: name.to_owned(),
            records: true,
            parent: "-/results/-".to_owned(),
            filter: format!("{since} && {filter}"),
            order: "",
            rows: Some(0),
            target: (990, 10.0),
        };
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let began = Instant::now();
            let (names, _) = page(&mut server.rpc(), &case, 50, String::new()).await;
            assert!(names.is_empty());
            best = best.min(began.elapsed());
        }
        let rate = per_second(count, best);
        figures.value(
            &format!("{name}, of {count} records"),
            rate,
            "records/s",
            Some(rate >= 40_000.0),
        );
        figures.value(
            &format!("{name}, beside the plain column"),
            rate / parameter_rate,
            "times",
            None,
        );
    }
}
