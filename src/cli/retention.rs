//! `hindsight retention`: plans, runs and converts policies by which results are deleted.

use std::{collections::BTreeMap, io::Read as _, path::PathBuf, process::ExitCode, sync::Arc};

use clap::{ArgMatches, Args, Command, FromArgMatches as _, ValueEnum};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    confirm::confirm,
    failure::Failure,
    flags_of, output, serve,
    table::{Column, Look, Table, Value},
    terminal::Cut,
};
use crate::{
    app,
    retention::{Deletion, Mode, Stage, Totals, converted},
};
use hindsight_runtime::clock::SystemClock;
use hindsight_runtime::error::report;

/// Deletions that may wait to be printed.
const WAITING: usize = 256;

const ABOUT: &str = "Move old runs to the archive and delete them by policies, or list which

The policies are those of the file that `retention_file` names; docs/retention.md describes it. A server that \
has the file does so at its start and when the file says. These commands work on the database itself, beside \
servers or without one, and decide as a server does.";

const EXAMPLES: &str = "Examples:
  hindsight retention plan --db sqlite:/var/lib/hindsight/history.db --retention-file retention.toml
  hindsight retention plan -o jsonl
  hindsight retention run --yes
  kubectl get configmap tekton-results-config-results-retention-policy -n tekton-pipelines -o yaml |
    hindsight retention convert - --zone Europe/Berlin > retention.toml";

/// List what would be moved or deleted now, by which policy, with bytes
///
/// Nothing is moved or deleted. `retention run` at the same moment moves and deletes exactly this.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Plan {
    #[command(flatten)]
    show: Show,
}

/// Move and delete now what is due
///
/// With `audit_log`, every delete is a line there. What is interrupted goes on with the next run.
///
/// Exit codes: 0 all that is due is moved or deleted, 1 some could not be read, or nothing was confirmed, 2 wrong usage or
/// configuration, 5 the database cannot be reached.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Run {
    #[command(flatten)]
    show: Show,

    /// Move and delete without asking for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// Print the file of policies for a ConfigMap of Tekton Results' retention policy agent
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Convert {
    /// File with the ConfigMap in YAML; `-` is standard input
    file: PathBuf,

    /// Time zone of `runAt`, as the agent's process has it
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
}

#[derive(Debug, Args)]
struct Show {
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Columns that fit the terminal; values between tabs where the output is no terminal
    Table,
    /// One JSON document, with sums by policy
    Json,
    /// A JSON object for each result
    Jsonl,
}

/// A result that is due, as JSON shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    stage: &'static str,
    policy: String,
    result: String,
    uid: String,
    ended: String,
    records: u64,
    bytes: u64,
}

impl Shown {
    fn of(deletion: Deletion) -> Self {
        Self {
            stage: match deletion.stage {
                Stage::Archive => "archive",
                Stage::Delete => "delete",
            },
            policy: deletion.policy,
            result: deletion.name.to_string(),
            uid: deletion.uid,
            ended: deletion.ended.to_string(),
            records: deletion.records,
            bytes: deletion.bytes,
        }
    }
}

/// What goes by one policy.
#[derive(Debug, Default, Serialize)]
struct Sum {
    results: u64,
    records: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Document {
    policies: BTreeMap<String, Sum>,
    results: Vec<Shown>,
}

/// The command and what it consists of.
pub(super) fn command() -> Command {
    let keys = [
        "db",
        "objects_url",
        "objects_keep",
        "archive_url",
        "audit_log",
        "retention_file",
    ];
    let of_db = |command| flags_of(command, &keys);
    Command::new("retention")
        .about("Move old runs to the archive and delete them by policies, or list which")
        .long_about(ABOUT)
        .after_long_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(of_db(Plan::augment_args(Command::new("plan"))))
        .subcommand(of_db(Run::augment_args(Command::new("run"))))
        .subcommand(Convert::augment_args(Command::new("convert")))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    match matches.subcommand() {
        Some(("convert", sub)) => Convert::from_arg_matches(sub).map_err(usage)?.go(),
        Some(("run", sub)) => {
            let run = Run::from_arg_matches(sub).map_err(usage)?;
            if !run.yes {
                confirm(
                    "Move and delete what `retention plan` lists?",
                    "nothing was moved or deleted",
                )?;
            }
            pass(sub, &run.show, Mode::Delete)
        }
        Some((_, sub)) => {
            let plan = Plan::from_arg_matches(sub).map_err(usage)?;
            pass(sub, &plan.show, Mode::Plan)
        }
        None => Err(Failure::usage("want `plan`, `run` or `convert`")),
    }
}

impl Convert {
    fn go(&self) -> Result<ExitCode, Failure> {
        let text = match self.file.to_str() {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map(|_| text)
            }
            _ => std::fs::read_to_string(&self.file),
        };
        let at = self.file.display();
        let text = text.map_err(|error| Failure::usage(format!("{at}: {error}")))?;
        let file = converted(&text, &self.zone);
        let file = file.map_err(|why| Failure::usage(format!("{at}: {why}")))?;
        output::say(file.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn pass(matches: &ArgMatches, show: &Show, mode: Mode) -> Result<ExitCode, Failure> {
    let config = serve::load(matches)?;
    super::runtime()?.block_on(async {
        let opened = app::retention_of(&config, Arc::new(SystemClock)).await;
        let opened = opened.map_err(|error| serve::failure(&error))?;
        let (retention, opened) = opened.ok_or_else(|| {
            Failure::usage("retention_file is not set; docs/retention.md describes the file")
        })?;
        let operator = format!("uid:{}", rustix::process::getuid().as_raw());
        let retention = retention.on_behalf_of(operator);
        let verb = match mode {
            Mode::Plan => "would be deleted",
            _ => "deleted",
        };
        let (told, deletions) = mpsc::channel(WAITING);
        let passing = retention.pass(mode, told, CancellationToken::new());
        let (totals, printed) = tokio::join!(passing, show.print(deletions, verb));
        opened.maintenance.close().await;
        let totals = totals.map_err(|error| Failure::other(report(&error)))?;
        printed?;
        note(totals);
        Ok(ExitCode::from(u8::from(totals.failed > 0)))
    })
}

/// Says what did not go though it is due.
fn note(totals: Totals) {
    for (count, why) in [
        (totals.held, "held"),
        (
            totals.lost,
            "changed meanwhile, and looked at by the next run",
        ),
        (
            totals.failed,
            "left because they cannot be read; run `hindsight fsck`",
        ),
    ] {
        if count > 0 {
            output::note(&format!("{count} more are {why}"));
        }
    }
}

impl Show {
    async fn print(
        &self,
        mut deletions: mpsc::Receiver<Deletion>,
        verb: &str,
    ) -> Result<(), Failure> {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        let mut archived = Sum::default();
        let mut table = Table::new(columns(), &self.look, false)?;
        let mut results = Vec::new();
        let mut out = (self.output == Form::Jsonl).then(|| self.look.out());
        while let Some(deletion) = deletions.recv().await {
            let shown = Shown::of(deletion);
            let sum = match shown.stage {
                "archive" => &mut archived,
                _ => sums.entry(shown.policy.clone()).or_default(),
            };
            sum.results += 1;
            sum.records += shown.records;
            sum.bytes += shown.bytes;
            match self.output {
                Form::Table => table.row(row(shown)),
                Form::Json => results.push(shown),
                Form::Jsonl => {
                    if let Some(out) = &mut out {
                        output::document(out, false, &shown)?;
                    }
                }
            }
        }
        match self.output {
            Form::Table => table.print(false, &self.look)?,
            Form::Json => {
                let policies = sums;
                let document = Document { policies, results };
                return output::document(self.look.out(), false, &document);
            }
            Form::Jsonl => drop(out),
        }
        for (policy, sum) in &sums {
            output::note(&format!(
                "policy {policy}: {} results with {} records and {} bytes {verb}",
                sum.results, sum.records, sum.bytes
            ));
        }
        if archived.results > 0 {
            let verb = match verb {
                "deleted" => "moved to the archive",
                _ => "would be moved to the archive",
            };
            output::note(&format!(
                "{} results with {} records and {} bytes {verb}",
                archived.results, archived.records, archived.bytes
            ));
        }
        if sums.is_empty() && archived.results == 0 {
            output::note("nothing is due");
        }
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::usual("stage", Cut::Never),
        Column::usual("policy", Cut::Middle),
        Column::usual("result", Cut::Middle),
        Column::more("uid", Cut::Never),
        Column::usual("ended", Cut::Never),
        Column::usual("records", Cut::Never),
        Column::usual("bytes", Cut::Never),
    ]
}

fn row(shown: Shown) -> Vec<Value> {
    vec![
        Value::of(shown.stage.to_owned()),
        Value::of(shown.policy),
        Value::of(shown.result),
        Value::of(shown.uid),
        Value::of(shown.ended),
        Value::of(shown.records.to_string()),
        Value::of(shown.bytes.to_string()),
    ]
}
