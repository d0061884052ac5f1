//! What pages of the web UI take in a browser whose processor is slowed four times, among many records and
//! for a run of 10,000 tasks, on SQLite and PostgreSQL, beside the budget of docs/ui.md.
//!
//! `make bench-ui` runs it; `SIZES=10000` is its short form, and `DATABASES=sqlite` leaves the other out. Data
//! sets are those of `make bench-scale`. `target/bench/ui.jsonl` gets one line for each page. It fails if a
//! page is over its budget.
#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that meets the unexpected stops"
)]

#[path = "../../it/browser/chromium.rs"]
#[expect(dead_code, reason = "nothing else is put into its folder")]
mod chromium;
#[path = "../../it/support/http.rs"]
#[expect(dead_code, reason = "pages are asked by GET over HTTP/1.1 alone")]
mod client;
#[path = "../scale/corpus.rs"]
#[expect(dead_code, reason = "questions to the API are those of another bench")]
mod corpus;
#[path = "../scale/data.rs"]
mod data;
#[path = "../../it/browser/hands.rs"]
#[expect(dead_code, reason = "one key is pressed")]
mod hands;
#[path = "../scale/plain.rs"]
#[expect(
    dead_code,
    reason = "searches beside the server are those of another bench"
)]
mod plain;
#[path = "../scale/server.rs"]
#[expect(dead_code, reason = "pages are asked over HTTP")]
mod server;
#[path = "../../it/browser/tab.rs"]
#[expect(dead_code, reason = "nothing is tested")]
mod tab;

mod budget;
mod measure;
mod tabs;
mod tasks;

use std::{path::PathBuf, sync::Arc};

use crate::{
    budget::{Budget, Rows},
    chromium::Chromium,
    data::Database,
    measure::{measured, page},
    server::Server,
};

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let target = target.parent().unwrap().join("bench");
    let folder = target.join("scale");
    std::fs::create_dir_all(&folder).unwrap();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let chosen = variable("DATABASES", "sqlite postgres");
    let sizes = variable("SIZES", "10000");
    let program = variable("HINDSIGHT_TEST_CHROMIUM", "chromium");
    let browser = Arc::new(Chromium::start(&program, &target).unwrap());
    let mut rows = Rows::new(&target.join("ui.jsonl"));
    runtime.block_on(async {
        for records in sizes.split_whitespace().map(|size| size.parse().unwrap()) {
            for database in Database::each(&folder, records, &chosen, "bench-ui").await {
                rows.heading(database.label, records);
                database.fill().await;
                database.verify(&folder).await;
                many(&browser, &database, &mut rows).await;
            }
        }
        for given in tasks::databases(&chosen).await {
            rows.heading(given.label, tasks::TASKS);
            let server = Server::start(&given).await;
            let run = tasks::imported(&server.url).await;
            let seen = measured(&browser, &server.url, &run).await;
            rows.add("run of many tasks", &seen, &Budget::RUN);
            for (what, query) in [("tree of all tasks", ""), ("brief tree", "?brief=true")] {
                let took = tasks::tree(&server.url, &run, query).await;
                rows.value(what, took, "ms", Budget::RUN.server);
            }
            server.stop().await;
        }
    });
    rows.end()
}

/// Pages among many records.
async fn many(browser: &Arc<Chromium>, database: &Database, rows: &mut Rows) {
    let server = Server::start(database).await;
    let url = server.url.as_str();
    let run = measure::link(url, "/ui/runs?q=failed+is:top", "/ui/run/").await;
    let pipeline = measure::link(url, "/ui/runs?q=is:top", "/ui/pipeline/").await;
    let record = run.trim_start_matches("/ui/run/").to_owned();
    for (name, target, budget) in [
        ("runs", "/ui/runs".to_owned(), Budget::LIST),
        ("runs, failed", "/ui/runs?q=failed".to_owned(), Budget::LIST),
        (
            "runs of a pipeline",
            "/ui/runs?q=pipeline:build-000".to_owned(),
            Budget::LIST,
        ),
        (
            "runs by label",
            "/ui/runs?q=label:tier=gold".to_owned(),
            Budget::LIST,
        ),
        (
            "runs of a namespace",
            "/ui/runs?ns=team-01&q=took%3E10m".to_owned(),
            Budget::LIST,
        ),
        ("overview", "/ui/".to_owned(), Budget::SUMS),
        ("pipeline", pipeline, Budget::SUMS),
        ("health", "/ui/health".to_owned(), Budget::SUMS),
        ("run", run, Budget::RUN),
        ("compare", format!("/ui/compare?a={record}"), Budget::SUMS),
    ] {
        let seen = measured(browser, url, &target).await;
        rows.add(name, &seen, &budget);
    }
    let (pages, ratio) = deep(url, database.records).await;
    rows.value(&format!("page {pages} beside page 1"), ratio, "times", 1.5);
    let mib = tabs::memory(browser, &server).await;
    rows.value("memory of the server for 50 tabs", mib, "MiB", 20.0);
    let asked = tabs::idle(browser, url).await;
    rows.value(
        "requests a minute of a tab that nobody touches",
        asked,
        "",
        12.0,
    );
    server.stop().await;
}

/// What the thousandth page of a list takes beside the first.
async fn deep(url: &str, records: usize) -> (usize, f64) {
    let mut http = client::Http::one(url).await;
    let (first, pages) = ("/ui/runs".to_owned(), (records / 50).min(1_000));
    let mut last = first.clone();
    for _ in 1..pages {
        let (_, html) = page(&mut http, &last).await;
        last = measure::next(&html).expect("an older page");
    }
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        near.push(page(&mut http, &first).await.0);
        far.push(page(&mut http, &last).await.0);
    }
    (
        pages,
        measure::quantile(&mut far, 0.5) / measure::quantile(&mut near, 0.5),
    )
}
