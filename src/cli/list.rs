//! `hindsight list`.

use std::{io::Write as _, process::ExitCode};

use clap::{Args, ValueEnum};
use hindsight_proto::v1alpha2 as pb;
use hindsight_run::json;
use hindsight_run::{Outcome, View};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    connect::Connect,
    failure::Failure,
    output::{self, ListView, RecordView, ResultView},
    place::Place,
    selection::Selection,
    table::{Column, Look, Table, Value},
    terminal::Cut,
};
use hindsight_runtime::clock::{Clock as _, SystemClock};

/// Rows asked for in one call.
const PAGE: u32 = 500;

/// Kinds of things that `hindsight list` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Records of runs: TaskRuns, PipelineRuns, CustomRuns, Runs, Workflows, Jobs, RayJobs,
    /// RayClusters and declared kinds
    #[value(alias = "run")]
    Runs,
    /// Records of any type, those of runs among them
    #[value(alias = "record")]
    Records,
    /// Results, each with its summary of a run
    #[value(alias = "result")]
    Results,
}

/// In which form rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Columns that fit the terminal; values between tabs where the output is no terminal
    Table,
    /// The same with more columns, such as UIDs and etags
    Wide,
    /// Full names of results or records, one a line
    Name,
    /// One JSON document; records have their payloads byte for byte
    Json,
    /// A JSON object a line, printed while a list of runs is read
    Jsonl,
    /// Values between commas
    Csv,
    /// The same document as JSON, written in YAML; what steers terminals is escaped in texts
    Yaml,
}

/// Which rows, in which order.
#[derive(Debug, Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub(super) rows: Selection,

    /// Fields to order by, such as `duration desc, create_time`
    #[arg(
        long,
        value_name = "FIELD [asc|desc],...",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) order_by: String,
}

/// List runs, records or results, those that were stored last first
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight list runs -n ci
  hindsight list runs -A --filter 'data.status.conditions[0].reason == \"Failed\"'
  hindsight list runs -A --filter 'taskrun.metadata.name.startsWith(\"build-\")' -o wide
  hindsight list runs -n ci -l app=shop,tier!=test --order-by 'duration desc'
  hindsight list results -n ci --filter 'summary.status == FAILURE' -o json")]
pub(super) struct List {
    /// Whether runs, all records or results are listed
    #[arg(value_enum)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Only the records of this result: its id, or its full name
    #[arg(long, value_name = "RESULT")]
    result: Option<String>,

    #[command(flatten)]
    asked: Asked,

    /// Maximum number of rows to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue where an earlier list ended
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    page_token: String,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    connect: Connect,
}

/// Rows and the token of what follows them.
type Rows<T> = (Vec<T>, String);

impl List {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let wide = self.output == Form::Wide;
        let table = Table::new(columns(self.what), &self.look, wide)?;
        let parent = self.place.parent();
        match self.what {
            What::Results if self.result.is_some() => {
                return Err(Failure::usage(
                    "--result picks the records of a result; see one with `hindsight get result`",
                ));
            }
            What::Results => {
                let (results, next) = self.results(parent).await?;
                self.print_results(results, table, next)?;
            }
            What::Runs | What::Records => {
                let (records, next) = self.records().await?;
                self.print_records(records, table, next)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn results(&self, parent: &str) -> Result<Rows<pb::Result>, Failure> {
        let mut rpc = self.connect.client()?.rpc();
        let (mut rows, mut token) = (Vec::new(), self.page_token.clone());
        loop {
            let request = pb::ListResultsRequest {
                parent: parent.to_owned(),
                filter: self.asked.rows.filter.clone(),
                order_by: self.asked.order_by.clone(),
                page_size: self.next_page(rows.len()),
                page_token: token,
            };
            let reply = rpc.list_results(self.asked.rows.request(request)?).await;
            let reply = reply
                .map_err(|status| self.connect.failure(&status))?
                .into_inner();
            rows.extend(reply.results);
            token = reply.next_page_token;
            if token.is_empty() || rows.len() >= self.limit as usize {
                return Ok((rows, token));
            }
        }
    }

    async fn records(&self) -> Result<Rows<pb::Record>, Failure> {
        let mut rpc = self.connect.client()?.rpc();
        let within = self.place.within(self.result.as_deref());
        let filter = self.asked.rows.record_filter(self.what == What::Runs)?;
        let (mut rows, mut token) = (Vec::new(), self.page_token.clone());
        loop {
            let request = pb::ListRecordsRequest {
                parent: within.clone(),
                filter: filter.clone(),
                order_by: self.asked.order_by.clone(),
                page_size: self.next_page(rows.len()),
                page_token: token,
            };
            let reply = rpc.list_records(self.asked.rows.request(request)?).await;
            let reply = reply.map_err(|status| self.connect.failure(&status))?;
            output::warnings(reply.metadata());
            let reply = reply.into_inner();
            rows.extend(reply.records);
            token = reply.next_page_token;
            if token.is_empty() || rows.len() >= self.limit as usize {
                return Ok((rows, token));
            }
        }
    }

    fn next_page(&self, have: usize) -> i32 {
        let left = self
            .limit
            .saturating_sub(u32::try_from(have).unwrap_or(u32::MAX));
        i32::try_from(left.clamp(1, PAGE)).unwrap_or(i32::MAX)
    }

    fn print_results(
        &self,
        results: Vec<pb::Result>,
        mut table: Table,
        next: String,
    ) -> Result<(), Failure> {
        if let Form::Json | Form::Yaml | Form::Jsonl = self.output {
            let items = results.into_iter().map(ResultView::from).collect();
            return self.documents(items, next);
        }
        let now = SystemClock.now();
        let names = results.iter().map(|result| result.name.as_str()).collect();
        for result in &results {
            table.row(result_row(result, now));
        }
        self.finish(&table, names, &next)
    }

    fn print_records(
        &self,
        records: Vec<pb::Record>,
        mut table: Table,
        next: String,
    ) -> Result<(), Failure> {
        if let Form::Json | Form::Yaml | Form::Jsonl = self.output {
            let items = records.into_iter().map(RecordView::from).collect();
            return self.documents(items, next);
        }
        let now = SystemClock.now();
        let names = records.iter().map(|record| record.name.as_str()).collect();
        for record in &records {
            table.row(record_row(record, self.what == What::Runs, now));
        }
        self.finish(&table, names, &next)
    }

    fn documents<T: Serialize>(&self, items: Vec<T>, next: String) -> Result<(), Failure> {
        let mut out = self.look.out();
        if self.output == Form::Jsonl {
            for item in &items {
                output::document(&mut out, false, item)?;
            }
            drop(out);
            note_more(&next);
            return Ok(());
        }
        let list = ListView {
            items,
            next_page_token: next,
        };
        output::document(out, self.output == Form::Yaml, &list)
    }

    fn finish(&self, table: &Table, names: Vec<&str>, next: &str) -> Result<(), Failure> {
        match self.output {
            Form::Name => {
                let mut out = self.look.out();
                for name in names {
                    writeln!(out, "{}", output::plain(name, false))?;
                }
            }
            form => table.print(form == Form::Csv, &self.look)?,
        }
        if table.is_empty() {
            let what = match self.what {
                What::Runs => "runs",
                What::Records => "records",
                What::Results => "results",
            };
            output::note(&format!("no {what} found {}", self.place.said()));
        }
        note_more(next);
        Ok(())
    }
}

fn note_more(next: &str) {
    if !next.is_empty() {
        output::note(&format!(
            "there are more rows: raise --limit, or continue with --page-token {next}"
        ));
    }
}

/// The columns of lists of these.
fn columns(what: What) -> Vec<Column> {
    let first = match what {
        What::Results => [("name", Cut::Middle), ("about", Cut::Middle)].as_slice(),
        What::Runs => &[
            ("namespace", Cut::Middle),
            ("name", Cut::Middle),
            ("kind", Cut::Never),
        ],
        What::Records => &[("name", Cut::Middle), ("type", Cut::Middle)],
    };
    let first = first.iter().map(|(name, cut)| Column::usual(name, *cut));
    let times = ["started", "duration"].map(|name| Column::usual(name, Cut::Never));
    let more = match what {
        What::Results => ["uid", "etag"].as_slice(),
        What::Runs => &["record"],
        What::Records => &["etag"],
    };
    let more = more.iter().map(|name| Column::more(name, Cut::Middle));
    let status = [Column::usual("status", Cut::End)];
    first.chain(times).chain(more).chain(status).collect()
}

/// When a run started, and how long it took.
fn times(start: Option<Timestamp>, end: Option<Timestamp>, now: Timestamp) -> [Value; 2] {
    let started = start.map_or_else(Value::default, |start| {
        Value::both(start.to_string(), output::ago(Some(start), now))
    });
    let took = start.zip(end).map_or_else(Value::default, |(start, end)| {
        let seconds = end.duration_since(start).as_secs_f64();
        Value::both(seconds.to_string(), output::took(Some(start), Some(end)))
    });
    [started, took]
}

fn result_row(result: &pb::Result, now: Timestamp) -> Vec<Value> {
    let summary = result.summary.as_ref();
    let start = summary.and_then(|s| s.start_time).and_then(output::time);
    let end = summary.and_then(|s| s.end_time).and_then(output::time);
    let about = result.annotations.get("object.metadata.name").cloned();
    let [started, took] = times(start, end, now);
    vec![
        Value::of(&result.name),
        Value::of(about.unwrap_or_default()),
        started,
        took,
        Value::of(&result.uid),
        Value::of(&result.etag),
        Value::status(summary.map_or_else(String::new, output::status_name)),
    ]
}

fn record_row(record: &pb::Record, runs: bool, now: Timestamp) -> Vec<Value> {
    let data = record.data.clone().unwrap_or_default();
    let object = json::parse(&data.value).unwrap_or_default();
    let view = View::new(&object);
    let text = |text: Option<&str>| Value::of(text.unwrap_or_default());
    let mut row = match runs {
        true => vec![text(view.namespace()), text(view.name()), text(view.kind())],
        false => vec![Value::of(&record.name), Value::of(&data.r#type)],
    };
    row.extend(times(view.started(), view.ended(), now));
    row.push(Value::of(if runs { &record.name } else { &record.etag }));
    let status = run_status(&view);
    row.push(Value::status(if status == "-" {
        ""
    } else {
        status.as_str()
    }));
    row
}

/// How a run stands, in a word or two.
pub(super) fn run_status(view: &View<'_>) -> String {
    let finish = view.finish();
    let reason = finish.reason.unwrap_or_default();
    let word = match finish.outcome {
        Outcome::Success => "Succeeded",
        Outcome::Failure => "Failed",
        Outcome::Timeout => "Timeout",
        Outcome::Cancelled => "Cancelled",
        Outcome::Unknown if view.closed().is_some() => "Vanished",
        Outcome::Unknown if reason.is_empty() => return "-".to_owned(),
        Outcome::Unknown => "Running",
    };
    if reason == word || reason.is_empty() || (word == "Succeeded" && reason == "Completed") {
        word.to_owned()
    } else {
        format!("{word}({reason})")
    }
}
