//! The command `hindsight top`: the pipelines that take most time, or fail most.

use std::{io::Write as _, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use hindsight_filter::run_filter;
use hindsight_filter::words::Now;
use hindsight_proto::v1::{AggregateGroup, AggregateRequest, AggregateResponse};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::tz::TimeZone;

use super::{
    connect::Connect,
    failure::Failure,
    output,
    place::Place,
    runs::Words,
    stats::{cell, document, exact, field},
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};

/// Moves to the first line of the terminal and clears what follows.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";
/// Columns, and what each is called among the groups of the answer.
const COLUMNS: [(&str, &str, Cut); 6] = [
    ("namespace", "namespace", Cut::Middle),
    ("pipeline", "pipeline", Cut::Middle),
    ("runs", "count", Cut::Never),
    ("failed", "failed", Cut::Never),
    ("time", "sum(duration)", Cut::Never),
    ("p95", "p95(duration)", Cut::Never),
];

/// What pipelines are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Time of all runs together
    Time,
    /// Runs that failed
    Failures,
    /// Number of runs
    Runs,
}

/// List the pipelines that take most time or fail most, again and again on a terminal
///
/// Runs that are part of another one do not count, nor timeouts as FAILED. TIME is that of all runs
/// together. Without a terminal the list is printed once, with tabs between values and times in seconds.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight top -A --since 90d --once
  hindsight top -n shop --since 2020-01-01 --once
  hindsight top -A --by failures --since 2020-01-01 --limit 5 --once")]
pub(super) struct Top {
    #[command(flatten)]
    place: Place,

    /// Only runs that started then or later: `24h` ago, `2026-03-02`, `today`
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: String,

    /// What pipelines are ordered by
    #[arg(long, value_enum, default_value_t = By::Time)]
    by: By,

    /// Maximum number of pipelines to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(i32).range(1..=1_000))]
    limit: i32,

    /// Seconds until the list is asked for again
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,

    /// Print the list once, also on terminals
    #[arg(long)]
    once: bool,

    /// Form of the output; JSON is that of `hindsight stats`
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    connect: Connect,
}

impl Top {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let screen = self.look.screen();
        let is_table = self.output == Form::Table;
        let repeats = screen.width.is_some() && is_table && !self.once;
        self.table(None)?;
        loop {
            let reply = self.asked().await?;
            if repeats {
                let lines = self.table(Some(&reply))?.lines(screen);
                let mut out = std::io::stdout().lock();
                writeln!(out, "{CLEAR}{}", lines.join("\n"))?;
                out.flush()?;
            } else {
                match self.output {
                    Form::Json | Form::Yaml => {
                        let is_yaml = self.output == Form::Yaml;
                        output::document(self.look.out(), is_yaml, &document(&reply))?;
                    }
                    Form::Table | Form::Csv => {
                        let table = self.table(Some(&reply))?;
                        table.print(self.output == Form::Csv, &self.look)?;
                    }
                }
            }
            if reply.groups.is_empty() {
                let place = self.place.said();
                output::note(&format!("no runs since {} {place}", self.since));
            }
            if !repeats {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::time::sleep(Duration::from_secs(self.every)).await;
        }
    }

    /// The table of an answer; it fails if there is no such column.
    fn table(&self, reply: Option<&AggregateResponse>) -> Result<Table, Failure> {
        let columns = COLUMNS.iter();
        let columns = columns.map(|(name, _, cut)| Column::usual(name, *cut));
        let mut table = Table::new(columns.collect(), &self.look, false)?;
        for group in reply.map(|reply| &reply.groups).into_iter().flatten() {
            let values = COLUMNS.iter().map(|(_, name, _)| {
                let value = value(group, name);
                Value::both(exact(name, value.as_ref()), cell(name, value.as_ref()))
            });
            table.row(values.collect());
        }
        Ok(table)
    }

    async fn asked(&self) -> Result<AggregateResponse, Failure> {
        let now = Now {
            time: SystemClock.now(),
            zone: TimeZone::system(),
        };
        let mut words = Words::of(&["is:top".to_owned()]);
        words.flag("--since ", "since:", &self.since);
        let since = words.filter(&now)?;
        let order = match self.by {
            By::Time => "sum(duration) desc",
            By::Failures => "failed desc",
            By::Runs => "count desc",
        };
        let request = AggregateRequest {
            parent: self.place.within(None),
            filter: format!("({}\n) && {}", since, run_filter()),
            group_by: vec!["namespace".to_owned(), "pipeline".to_owned()],
            measures: vec!["count,failed,sum(duration),p95(duration)".to_owned()],
            order_by: order.to_owned(),
            limit: self.limit,
            ..AggregateRequest::default()
        };
        let reply = self.connect.client()?.queries().aggregate(request).await;
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(reply.into_inner())
    }
}

/// What a column says of a group.
fn value(group: &AggregateGroup, name: &str) -> Option<prost_types::value::Kind> {
    let of = |fields| field(fields, name).cloned();
    of(group.keys.as_ref()).or_else(|| of(group.measures.as_ref()))
}
