//! The command `hindsight flaky`: pipelines that fail and succeed on one version.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{FlakyPipeline, ListFlakyRequest, ListFlakyResponse};
use jiff::tz::TimeZone;

use super::{
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    output::{self, Form},
    place::Place,
    selection::Selection,
    slow::{name, point},
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
    /// What runs must match
    words: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: InCluster,

    #[command(flatten)]
    rows: Selection,

    /// Label that names the version of the code; may be given several times, the first that a run has
    /// counts. Default: pipelinesascode.tekton.dev/sha, tekton.dev/commit
    #[arg(long, value_name = "KEY")]
    version_label: Vec<String>,

    /// How many days back runs are compared
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=90))]
    days: i32,

    /// Compare runs that are part of another one, too
    #[arg(long)]
    parts: bool,

    /// Maximum number of pipelines to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=1_000))]
    limit: i32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,

    #[command(flatten)]
    connect: Connect,
}

impl Flaky {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let zone = TimeZone::system();
        let request = ListFlakyRequest {
            parent: self.cluster.within(&self.place, None),
            filter: self.cluster.filter(&self.place, &self.rows.filter)?,
            query: self.words.join(" "),
            time_zone: zone.iana_name().unwrap_or_default().to_owned(),
            days: self.days,
            parts: self.parts,
            limit: self.limit,
            version_labels: self.version_label.clone(),
        };
        let mut runs = self.connect.client()?.runs();
        let reply = runs.list_flaky(self.rows.request(request)?).await;
        let reply = reply
            .map_err(|status| self.connect.failure(&status))?
            .into_inner();
        match self.output {
            Form::Text => self.print(&reply)?,
            form => output::message(form, "hindsight.v1.ListFlakyResponse", &reply)?,
        }
        if reply.incomplete {
            output::note(&format!(
                "more runs match than one call compares; these are the {} stored last",
                reply.runs_read
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListFlakyResponse) -> Result<(), Failure> {
        if reply.pipelines.is_empty() {
            output::note(&format!(
                "nothing failed and succeeded on one version in {} days {}; {} runs were read",
                self.days,
                self.place.said(),
                reply.runs_read
            ));
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
