//! `hindsight-watcher ledger`, or `hindsight ledger`: what a running watcher has not stored, and why.

use std::io::{self, Write};

use anyhow::{Context, bail};
use clap::{Arg, ArgMatches, Command};
use http::Request;
use serde::Deserialize;

/// What `/ledger` says, as far as it is shown.
#[derive(Debug, Deserialize)]
struct Ledger {
    server_away: Option<String>,
    counts: Vec<Count>,
    unstored: Vec<Run>,
    lost: Vec<Run>,
    #[serde(default)]
    refused: Vec<Refusal>,
    #[serde(default)]
    not_annotated: usize,
    #[serde(default)]
    would_collect: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Count {
    kind: String,
    state: String,
    runs: u64,
}

#[derive(Debug, Deserialize)]
struct Run {
    kind: String,
    namespace: String,
    name: String,
    since: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    action: String,
    kind: String,
    namespace: String,
    since: String,
    waiting: usize,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Named {
    kind: String,
    namespace: String,
    name: String,
}

/// The command, as clap sees it.
pub fn command() -> Command {
    let watcher = Arg::new("watcher")
        .long("watcher")
        .value_name("URL")
        .default_value("http://127.0.0.1:9091")
        .help("Where the watcher serves metrics");
    Command::new("ledger")
        .about("Show what a running watcher has not stored, and why")
        .after_help("Exit codes: 0 if everything that finished is stored, 1 if not.")
        .arg(watcher)
}

/// Asks and prints. Whether everything is stored.
///
/// # Errors
/// If no watcher answers there, or nobody reads what is printed.
pub async fn run(matches: &ArgMatches) -> anyhow::Result<bool> {
    let url = matches
        .get_one::<String>("watcher")
        .context("--watcher has a default")?;
    let uri = url
        .parse()
        .with_context(|| format!("`{url}` is no address; want `http://host:port`"))?;
    let client = kube::Client::try_from(kube::Config::new(uri))?;
    let request = Request::get("/ledger").body(Vec::new())?;
    let text = client
        .request_text(request)
        .await
        .with_context(|| format!("no watcher answers at {url}; it needs --metrics-listen"))?;
    let ledger: Ledger = match serde_json::from_str(&text) {
        Ok(ledger) => ledger,
        Err(error) => bail!("what answers at {url} is no watcher: {error}"),
    };
    print(&ledger, &mut io::stdout().lock())?;
    Ok(ledger.unstored.is_empty() && ledger.lost.is_empty())
}

fn print(ledger: &Ledger, to: &mut impl Write) -> io::Result<()> {
    if let Some(why) = &ledger.server_away {
        writeln!(to, "server unavailable: {why}")?;
    }
    for Count { kind, state, runs } in &ledger.counts {
        writeln!(to, "{runs:>8} {state:<10} {kind}")?;
    }
    for (title, runs) in [("not stored", &ledger.unstored), ("lost", &ledger.lost)] {
        for run in runs {
            let Run {
                kind,
                namespace,
                name,
                since,
                reason,
            } = run;
            writeln!(
                to,
                "{title}: {kind} {namespace}/{name} since {since}: {reason}"
            )?;
        }
    }
    for refused in &ledger.refused {
        let Refusal {
            action,
            kind,
            namespace,
            since,
            waiting,
            reason,
        } = refused;
        let kind = if kind.is_empty() { "runs" } else { kind };
        writeln!(
            to,
            "refused since {since}: {action} {kind} in {namespace}, {waiting} wait: {reason}"
        )?;
    }
    if ledger.not_annotated > 0 {
        let runs = ledger.not_annotated;
        writeln!(
            to,
            "{runs:>8} stored, but the cluster takes no annotations on them"
        )?;
    }
    for Named {
        kind,
        namespace,
        name,
    } in &ledger.would_collect
    {
        writeln!(to, "would collect: {kind} {namespace}/{name}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_is_told_with_its_reason() {
        let ledger = r#"{"server_away": null,
            "counts": [{"kind": "TaskRun", "state": "final_seen", "runs": 1}],
            "unstored": [{"uid": "u", "kind": "TaskRun", "namespace": "ci", "name": "a",
                "since": "2026-03-01T10:00:00Z", "reason": "not like that"}],
            "lost": []}"#;
        let mut text = Vec::new();
        print(&serde_json::from_str(ledger).unwrap(), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "       1 final_seen TaskRun\nnot stored: TaskRun ci/a since 2026-03-01T10:00:00Z: \
             not like that\n"
        );
    }
}
