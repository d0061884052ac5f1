//! Questions about runs, as `hindsight.v1.Runs` answers them: first pages of lists, the thousandth
//! page, why a run failed, what differs between two, which pipelines are flaky, and completion.
//!
//! Beside the list of runs for each query stands the list of records for the same filter. The corpus
//! is older than what flaky pipelines are sought in, and has no workflows: both are added in a parent
//! of their own, and removed again.

mod added;

use std::time::{Duration, Instant};

use hindsight_client::Runs;
use hindsight_proto::{v1 as pb, v1alpha2};

pub use self::added::clean;
use self::added::{NODES, PARENT};
use crate::{
    CALLS, PATIENCE,
    cases::ALL,
    corpus::{self, RECORDS, Run},
    data::Database,
    figures::{Figures, Times},
    server::Server,
};

/// "first page p95 10 ms".
const LISTED: (usize, f64) = (950, 10.0);

/// Measures every call.
pub async fn measure(database: &Database, figures: &mut Figures) {
    let added = added::add(database).await;
    let server = Server::start(database).await;
    let mut runs = server.client().runs();
    let part = std::env::var("CASES").unwrap_or_default();
    for (name, parent, query, rows) in queries(&mut runs, database).await {
        if name.contains(&part) {
            list(&server, (&name, &parent, &query, rows), figures).await;
        }
    }
    depth(&mut runs, figures).await;
    counts(&mut runs, figures).await;
    why(&mut runs, figures).await;
    diff(&mut runs, figures).await;
    flaky(&mut runs, added, figures).await;
    suggest(&mut runs, figures).await;
    server.stop().await;
    clean(database).await;
}

/// A page of runs.
async fn page(runs: &mut Runs, ask: pb::ListRunsRequest) -> pb::ListRunsResponse {
    let reply = runs.list_runs(ask.clone()).await;
    reply
        .unwrap_or_else(|e| panic!("{ask:?}: {e}"))
        .into_inner()
}

fn asked(parent: &str, query: &str) -> pb::ListRunsRequest {
    pb::ListRunsRequest {
        parent: parent.to_owned(),
        query: query.to_owned(),
        page_size: 50,
        ..pb::ListRunsRequest::default()
    }
}

/// The queries of dashboards and of the search box: a name, where, what, and how many rows the
/// first page has, if that is known.
async fn queries(
    runs: &mut Runs,
    database: &Database,
) -> Vec<(String, String, String, Option<usize>)> {
    let run = Run::new(database.runs() / 3, database.runs());
    let failed = page(runs, asked(ALL, "failed kind:tr")).await.runs;
    let signature = &failed.first().expect("a task failed").signature;
    let busy = corpus::pipeline(0);
    let part = &run.name[run.name.len() - 5..];
    let own = format!("{}/results/{}", run.parent, run.uid);
    let since = "2026-03-20T00:00:00Z";
    let all = [
        ("everything", String::new(), Some(50)),
        (
            "runs of a pipeline",
            format!("kind:pr pipeline:{busy}"),
            Some(50),
        ),
        (
            "runs by a label",
            format!("kind:pr label:tekton.dev/pipeline={busy}"),
            Some(50),
        ),
        ("a part of names", part.to_owned(), None),
        (
            "created since, as text",
            format!("cel: data.metadata.creationTimestamp > \"{since}\""),
            Some(50),
        ),
        ("with a label", "label:tier".to_owned(), Some(50)),
        ("pipelines", "pipeline:build-005,build-006".to_owned(), None),
        ("failed", "failed".to_owned(), Some(50)),
        (
            "failed of a pipeline",
            format!("failed pipeline:{busy}"),
            None,
        ),
        ("failed alike", format!("signature:{signature}"), None),
        (
            "of no signature",
            "signature:1zzzzzzzzzz".to_owned(),
            Some(0),
        ),
        ("reason", "reason:Cancelled".to_owned(), None),
        ("long", "took>5h".to_owned(), None),
        ("longer than some", "took>10m".to_owned(), Some(50)),
        ("running", "running".to_owned(), Some(0)),
        ("on top", "is:top".to_owned(), Some(50)),
        (
            "a day",
            "since:2026-02-20 until:2026-02-21".to_owned(),
            None,
        ),
        (
            "a label and failed",
            "failed label:tier=gold".to_owned(),
            None,
        ),
        ("uid", format!("uid:{}", run.uid), Some(1)),
        ("name", format!("name:{}", run.name), None),
        ("of no cluster", "cluster:nowhere".to_owned(), Some(0)),
        (
            "not of a pipeline",
            format!("not:pipeline:{busy} is:top"),
            Some(50),
        ),
    ];
    let all = all.into_iter();
    let mut all: Vec<_> = all
        .map(|(name, query, rows)| (name.to_owned(), ALL.to_owned(), query, rows))
        .collect();
    let tasks = ("tasks of a run", own, "kind:tr".to_owned(), RECORDS - 1);
    all.push((tasks.0.to_owned(), tasks.1, tasks.2, Some(tasks.3)));
    let parent = format!("{}/results/-", run.parent);
    all.push((
        "failed, one parent".to_owned(),
        parent,
        "failed".to_owned(),
        None,
    ));
    all
}

/// Times of a call, and the rows of its last answer.
async fn timed(mut call: impl AsyncFnMut() -> usize) -> (Times, usize) {
    let (mut times, mut rows) = (Times::default(), 0);
    let began = Instant::now();
    for number in 0..=CALLS {
        let started = Instant::now();
        rows = call().await;
        let took: Duration = started.elapsed();
        // The first call plans and connects.
        if number > 0 || took > PATIENCE {
            times.add(took);
        }
        if began.elapsed() > PATIENCE {
            break;
        }
    }
    (times, rows)
}

async fn list(
    server: &Server,
    (name, parent, query, wanted): (&str, &str, &str, Option<usize>),
    figures: &mut Figures,
) {
    let mut runs = server.client().runs();
    let filter = page(&mut runs, asked(parent, query)).await.query_filter;
    let (times, rows) =
        timed(async || page(&mut runs, asked(parent, query)).await.runs.len()).await;
    assert!(
        wanted.is_none_or(|wanted| wanted == rows),
        "{name}: {rows} rows"
    );
    figures.timed(&format!("runs: {name}"), &times, rows, LISTED);
    let mut rpc = server.rpc();
    let ask = v1alpha2::ListRecordsRequest {
        parent: parent.to_owned(),
        filter,
        page_size: 50,
        ..v1alpha2::ListRecordsRequest::default()
    };
    let listing = async || {
        let reply = rpc.list_records(ask.clone()).await.unwrap();
        reply.into_inner().records.len()
    };
    let (beside, _) = timed(listing).await;
    let ratio = times.quantile(500) / beside.quantile(500).max(0.01);
    figures.value(
        &format!("runs: {name}, beside records"),
        ratio,
        "times",
        None,
    );
}

async fn depth(runs: &mut Runs, figures: &mut Figures) {
    let (mut token, mut deep) = (String::new(), String::new());
    let pages = (figures.records / 50).min(1_000);
    let mut seen = std::collections::HashSet::new();
    let of = |token: &str| pb::ListRunsRequest {
        page_token: token.to_owned(),
        ..asked(ALL, "")
    };
    for _ in 0..pages {
        let found = page(runs, of(&token)).await;
        let is_new = |run: pb::RunRow| seen.insert(run.record);
        assert!(found.runs.into_iter().all(is_new), "a run came twice");
        deep = std::mem::replace(&mut token, found.next_page_token);
    }
    assert_eq!(seen.len(), pages * 50, "no run is missing");
    let (mut first, mut last) = (Times::default(), Times::default());
    for _ in 0..CALLS {
        for (times, token) in [(&mut first, ""), (&mut last, deep.as_str())] {
            let began = Instant::now();
            page(runs, of(token)).await;
            times.add(began.elapsed());
        }
    }
    let ratio = last.quantile(500) / first.quantile(500);
    let what = format!("runs: page {pages} beside page 1");
    figures.value(&what, ratio, "times", Some(ratio <= 1.5));
}

async fn counts(runs: &mut Runs, figures: &mut Figures) {
    let ask = pb::ListRunsRequest {
        count_up_to: 500,
        page_size: 1,
        ..asked(ALL, "failed")
    };
    let counting = async || {
        let found = page(runs, ask.clone()).await;
        usize::try_from(found.count.unwrap()).unwrap()
    };
    let (times, counted) = timed(counting).await;
    figures.timed("runs: a count up to 500", &times, counted, (950, 100.0));
}

async fn why(runs: &mut Runs, figures: &mut Figures) {
    let found = page(runs, asked(ALL, "status:failed kind:pr namespace:team-*")).await;
    let run = found.runs.first().expect("a run failed").record.clone();
    let asking = async || {
        let ask = pb::ExplainFailureRequest {
            name: run.clone(),
            ..pb::ExplainFailureRequest::default()
        };
        let told = runs.explain_failure(ask).await.unwrap().into_inner();
        assert!(told.signature.is_some() && told.failed_since > 0);
        told.changes.len()
    };
    let (times, changes) = timed(asking).await;
    figures.timed("why", &times, changes, (500, 100.0));
}

async fn diff(runs: &mut Runs, figures: &mut Figures) {
    let ask = pb::DiffRunsRequest {
        a: format!("{PARENT}/results/a/records/a"),
        b: format!("{PARENT}/results/b/records/b"),
        ..pb::DiffRunsRequest::default()
    };
    let asking = async || {
        let told = runs.diff_runs(ask.clone()).await.unwrap().into_inner();
        assert!(!told.differences.is_empty(), "they differ");
        told.differences.len()
    };
    let (times, differences) = timed(asking).await;
    let what = format!("diff of two workflows of {NODES} nodes");
    figures.timed(&what, &times, differences, (500, 200.0));
}

async fn flaky(runs: &mut Runs, added: usize, figures: &mut Figures) {
    let ask = pb::ListFlakyRequest {
        parent: ALL.to_owned(),
        days: 30,
        ..pb::ListFlakyRequest::default()
    };
    let asking = async || {
        let told = runs.list_flaky(ask.clone()).await.unwrap().into_inner();
        assert_eq!(usize::try_from(told.runs_read).unwrap(), added, "runs read");
        told.pipelines.len()
    };
    let (times, pipelines) = timed(asking).await;
    let what = format!("flaky over 30 days of {added} runs");
    figures.timed(&what, &times, pipelines, (500, 500.0));
}

async fn suggest(runs: &mut Runs, figures: &mut Figures) {
    use pb::suggest_request::Kind;
    for (kind, prefix) in [
        (Kind::Name, "build-0"),
        (Kind::Pipeline, "build-"),
        (Kind::LabelKey, "ti"),
    ] {
        let ask = pb::SuggestRequest {
            parent: ALL.to_owned(),
            kind: kind.into(),
            prefix: prefix.to_owned(),
            ..pb::SuggestRequest::default()
        };
        let asking = async || {
            let told = runs.suggest(ask.clone()).await.unwrap().into_inner();
            let found = told.values.len();
            // What is added last has other pipelines and labels.
            assert!(kind != Kind::Name || found == 50, "{found} names");
            assert!(told.runs_read > 0, "runs are read");
            found
        };
        let (times, values) = timed(asking).await;
        let what = format!("completion, {}", kind.as_str_name());
        figures.timed(&what, &times, values, (500, 300.0));
    }
}
