//! `hindsight list`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hindsight_proto::v1alpha2 as pb;
use hindsight_run::json;
use hindsight_run::{Outcome, View};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    connect::Connect,
    failure::Failure,
    output::{self, Format, ListView, RecordView, ResultView},
    place::Place,
    selection::Selection,
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
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,

    #[command(flatten)]
    connect: Connect,
}

/// Rows and the token of what follows them.
type Rows<T> = (Vec<T>, String);

impl List {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let parent = self.place.parent();
        match self.what {
            What::Results if self.result.is_some() => {
                return Err(Failure::usage(
                    "--result picks the records of a result; see one with `hindsight get result`",
                ));
            }
            What::Results => {
                let (results, next) = self.results(parent).await?;
                self.print_results(results, next)?;
            }
            What::Runs | What::Records => {
                let (records, next) = self.records().await?;
                self.print_records(records, next)?;
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

    fn print_results(&self, results: Vec<pb::Result>, next: String) -> Result<(), Failure> {
        if matches!(self.output, Format::Json | Format::Yaml) {
            let items = results.into_iter().map(ResultView::from).collect();
            return self.document(items, next);
        }
        let now = SystemClock.now();
        let wide = self.output == Format::Wide;
        let mut header = vec!["NAME", "ABOUT", "STARTED", "DURATION"];
        if wide {
            header.extend(["UID", "ETAG"]);
        }
        header.push("STATUS");
        let rows: Vec<_> = results
            .iter()
            .map(|result| result_row(result, wide, now))
            .collect();
        self.finish("results", &header, &rows, &next)
    }

    fn print_records(&self, records: Vec<pb::Record>, next: String) -> Result<(), Failure> {
        if matches!(self.output, Format::Json | Format::Yaml) {
            let items = records.into_iter().map(RecordView::from).collect();
            return self.document(items, next);
        }
        let now = SystemClock.now();
        let wide = self.output == Format::Wide;
        let runs = self.what == What::Runs;
        let mut header = if runs {
            vec!["NAMESPACE", "NAME", "KIND"]
        } else {
            vec!["NAME", "TYPE"]
        };
        header.extend(["STARTED", "DURATION"]);
        if wide {
            header.push(if runs { "RECORD" } else { "ETAG" });
        }
        header.push("STATUS");
        let rows: Vec<_> = records
            .iter()
            .map(|record| record_row(record, runs, wide, now))
            .collect();
        self.finish(if runs { "runs" } else { "records" }, &header, &rows, &next)
    }

    fn document<T: Serialize>(&self, items: Vec<T>, next: String) -> Result<(), Failure> {
        let list = ListView {
            items,
            next_page_token: next,
        };
        output::document(self.output, &list)
    }

    fn finish(
        &self,
        what: &str,
        header: &[&str],
        rows: &[Vec<String>],
        next: &str,
    ) -> Result<(), Failure> {
        if rows.is_empty() {
            output::note(&format!("no {what} found {}", self.place.said()));
            return Ok(());
        }
        output::table(header, rows)?;
        if !next.is_empty() {
            output::note(&format!(
                "there are more rows: raise --limit, or continue with --page-token {next}"
            ));
        }
        Ok(())
    }
}

fn result_row(result: &pb::Result, wide: bool, now: Timestamp) -> Vec<String> {
    let summary = result.summary.as_ref();
    let start = summary.and_then(|s| s.start_time).and_then(output::time);
    let end = summary.and_then(|s| s.end_time).and_then(output::time);
    let about = result.annotations.get("object.metadata.name").cloned();
    let mut row = vec![
        result.name.clone(),
        about.unwrap_or_else(|| "-".to_owned()),
        output::ago(start, now),
        output::took(start, end),
    ];
    if wide {
        row.extend([result.uid.clone(), result.etag.clone()]);
    }
    row.push(summary.map_or_else(|| "-".to_owned(), output::status_name));
    row
}

fn record_row(record: &pb::Record, runs: bool, wide: bool, now: Timestamp) -> Vec<String> {
    let data = record.data.clone().unwrap_or_default();
    let object = json::parse(&data.value).unwrap_or_default();
    let view = View::new(&object);
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let mut row = if runs {
        vec![
            or_dash(view.namespace()),
            or_dash(view.name()),
            or_dash(view.kind()),
        ]
    } else {
        vec![
            record.name.clone(),
            or_dash(Some(data.r#type.as_str()).filter(|t| !t.is_empty())),
        ]
    };
    row.extend([
        output::ago(view.started(), now),
        output::took(view.started(), view.ended()),
    ]);
    if wide {
        row.push(if runs {
            record.name.clone()
        } else {
            record.etag.clone()
        });
    }
    row.push(run_status(&view));
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
