//! The command `hindsight slow`: pipelines that became slower.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{
    ListRegressionsRequest, ListRegressionsResponse, Regression, RunDurations, RunPoint, RunSeries,
    regression::Kind,
};
use jiff::tz::TimeZone;

use super::{
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    output::{self, Form},
    place::Place,
    selection::Selection,
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
    /// What runs must match
    words: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: InCluster,

    #[command(flatten)]
    rows: Selection,

    /// How many days back runs are compared
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=90))]
    days: i32,

    /// Compare runs that are part of another one, too
    #[arg(long)]
    parts: bool,

    /// Maximum number of changes to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=1_000))]
    limit: i32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,

    #[command(flatten)]
    connect: Connect,
}

impl Slow {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let zone = TimeZone::system();
        let request = ListRegressionsRequest {
            parent: self.cluster.within(&self.place, None),
            filter: self.cluster.filter(&self.place, &self.rows.filter)?,
            query: self.words.join(" "),
            time_zone: zone.iana_name().unwrap_or_default().to_owned(),
            days: self.days,
            parts: self.parts,
            limit: self.limit,
        };
        let mut runs = self.connect.client()?.runs();
        let reply = runs.list_regressions(self.rows.request(request)?).await;
        let reply = reply
            .map_err(|status| self.connect.failure(&status))?
            .into_inner();
        match self.output {
            Form::Text => self.print(&reply)?,
            form => output::message(form, "hindsight.v1.ListRegressionsResponse", &reply)?,
        }
        if reply.incomplete {
            output::note(&format!(
                "more runs match than one call compares; these are the {} stored last",
                reply.runs_read
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, reply: &ListRegressionsResponse) -> Result<(), Failure> {
        if reply.regressions.is_empty() {
            output::note(&format!(
                "nothing became slower in {} days {}; {} successful runs were read",
                self.days,
                self.place.said(),
                reply.runs_read
            ));
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

/// The namespace, or else the parent, with the pipeline and the task.
pub(super) fn name(series: &RunSeries) -> String {
    let place = match series.namespace.as_str() {
        "" => &series.parent,
        namespace => namespace,
    };
    let parts = [place, &series.pipeline, &series.task];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn durations(of: Option<&RunDurations>) -> String {
    let of = of.copied().unwrap_or_default();
    let [p50, p95] = [of.p50_seconds, of.p95_seconds].map(output::seconds);
    format!("{p50}, {p95}")
}

pub(super) fn point(of: Option<&RunPoint>) -> String {
    let Some(of) = of else {
        return String::new();
    };
    match of.start_time.and_then(output::time) {
        Some(start) => format!("{} ({start})", of.name),
        None => of.name.clone(),
    }
}
