//! `make demo`: a server and a watcher beside a simulated cluster that keeps finishing runs.
//!
//! Runs with a history are imported, so that every page of the web UI has something to show, while a
//! workflow of Jobs and a pipeline that embeds another are run by the controller in this process. A
//! thousand runs are played, stored and collected while the progress is shown; then three
//! queries are asked and printed, and everything keeps serving until Ctrl-C.
#![expect(clippy::print_stdout, reason = "a demo talks")]

mod logs;
mod processes;
mod showcase;
mod workflows;

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Parser;
use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use hindsight_runtime::clock::{Clock as _, SystemClock};
use indicatif::{ProgressBar, ProgressStyle};
use kubesim::{Crd, Plan, Player, Playing, Sim};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    processes::{Processes, hindsight},
    workflows::Controller,
};

/// Plays runs on a simulated cluster, and shows how they are stored and collected.
#[derive(Debug, Parser)]
struct Demo {
    /// How many runs to play; a pipeline run counts once, with its task runs
    #[arg(long, default_value_t = 1000)]
    runs: usize,

    /// Runs started per second
    #[arg(long, default_value_t = 60.0)]
    rate: f64,

    /// Where the server listens
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Database of the server; by default a SQLite file that is removed at the end
    #[arg(long)]
    db: Option<String>,

    /// End after the queries instead of serving on
    #[arg(long)]
    exit: bool,
}

/// The questions at the end: what is asked for, and the filter.
const QUERIES: [(&str, &str); 3] = [
    (
        "What failed?",
        r#"data.status.conditions[0].reason == "Failed""#,
    ),
    (
        "Which task runs of the nightly release ran?",
        r#"taskrun.metadata.name.startsWith("nightly-")"#,
    ),
    (
        "The question of the document that proposed all this: foo or bar, since 2020",
        r#"(taskrun.metadata.name == "foo" || taskrun.metadata.name == "bar") && taskrun.metadata.creation_timestamp >= timestamp("2020-01-01T10:00:20.021-05:00")"#,
    ),
];

fn kinds() -> Vec<Crd> {
    let mut kinds = Crd::tekton().to_vec();
    kinds.extend([Crd::argo_workflow(), Crd::hindsight_workflow()]);
    kinds
}

fn left(sim: &Sim) -> usize {
    kinds()
        .iter()
        .map(|kind| sim.count(&kind.group, &kind.plural))
        .sum()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let demo = Demo::parse();
    // From here on a signal ends the children, too: they are in process groups of their own.
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    let folder = tempfile::tempdir()?;
    let sim = Sim::new();
    sim.install_all(kinds());
    let cluster = sim.listen("127.0.0.1:0".parse()?).await?;
    let db = match &demo.db {
        Some(db) => db.clone(),
        None => format!("sqlite:{}", folder.path().join("hindsight.db").display()),
    };
    let mut processes =
        Processes::start(folder.path(), &db, demo.listen, cluster.kubeconfig()).await?;
    println!(
        "server   {}  (database {})",
        processes.url,
        if demo.db.is_some() { "given" } else { &db }
    );
    if !processes.url.ends_with(&demo.listen.to_string()) {
        println!(
            "         {} is in use; --listen names another address",
            demo.listen
        );
    }
    println!("web UI   {}/ui/", processes.url);
    println!("watcher  collects what is stored, grace 1s");
    println!(
        "cluster  simulated, kubeconfig {}",
        cluster.kubeconfig().display()
    );

    let controller = Controller::start(&sim).await?;
    let played = async {
        show(&demo, &sim, folder.path(), &mut processes).await?;
        match demo.exit {
            true => Ok(()),
            false => serve_on(&sim, &mut processes).await,
        }
    };
    let outcome = tokio::select! {
        () = told_to_stop(terminate, interrupt) => Ok(()),
        outcome = played => outcome,
    };
    controller.stop().await?;
    processes.stop().await?;
    cluster.stop().await;
    outcome?;
    println!("stopped");
    Ok(())
}

/// Waits for Ctrl-C or for SIGTERM, which timeouts and service managers send.
async fn told_to_stop(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Plays the runs, then asks the questions.
async fn show(
    demo: &Demo,
    sim: &Sim,
    folder: &Path,
    processes: &mut Processes,
) -> anyhow::Result<()> {
    let client = Client::new(&Options::new(&processes.url))?;
    let plan = Plan {
        runs: demo.runs,
        rate: demo.rate,
        seed: 7,
        ..Plan::default()
    };
    let told = showcase::showcase(SystemClock.now());
    println!("\nimporting {} objects with a history", told.len());
    let pipelines = workflows::play(sim)?;
    processes.import(folder, &told).await?;
    logs::store(&client, &told).await?;
    while left(sim) > 0 {
        processes.check()?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(pipelines);
    for name in ["foo", "bar", "baz"] {
        sim.load(by_hand(name))?;
    }
    println!("\nplaying {} runs, {} a second\n", demo.runs, demo.rate);
    let playing = Player::new(sim, plan).start();
    progress(sim, &playing, &client, processes, demo.runs).await?;
    let finished = playing.finished().len();
    let stored = stored(&client).await?;
    ensure!(
        stored >= finished,
        "{finished} objects finished, but only {stored} are stored"
    );
    println!(
        "\n{} runs played, that is {finished} objects with their children: {stored} records stored, {} deletes by the watcher (children go with their owner), {} left in the cluster\n",
        demo.runs,
        collected(sim),
        left(sim)
    );
    ask(processes).await
}

/// Asks the questions, and how the workflows went.
async fn ask(processes: &Processes) -> anyhow::Result<()> {
    for (at, (question, filter)) in QUERIES.into_iter().enumerate() {
        println!("{question}");
        println!(
            "  {} list runs -A --server {} --limit 3 \\\n    --filter '{filter}'\n",
            hindsight()?.display(),
            processes.url
        );
        let (rows, table) = processes.ask(filter).await?;
        println!("{table}");
        // What happens to be played may have no answer; what was loaded by hand always has.
        ensure!(
            rows > 0 || at + 1 < QUERIES.len(),
            "no run answers: {question}"
        );
    }
    println!("What did the controller of workflows run?");
    for (run, parts) in workflows::PLAYED {
        println!(
            "  {} describe {run} --server {}\n",
            hindsight()?.display(),
            processes.url
        );
        let tree = processes.say(&["describe", run]).await?;
        println!("{tree}");
        for part in parts {
            let is_shown = |line: &str| line.contains("succeeded") && line.contains(part);
            ensure!(
                tree.lines().any(is_shown),
                "no `{part}` has succeeded in {run}"
            );
        }
    }
    Ok(())
}

/// A finished TaskRun that somebody named himself.
fn by_hand(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "default",
            "creationTimestamp": "2026-01-01T12:00:00Z"},
        "spec": {"taskRef": {"name": "hello"}},
        "status": {
            "startTime": "2026-01-01T12:00:01Z",
            "completionTime": "2026-01-01T12:00:09Z",
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}],
        },
    })
}

/// Shows how far it is, until the last object is gone from the cluster.
async fn progress(
    sim: &Sim,
    playing: &Playing,
    client: &Client,
    processes: &mut Processes,
    runs: usize,
) -> anyhow::Result<()> {
    let bar = ProgressBar::new(u64::try_from(runs)?).with_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} runs finished, {msg}, {elapsed}",
    )?);
    let mut lines = 0_u32;
    loop {
        processes.check()?;
        let state = playing.progress();
        let left = left(sim);
        let text = format!(
            "{} stored, {} collected, {left} left in the cluster",
            stored(client).await?,
            collected(sim)
        );
        bar.set_position(u64::try_from(state.finished)?);
        bar.set_message(text.clone());
        // Without a terminal there is no bar, but a line now and then.
        if bar.is_hidden() && lines.is_multiple_of(4) {
            println!("{}/{runs} runs finished, {text}", state.finished);
        }
        lines += 1;
        if state.over && left == 0 {
            bar.finish_and_clear();
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Keeps finishing a run now and then.
async fn serve_on(sim: &Sim, processes: &mut Processes) -> anyhow::Result<()> {
    println!("A run keeps finishing every second; ask away. Ctrl-C ends the demo.");
    let plan = Plan {
        runs: usize::MAX,
        rate: 1.0,
        seed: 8,
        ..Plan::default()
    };
    let playing = Player::new(sim, plan).start();
    loop {
        processes.check()?;
        if playing.progress().over {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// How many objects somebody deleted from the cluster.
fn collected(sim: &Sim) -> usize {
    sim.calls().verb("delete").status(200).count()
}

/// How many records the server has.
async fn stored(client: &Client) -> anyhow::Result<usize> {
    let request = pb::RecordListSummaryRequest {
        parent: "-/results/-".to_owned(),
        ..Default::default()
    };
    let reply = client
        .rpc()
        .get_record_list_summary(request)
        .await?
        .into_inner();
    let total = reply
        .summary
        .first()
        .and_then(|group| group.fields.get("total"));
    match total.and_then(|total| total.kind.as_ref()) {
        Some(prost_types::value::Kind::NumberValue(total)) => format!("{total}")
            .parse()
            .context("a count is a whole number"),
        other => anyhow::bail!("the total is {other:?}"),
    }
}
