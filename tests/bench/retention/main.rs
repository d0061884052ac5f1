//! What deleting a million records by retention costs those who read and write meanwhile: lists and creates
//! beside a pass, and before it; the longest transaction of the pass, and whether what goes is what the plan says.
//!
//! `make bench-retention` runs it; `SIZES=10000` is its short form, and `DATABASES=sqlite` leaves the other out.
//! `target/bench/retention.jsonl` gets one line for each figure. With `STRICT=1` it fails where one misses its bound.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

#[path = "../scale/corpus.rs"]
#[expect(dead_code, reason = "questions to the API are those of another bench")]
mod corpus;
#[path = "../scale/data.rs"]
#[expect(dead_code, reason = "nothing is kept between runs")]
mod data;
#[path = "../scale/figures.rs"]
mod figures;
#[path = "../isolation/server.rs"]
#[expect(dead_code, reason = "nothing is asked about memory")]
mod fresh;
mod load;
mod locks;
#[path = "../scale/plain.rs"]
#[expect(
    dead_code,
    reason = "searches beside the server are those of another bench"
)]
mod plain;

use std::{
    collections::BTreeSet,
    fs::File,
    path::Path,
    process::{Command, ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    data::Database, figures::Figures, fresh::Server, load::Load, locks::Probe, plain::Plain,
};

/// Cancelled runs stay, and the others go: 98 of 100.
const POLICIES: &str = "run_at = \"0 3 * * * UTC\"\n\
    [[policies]]\nname = \"cancelled\"\noutcomes = [\"cancelled\"]\nkeep_for = \"forever\"\n\
    [default]\nkeep_for = \"1m\"\n";
/// How long calls are measured before the pass.
const BEFORE: Duration = Duration::from_secs(60);
/// What a call may take longer beside a pass, and what a transaction may take.
const TIMES: f64 = 1.2;
const LOCKED_MS: f64 = 100.0;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = folder.join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let (chosen, sizes) = (
        variable("DATABASES", "sqlite postgres"),
        variable("SIZES", "100000"),
    );
    let mut figures = Figures::new(&folder.join("retention.jsonl"));
    runtime.block_on(async {
        for records in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
            for given in fresh::databases().await {
                if chosen.contains(given.label) {
                    (figures.database, figures.records) = (given.label, records);
                    println!("{}, {records} records", given.label);
                    pass(&given, records, &mut figures).await;
                }
                given.remove().await;
            }
        }
    });
    println!("{}", folder.join("retention.jsonl").display());
    let is_strict = variable("STRICT", "0") == "1";
    ExitCode::from(u8::from(is_strict && !figures.missed.is_empty()))
}

async fn pass(given: &fresh::Database, records: usize, figures: &mut Figures) {
    let database = Database {
        label: given.label,
        url: given.url.clone(),
        records,
    };
    database.fill().await;
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("retention.toml");
    std::fs::write(&policies, POLICIES).unwrap();
    let retention = |verb: &str, flags: &[&str]| {
        let out = folder.path().join(verb);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hindsight"));
        command
            .args(["retention", verb, "--output", "jsonl", "--db", &given.url])
            .arg("--retention-file")
            .arg(&policies)
            .args(flags)
            .stdout(File::create(&out).unwrap());
        async move { named(ended(command).await, &out) }
    };
    let began = Instant::now();
    let planned = retention("plan", &[]).await;
    figures.value("the plan takes", seconds(began), "s", None);
    let runs = database.runs();
    assert!(
        planned.len() * 100 > runs * 95 && planned.len() < runs,
        "{} of {runs}",
        planned.len()
    );

    let server = Server::start(given, &[]).await;
    let before = Load::start(server.url());
    tokio::time::sleep(BEFORE).await;
    let before = before.stop().await;
    let (beside, probe) = (Load::start(server.url()), Probe::start(&given.url));
    let began = Instant::now();
    let deleted = retention("run", &["--yes"]).await;
    let took = began.elapsed();
    let (beside, locked) = (beside.stop().await, probe.stop().await);

    assert_eq!(deleted, planned, "what goes is what the plan says");
    let mut plain = Plain::connect(&given.url).await;
    let left = plain
        .number("SELECT count(*) FROM results".to_owned())
        .await;
    plain.close().await;
    let made = before.creates.count() + beside.creates.count();
    assert_eq!(usize::try_from(left).unwrap(), runs - deleted.len() + made);

    let rate = data::per_second(deleted.len() * corpus::RECORDS, took);
    figures.value("records deleted in a second", rate.round(), "/s", None);
    for (case, before, beside) in [
        ("list", before.lists, beside.lists),
        ("create", before.creates, beside.creates),
    ] {
        assert!(
            beside.count() > 20,
            "{case}: {} calls beside it",
            beside.count()
        );
        figures.timed(
            &format!("{case} before"),
            &before,
            before.count(),
            (950, f64::INFINITY),
        );
        let most = before.quantile(950) * TIMES;
        figures.timed(
            &format!("{case} beside a pass"),
            &beside,
            beside.count(),
            (950, most),
        );
    }
    figures.value(
        "longest wait for a lock",
        locked,
        "ms",
        Some(locked <= LOCKED_MS),
    );
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

async fn ended(mut command: Command) -> ExitStatus {
    let ended = tokio::task::spawn_blocking(move || command.status().unwrap());
    ended.await.unwrap()
}

/// The results that a command printed.
fn named(status: ExitStatus, out: &Path) -> BTreeSet<String> {
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(out).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| line["result"].as_str().unwrap().to_owned())
        .collect()
}
