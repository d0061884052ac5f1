//! The command `hindsight slow`: pipelines that became slower.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{
    ListRegressionsRequest, ListRegressionsResponse, Regression, RunDurations, regression::Kind,
};

use super::{
    compared::{Compared, name, point, time_zone},
    failure::Failure,
    output::{self, Form},
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
            Form::Text => self.print(&reply)?,
            form => output::message(form, "hindsight.v1.ListRegressionsResponse", &reply)?,
        }
        asked.note_incomplete(reply.incomplete, reply.runs_read);
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListRegressionsResponse) -> Result<(), Failure> {
        if reply.regressions.is_empty() {
            let read = format!("{} successful runs", reply.runs_read);
            self.asked.note_nothing("nothing became slower", &read);
            return Ok(());
        }
        let rows: Vec<_> = reply.regressions.iter().map(row).collect();
        let header = [
            "PIPELINE", "KIND", "CHANGE", "BEFORE", "AFTER", "RATIO", "SINCE",
        ];
        output::table(&header, &rows)?;
        if reply.regressions_left_out > 0 {
            let more = reply.regressions_left_out;
            output::note(&format!("{more} earlier changes: raise --limit"));
        }
        Ok(())
    }
}

fn row(it: &Regression) -> Vec<String> {
    let series = it.series.clone().unwrap_or_default();
    let change = match it.kind() {
        Kind::Tail => "tail",
        Kind::Slower | Kind::Unspecified => "slower",
    };
    let mut since = point(it.began.as_ref());
    if it.ended.is_some() {
        since = format!("{since} until {}", point(it.ended.as_ref()));
    }
    vec![
        name(&series),
        series.kind,
        change.to_owned(),
        durations(it.before.as_ref()),
        durations(it.after.as_ref()),
        format!("{:.2}", it.ratio),
        since,
    ]
}

fn durations(of: Option<&RunDurations>) -> String {
    let of = of.copied().unwrap_or_default();
    let [p50, p95] = [of.p50_seconds, of.p95_seconds].map(output::seconds);
    format!("{p50}, {p95}")
}
