//! Questions about records most of which are in files of an archive, in a directory and in a bucket that answers
//! 20 ms late: how long answers take, and what is read for them. Beside them a question about records that are in the
//! database, and what a run takes in files and there.
//!
//! `make bench-archive` runs it; `SIZE` is the number of records, `DAYS` how many days they are of, of which each
//! namespace has a file, and `DATABASES=sqlite` leaves the other database out. Every answer is compared with what was
//! written. All databases share one set of files. `target/bench/tiers.jsonl` gets one line for each figure. With `STRICT=1` it fails where one misses its
//! bound.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

mod bodies;
mod bucket;
#[path = "../storage/corpus.rs"]
#[expect(dead_code, reason = "the bench of the store shares it")]
mod corpus;
#[path = "../scale/figures.rs"]
mod figures;
mod fill;
#[path = "../isolation/server.rs"]
#[expect(dead_code, reason = "another bench asks as several callers")]
mod fresh;
mod questions;
mod unmoved;

use std::{path::Path, process::ExitCode, sync::Arc};

use crate::{
    bodies::{RECORDS, Runs},
    bucket::Bucket,
    figures::Figures,
    fresh::Server,
    questions::{Asked, Files},
};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = folder.join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let number = |name: &str, default: &str| variable(name, default).parse::<usize>().unwrap();
    let (size, days) = (number("SIZE", "300000"), number("DAYS", "400"));
    let chosen = variable("DATABASES", "sqlite postgres");
    let mut figures = Figures::new(&folder.join("tiers.jsonl"));
    runtime.block_on(async {
        let runs = Arc::new(Runs::new(size / RECORDS, days));
        let (given, others): (Vec<_>, Vec<_>) = fresh::databases()
            .await
            .into_iter()
            .partition(|given| chosen.contains(given.label));
        let folder = tempfile::tempdir().unwrap();
        figures.records = size;
        fill::fill(&given, folder.path(), &runs, &mut figures).await;
        for given in &given {
            println!("{}, {size} records", given.label);
            figures.database = given.label;
            measured(given, folder.path(), &runs, &mut figures).await;
        }
        for given in given.into_iter().chain(others) {
            given.remove().await;
        }
    });
    println!("{}", folder.join("tiers.jsonl").display());
    let is_strict = variable("STRICT", "0") == "1";
    ExitCode::from(u8::from(is_strict && !figures.missed.is_empty()))
}

async fn measured(given: &fresh::Database, folder: &Path, runs: &Runs, figures: &mut Figures) {
    let url = format!("file://{}", folder.display());
    let server = Server::start(given, &["--archive-url", &url]).await;
    let files = Files::Directory;
    Asked::new(&server, files, runs, figures).all().await;
    drop(server);
    let bucket = Bucket::start(folder).await;
    let flags = ["--archive-url", "s3://bucket"];
    let server = Server::start_in(given, &flags, &bucket.env()).await;
    let files = Files::Bucket(&bucket);
    Asked::new(&server, files, runs, figures).all().await;
}
