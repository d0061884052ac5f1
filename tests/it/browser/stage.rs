//! A server with the runs of the demo at a time that stands still, for all tests of this process: the same
//! pages each time, also of times that have passed.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

use hindsight::{
    app::App,
    config::{Config, Sources},
};
use hindsight_client::{Client, Options};
use hindsight_proto::v1::ListRunsRequest;
use hindsight_runtime::clock::Clock;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    support::{http::Http, process::run},
    web::{links, logs::give, page, seed::showcase},
};

/// When the demo is looked at.
const NOW: &str = "2026-11-20T14:03:20Z";

/// A run of the demo that failed, which has logs.
pub(super) const FAILED: &str = "failed pipeline:release is:top";

/// A clock that moves by so much each time it is asked.
#[derive(Debug)]
struct Stage {
    micros: AtomicI64,
    step: AtomicI64,
}

impl Clock for Stage {
    fn now(&self) -> Timestamp {
        let step = self.step.load(Ordering::Relaxed);
        Timestamp::from_microsecond(self.micros.fetch_add(step, Ordering::Relaxed)).unwrap()
    }
}

/// The address of the server, whose database is in `folder`.
pub(super) fn url(folder: &Path) -> String {
    static URL: OnceLock<String> = OnceLock::new();
    let start = || {
        let database = format!("sqlite:{}", folder.join("stage.db").display());
        let (told, url) = std::sync::mpsc::channel();
        // Tests have a runtime each, which ends with them; the server stays.
        let serve = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let (url, served) = filled(&database).await;
                told.send(url).unwrap();
                served.await;
            });
        };
        std::thread::spawn(serve);
        url.recv().expect("the server starts")
    };
    URL.get_or_init(start).clone()
}

async fn filled(database: &str) -> (String, impl Future<Output = ()>) {
    let keys = [
        ("db", database),
        ("listen", "127.0.0.1:0"),
        ("metrics_listen", "off"),
    ];
    let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let sources = Sources {
        flags: BTreeMap::from(keys),
        ..Sources::default()
    };
    let now: Timestamp = NOW.parse().unwrap();
    // Rows are listed in the order in which they were made.
    let clock = Arc::new(Stage {
        micros: AtomicI64::new(now.as_microsecond() - 600_000_000),
        step: AtomicI64::new(10),
    });
    let given: Arc<dyn Clock> = Arc::<Stage>::clone(&clock);
    let app = App::bind(&Config::load(&sources).unwrap(), given)
        .await
        .unwrap();
    let url = format!("http://{}", app.address());
    let served = tokio::spawn(app.run(CancellationToken::new()));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": showcase(now)});
    std::fs::write(&path, list.to_string()).unwrap();
    let path = path.display().to_string();
    let said = run(&["import", "--concurrency", "1", "--server", &url, &path]).await;
    assert_eq!(said.code, 0, "{}", said.err);
    give(&url, &record(&url, FAILED).await).await;
    clock.step.store(0, Ordering::Relaxed);
    clock.micros.store(now.as_microsecond(), Ordering::Relaxed);
    (url, async move { served.await.unwrap().unwrap() })
}

/// The first run that these words select, by its record.
pub(super) async fn record(url: &str, query: &str) -> String {
    let client = Client::new(&Options::new(url)).unwrap();
    let ask = ListRunsRequest {
        parent: "-/results/-".to_owned(),
        query: query.to_owned(),
        ..ListRunsRequest::default()
    };
    let found = client.runs().list_runs(ask).await.unwrap();
    found.into_inner().runs[0].record.clone()
}

/// Pages of logs: the last lines, a range with times, what a search finds.
async fn logs(url: &str) -> [String; 3] {
    let name = record(url, FAILED).await;
    ["", "?step=run&from=1&times=on", "?q=retrying+payment"]
        .map(|more| format!("/ui/logs/{name}{more}"))
}

/// The addresses that a person at `from` finds by following links: one of each kind of page.
pub(super) async fn pages(url: &str, from: &[&str]) -> Vec<String> {
    let mut http = Http::one(url).await;
    let kind = |target: &str| {
        let path = target.split('?').next().unwrap_or_default();
        path.split('/').nth(2).unwrap_or_default().to_owned()
    };
    let mut next: VecDeque<String> = from.iter().map(|&target| target.to_owned()).collect();
    let mut kinds: Vec<_> = next.iter().map(|target| kind(target)).collect();
    let mut pages = Vec::new();
    while let Some(target) = next.pop_front() {
        let reply = page(&mut http, &target).await;
        let media = reply.header("content-type").unwrap_or_default();
        if !media.starts_with("text/html") || reply.header("content-disposition").is_some() {
            continue;
        }
        for link in links(&reply.text()) {
            if link.starts_with("/ui/") && !kinds.contains(&kind(&link)) {
                kinds.push(kind(&link));
                next.push_back(link);
            }
        }
        pages.push(target);
    }
    for known in [
        "", "runs", "run", "logs", "raw", "compare", "graph", "pipeline", "stats", "health",
        "capture", "you",
    ] {
        assert!(
            pages.iter().any(|page| kind(page) == known),
            "{known}: {pages:?}"
        );
    }
    pages.extend(logs(url).await);
    pages
}
