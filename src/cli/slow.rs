//! The command `hindsight slow`: pipelines that became slower.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{
    ListRegressionsRequest, ListRegressionsResponse, Regression, RunDurations, regression::Kind,
};

use super::{
    compared::{Compared, name, point, time_zone},
    failure::Failure,
    output,
    table::{Column, Form, Table, Value},
    terminal::Cut,
};

/// List pipelines that became slower, and the run with which it began
///
/// Successful runs of each pipeline are compared with earlier ones at the same time of day. `slower` is
/// a pipeline most of whose runs take longer, `tail` one whose slow runs became slower or more
/// frequent. BEFORE and AFTER are the median and the 95th percentile of durations. `until` is the run
/// with which the next change began, up or down.
#[derive(Debug, Args)]
#[command(
    after_long_help = "WORDS are those of `hindsight runs`. A pipeline is judged from its thirtieth successful run on, if these
cover two days.

Examples:
  hindsight slow -A
  hindsight slow -n ci pipeline:release --days 90
  hindsight slow -A --parts -o json"
)]
pub(super) struct Slow {
    #[command(flatten)]
    asked: Compared,
}

impl Slow {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let asked = &self.asked;
        let mut table = Table::new(columns(), &asked.look, false)?;
        let request = ListRegressionsRequest {
            parent: asked.parent(),
            filter: asked.filter()?,
            query: asked.query(),
            time_zone: time_zone(),
            days: asked.days,
            parts: asked.parts,
            limit: asked.limit,
        };
        let mut runs = asked.runs()?;
        let reply = runs.list_regressions(asked.rows.request(request)?).await;
        let reply = asked.answered(reply)?;
        match asked.output {
            Form::Table | Form::Csv => self.print(&reply, &mut table)?,
            Form::Json | Form::Yaml => {
                asked.message("hindsight.v1.ListRegressionsResponse", &reply)?;
            }
        }
        asked.note_incomplete(reply.incomplete, reply.runs_read);
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListRegressionsResponse, table: &mut Table) -> Result<(), Failure> {
        for regression in &reply.regressions {
            table.row(row(regression));
        }
        table.print(self.asked.output == Form::Csv, &self.asked.look)?;
        if reply.regressions.is_empty() {
            let read = format!("{} successful runs", reply.runs_read);
            self.asked.note_nothing("nothing became slower", &read);
        }
        if reply.regressions_left_out > 0 {
            let more = reply.regressions_left_out;
            output::note(&format!("{more} earlier changes: raise --limit"));
        }
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::usual("pipeline", Cut::Middle),
        Column::usual("kind", Cut::Never),
        Column::usual("change", Cut::Never),
        Column::usual("before", Cut::Never),
        Column::usual("after", Cut::Never),
        Column::usual("ratio", Cut::Never),
        Column::usual("since", Cut::Middle),
        Column::more("since_started", Cut::Never),
        Column::usual("until", Cut::Middle),
        Column::more("until_started", Cut::Never),
        Column::more("before_p50", Cut::Never),
        Column::more("before_p95", Cut::Never),
        Column::more("after_p50", Cut::Never),
        Column::more("after_p95", Cut::Never),
    ]
}

fn row(it: &Regression) -> Vec<Value> {
    let series = it.series.clone().unwrap_or_default();
    let change = match it.kind() {
        Kind::Tail => "tail",
        Kind::Slower | Kind::Unspecified => "slower",
    };
    let [since, since_started] = point(it.began.as_ref());
    let [until, until_started] = point(it.ended.as_ref());
    let [before, before_p50, before_p95] = durations(it.before.as_ref());
    let [after, after_p50, after_p95] = durations(it.after.as_ref());
    vec![
        Value::of(name(&series)),
        Value::of(series.kind),
        Value::of(change),
        before,
        after,
        Value::of(format!("{:.2}", it.ratio)),
        since,
        since_started,
        until,
        until_started,
        before_p50,
        before_p95,
        after_p50,
        after_p95,
    ]
}

/// The median and the 95th percentile: both for people, then each for programs.
fn durations(of: Option<&RunDurations>) -> [Value; 3] {
    let of = of.copied().unwrap_or_default();
    let exact = [of.p50_seconds, of.p95_seconds].map(|it| it.to_string());
    let [p50, p95] = [of.p50_seconds, of.p95_seconds].map(output::seconds);
    let both = Value::both(exact.join(" "), format!("{p50}, {p95}"));
    let [exact_p50, exact_p95] = exact;
    [
        both,
        Value::both(exact_p50, p50),
        Value::both(exact_p95, p95),
    ]
}
