//! The command `hindsight flaky`: pipelines that fail and succeed on one version.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{FlakyPipeline, ListFlakyRequest, ListFlakyResponse};

use super::{
    compared::{Compared, name, point, time_zone},
    failure::Failure,
    output,
    table::{Column, Form, Table, Value},
    terminal::Cut,
};

/// List pipelines that succeed and fail on the same code
///
/// EPISODES is how often a pipeline failed on a version of its code that succeeded too; failures
/// without a success between them are one episode. From the second one on it is `flaky`. FAILED and
/// SUCCEEDED are the latest two runs that show it.
#[derive(Debug, Args)]
#[command(
    after_long_help = "WORDS are those of `hindsight runs`. Runs without a label that names their version do not count. A pipeline is
judged from its fifth run on.

Examples:
  hindsight flaky -A
  hindsight flaky -n ci pipeline:release --days 90
  hindsight flaky -A --version-label app.kubernetes.io/version -o json"
)]
pub(super) struct Flaky {
    #[command(flatten)]
    asked: Compared,

    /// Label that names the version of the code; may be given several times, the first that a run has
    /// counts. Default: pipelinesascode.tekton.dev/sha, tekton.dev/commit
    #[arg(long, value_name = "KEY")]
    version_label: Vec<String>,
}

impl Flaky {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let asked = &self.asked;
        let mut table = Table::new(columns(), &asked.look, false)?;
        let request = ListFlakyRequest {
            parent: asked.parent(),
            filter: asked.filter()?,
            query: asked.query(),
            time_zone: time_zone(),
            days: asked.days,
            parts: asked.parts,
            limit: asked.limit,
            version_labels: self.version_label.clone(),
        };
        let mut runs = asked.runs()?;
        let reply = runs.list_flaky(asked.rows.request(request)?).await;
        let reply = asked.answered(reply)?;
        match asked.output {
            Form::Table | Form::Csv => self.print(&reply, &mut table)?,
            Form::Json | Form::Yaml => {
                asked.message("hindsight.v1.ListFlakyResponse", &reply)?;
            }
        }
        asked.note_incomplete(reply.incomplete, reply.runs_read);
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListFlakyResponse, table: &mut Table) -> Result<(), Failure> {
        for pipeline in &reply.pipelines {
            table.row(row(pipeline));
        }
        table.print(self.asked.output == Form::Csv, &self.asked.look)?;
        if reply.pipelines.is_empty() {
            let read = format!("{} runs", reply.runs_read);
            let nothing = "nothing failed and succeeded on one version";
            self.asked.note_nothing(nothing, &read);
        }
        if reply.pipelines_left_out > 0 {
            let more = reply.pipelines_left_out;
            output::note(&format!("{more} more pipelines: raise --limit"));
        }
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::usual("pipeline", Cut::Middle),
        Column::usual("kind", Cut::Never),
        Column::usual("verdict", Cut::Never),
        Column::usual("episodes", Cut::Never),
        Column::usual("runs", Cut::Never),
        Column::usual("version", Cut::Middle),
        Column::usual("failed", Cut::Middle),
        Column::more("failed_started", Cut::Never),
        Column::usual("succeeded", Cut::Middle),
        Column::more("succeeded_started", Cut::Never),
    ]
}

fn row(it: &FlakyPipeline) -> Vec<Value> {
    let series = it.series.clone().unwrap_or_default();
    let pair = it.pairs.last().cloned().unwrap_or_default();
    let verdict = if it.flaky { "flaky" } else { "suspected" };
    let [failed, failed_started] = point(pair.failed.as_ref());
    let [succeeded, succeeded_started] = point(pair.succeeded.as_ref());
    vec![
        Value::of(name(&series)),
        Value::of(series.kind),
        Value::of(verdict),
        Value::of(it.episodes.to_string()),
        Value::of(it.runs.to_string()),
        Value::of(pair.version),
        failed,
        failed_started,
        succeeded,
        succeeded_started,
    ]
}
