//! How long pages of the history of clusters take among 10,000 deleted ones, with their events.
//!
//! `make bench-ray` runs it on SQLite and PostgreSQL; `SIZES` are the clusters, `CALLS` how often each
//! question is asked, and `DATABASES=sqlite` leaves the other out.
//! Every answer is looked at. `target/bench/ray.jsonl` gets one line for each figure. With `STRICT=1` it fails where p95 of
//! a page is over 25 ms.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

#[path = "../scale/figures.rs"]
#[expect(dead_code, reason = "only times are measured")]
mod figures;
#[path = "../isolation/server.rs"]
#[expect(dead_code, reason = "nothing is asked about memory")]
mod fresh;
mod pages;

use std::{path::Path, process::ExitCode};

use kubesim::{Crd, Sim};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tonic::transport::Channel;

use figures::{Figures, Times};
use fresh::Server;

const TARGET_MS: f64 = 25.0;

#[tokio::main]
async fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = folder.join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let (chosen, sizes) = (
        variable("DATABASES", "sqlite postgres"),
        variable("SIZES", "10000"),
    );
    let calls = variable("CALLS", "200").parse().unwrap();
    let mut figures = Figures::new(&folder.join("ray.jsonl"));
    // The history is not in Kubernetes, which is asked first for one cluster.
    let sim = Sim::new();
    sim.install_all(Crd::ray());
    for number in 0..4 {
        sim.namespace(&format!("team-{number}"));
    }
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = listening.kubeconfig().display().to_string();
    for clusters in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
        for given in fresh::databases().await {
            if chosen.contains(given.label) {
                (figures.database, figures.records) = (given.label, clusters);
                println!("{}, {clusters} clusters", given.label);
                let flags = ["--enable-ray", "--ray-kubeconfig", &kubeconfig];
                pages::fill(&given.url, clusters).await;
                analyze(&given).await;
                let server = Server::start(&given, &flags).await;
                let channel = Channel::from_shared(server.url().to_owned()).unwrap();
                let channel = channel.connect().await.unwrap();
                for asked in pages::ask(channel, clusters, calls).await {
                    let mut times = Times::default();
                    asked.times.into_iter().for_each(|took| times.add(took));
                    figures.timed(asked.case, &times, asked.rows, (950, TARGET_MS));
                }
            }
            given.remove().await;
        }
    }
    println!("{}", folder.join("ray.jsonl").display());
    let is_strict = variable("STRICT", "0") == "1";
    ExitCode::from(u8::from(is_strict && !figures.missed.is_empty()))
}

/// What autovacuum does within a minute.
async fn analyze(given: &fresh::Database) {
    if given.label == "postgres" {
        let mut connection = PgConnection::connect(&given.url).await.unwrap();
        connection.execute("VACUUM ANALYZE").await.unwrap();
    }
}
