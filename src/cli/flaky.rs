//! The command `hindsight flaky`: pipelines that fail and succeed on one version.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{FlakyPipeline, ListFlakyRequest, ListFlakyResponse};

use super::{
    compared::{Compared, name, point, time_zone},
    failure::Failure,
    output::{self, Form},
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
            Form::Text => self.print(&reply)?,
            form => output::message(form, "hindsight.v1.ListFlakyResponse", &reply)?,
        }
        asked.note_incomplete(reply.incomplete, reply.runs_read);
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListFlakyResponse) -> Result<(), Failure> {
        if reply.pipelines.is_empty() {
            let read = format!("{} runs", reply.runs_read);
            let nothing = "nothing failed and succeeded on one version";
            self.asked.note_nothing(nothing, &read);
            return Ok(());
        }
        let rows: Vec<_> = reply.pipelines.iter().map(row).collect();
        let header = [
            "PIPELINE",
            "KIND",
            "VERDICT",
            "EPISODES",
            "RUNS",
            "VERSION",
            "FAILED",
            "SUCCEEDED",
        ];
        output::table(&header, &rows)?;
        if reply.pipelines_left_out > 0 {
            let more = reply.pipelines_left_out;
            output::note(&format!("{more} more pipelines: raise --limit"));
        }
        Ok(())
    }
}

fn row(it: &FlakyPipeline) -> Vec<String> {
    let series = it.series.clone().unwrap_or_default();
    let pair = it.pairs.last().cloned().unwrap_or_default();
    let verdict = if it.flaky { "flaky" } else { "suspected" };
    vec![
        name(&series),
        series.kind,
        verdict.to_owned(),
        it.episodes.to_string(),
        it.runs.to_string(),
        pair.version,
        point(pair.failed.as_ref()),
        point(pair.succeeded.as_ref()),
    ]
}
