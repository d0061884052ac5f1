//! How fast and how large the server is, over gRPC, on SQLite and PostgreSQL: create, get, list,
//! batched upsert and import of TaskRuns of about 10 KB, and the memory of an idle server.
//!
//! `make bench` runs it; `cargo bench --bench api -- calls upserts` runs these parts alone, and `growth=1000000` upserts into
//! a store that grows to so many records. Each line of `target/bench/api.jsonl` is one figure; medians and the
//! 99th percentile are of single calls. Every figure is taken only after it was shown that the
//! work was done: rows are counted and the checksum of all payloads is compared. Beside creates
//! stand a plain baseline in the same run, one row, one commit, straight into the same database, and
//! as the limit COPY of the same bytes.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that meets the unexpected stops"
)]

mod baseline;
mod corpus;
mod cpu;
mod measure;
mod server;
mod upserts;

use std::path::PathBuf;

use futures::{StreamExt as _, stream};
use hindsight_client::Rpc;
use hindsight_proto::v1alpha2 as pb;
use sha2::{Digest as _, Sha256};

use crate::{
    corpus::Run,
    cpu::Used,
    measure::{Figures, Timed},
    server::{Database, Server},
};

/// Records of one bench; callers at once.
const RECORDS: usize = 3_000;
const CALLERS: usize = 16;
/// The most an idle server may take.
const IDLE_RSS_MIB: u64 = 60;

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
    let mut figures = Figures::new(target.join("api.jsonl"));
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wants = |part: &str| asked.is_empty() || asked.iter().any(|asked| asked == part);
    runtime.block_on(async {
        for database in databases(wants("calls")).await {
            println!("\n{}", database.label());
            let server = Server::start(&database).await;
            idle(&server, &mut figures);
            let runs = corpus::runs(RECORDS);
            create(&server, &database, &runs, &mut figures).await;
            get(&server, &runs, &mut figures).await;
            list(&server, &mut figures).await;
            let label = database.label();
            server.stop().await;
            baseline::inserts(&database, &runs, CALLERS, label, &mut figures).await;
            baseline::copies(&database, &runs, &mut figures).await;
            database.remove().await;
        }
        for database in databases(wants("upserts")).await {
            println!("\n{}, upserted into", database.label());
            let server = Server::start(&database).await;
            upserts::run(&server, &database, &mut figures).await;
            server.stop().await;
            database.remove().await;
        }
        // Takes minutes, and gigabytes of disk.
        let growth = asked.iter().find_map(|asked| asked.strip_prefix("growth="));
        for database in databases(growth.is_some()).await {
            println!("\n{}, grown", database.label());
            let server = Server::start(&database).await;
            let records = growth.expect("it is asked for").parse().unwrap();
            upserts::growth(&server, records, &mut figures).await;
            server.stop().await;
            database.remove().await;
        }
        for database in databases(wants("import")).await {
            println!("\n{}, imported into", database.label());
            let server = Server::start(&database).await;
            import(&server, &corpus::runs(RECORDS), &mut figures).await;
            server.stop().await;
            database.remove().await;
        }
    });
    println!("\nwritten to {}", figures.path().display());
}

/// Fresh databases for a part that is wanted.
async fn databases(wanted: bool) -> Vec<Database> {
    if wanted {
        server::databases().await
    } else {
        Vec::new()
    }
}

fn idle(server: &Server, figures: &mut Figures) {
    let rss = server.rss_kib();
    figures.value(server.label(), "idle_rss_mib", rss / 1024);
    assert!(rss / 1024 < IDLE_RSS_MIB, "an idle server takes {rss} KiB");
}

fn digest<'a>(values: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut sum = [0_u8; 32];
    for value in values {
        // Order does not matter, so that pages and callers may come as they like.
        for (into, byte) in sum.iter_mut().zip(Sha256::digest(value)) {
            *into ^= byte;
        }
    }
    sum
}

async fn create(server: &Server, database: &Database, runs: &[Run], figures: &mut Figures) {
    let mut rpc = server.rpc();
    for result in corpus::results(runs) {
        let result = pb::Result {
            name: result,
            ..pb::Result::default()
        };
        let request = pb::CreateResultRequest {
            result: Some(result),
            ..Default::default()
        };
        rpc.create_result(request).await.unwrap();
    }
    let before = Used::now(server, database);
    let mut timed = Timed::start(RECORDS);
    let mut calls = stream::iter(runs)
        .map(|run| {
            let mut rpc = rpc.clone();
            async move {
                let record = run.record();
                let request = pb::CreateRecordRequest {
                    record: Some(record),
                    ..Default::default()
                };
                measure::call(async { rpc.create_record(request).await.unwrap() })
                    .await
                    .1
            }
        })
        .buffer_unordered(CALLERS);
    while let Some(took) = calls.next().await {
        timed.add(took);
    }
    drop(calls);
    timed.finish();
    let used = Used::now(server, database).per_call(before, RECORDS);
    assert_eq!(count(rpc).await, RECORDS, "every create is a row");
    figures.timed(server.label(), "create", &timed, CALLERS);
    figures.cpu(server.label(), "create", used);
}

async fn count(mut rpc: Rpc) -> usize {
    let request = pb::RecordListSummaryRequest {
        parent: "-/results/-".to_owned(),
        ..Default::default()
    };
    let reply = rpc
        .get_record_list_summary(request)
        .await
        .unwrap()
        .into_inner();
    match reply.summary[0].fields["total"].kind {
        Some(prost_types::value::Kind::NumberValue(total)) => format!("{total}").parse().unwrap(),
        ref other => panic!("total is {other:?}"),
    }
}

async fn get(server: &Server, runs: &[Run], figures: &mut Figures) {
    let rpc = server.rpc();
    let mut timed = Timed::start(RECORDS);
    let mut values = Vec::with_capacity(RECORDS);
    let mut calls = stream::iter(runs)
        .map(|run| {
            let mut rpc = rpc.clone();
            async move {
                let request = pb::GetRecordRequest { name: run.name() };
                measure::call(async { rpc.get_record(request).await.unwrap() }).await
            }
        })
        .buffer_unordered(CALLERS);
    while let Some((reply, took)) = calls.next().await {
        values.push(reply.into_inner().data.unwrap().value);
        timed.add(took);
    }
    drop(calls);
    timed.finish();
    let wanted = digest(runs.iter().map(|run| run.value.as_slice()));
    assert_eq!(
        digest(values.iter().map(|v| &v[..])),
        wanted,
        "the bytes come back as sent"
    );
    figures.timed(server.label(), "get", &timed, CALLERS);
}

async fn list(server: &Server, figures: &mut Figures) {
    for (name, filter, size, rows) in [
        ("list_first_page", "", 50, 50),
        (
            "list_failed",
            r#"data.status.conditions[0].reason == "Failed""#,
            50,
            50,
        ),
        (
            "list_by_name",
            r#"data.metadata.name == "build-01234""#,
            50,
            1,
        ),
        (
            "list_residual",
            r#"data.spec.params.exists(p, p.value == "rev-7")"#,
            50,
            50,
        ),
    ] {
        let mut rpc = server.rpc();
        let mut timed = Timed::start(100);
        for _ in 0..100 {
            let request = pb::ListRecordsRequest {
                parent: "-/results/-".to_owned(),
                filter: filter.to_owned(),
                page_size: size,
                ..pb::ListRecordsRequest::default()
            };
            let (reply, took) =
                measure::call(async { rpc.list_records(request.clone()).await.unwrap() }).await;
            assert_eq!(reply.into_inner().records.len(), rows, "{name}");
            timed.add(took);
        }
        timed.finish();
        figures.timed(server.label(), name, &timed, 1);
    }
}

async fn import(server: &Server, runs: &[Run], figures: &mut Figures) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.json");
    corpus::write_list(&file, runs);
    let mut timed = Timed::start(RECORDS);
    let said = server.import(&file).await;
    timed.finish();
    assert!(said.contains(&format!("{RECORDS} created")), "{said}");
    assert_eq!(count(server.rpc()).await, RECORDS, "every object is a row");
    figures.timed(server.label(), "import", &timed, CALLERS);
    figures.value(
        server.label(),
        "rss_after_import_mib",
        server.rss_kib() / 1024,
    );
}
