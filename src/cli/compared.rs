//! What `hindsight slow` and `hindsight flaky` share: which runs they compare, and how the answer names
//! pipelines and runs.

use clap::Args;
use hindsight_client::Runs;
use hindsight_proto::{
    Message,
    v1::{RunPoint, RunSeries},
};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::tz::TimeZone;
use tonic::{Response, Status};

use super::{
    cluster::InCluster,
    connect::Connect,
    failure::Failure,
    output,
    place::Place,
    selection::Selection,
    table::{Form, Look, Value},
};

/// Runs that are compared with each other, and the form of the answer.
#[derive(Debug, Args)]
pub(super) struct Compared {
    /// What runs must match
    words: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    cluster: InCluster,

    #[command(flatten)]
    pub(super) rows: Selection,

    /// How many days back runs are compared
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=90))]
    pub(super) days: i32,

    /// Compare runs that are part of another one, too
    #[arg(long)]
    pub(super) parts: bool,

    /// Maximum number of rows to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=1_000))]
    pub(super) limit: i32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub(super) output: Form,

    #[command(flatten)]
    pub(super) look: Look,

    #[command(flatten)]
    connect: Connect,
}

impl Compared {
    /// The words, as a query.
    pub(super) fn query(&self) -> String {
        self.words.join(" ")
    }

    /// The parent whose runs are compared.
    pub(super) fn parent(&self) -> String {
        self.cluster.within(&self.place, None)
    }

    /// What runs must match in CEL.
    pub(super) fn filter(&self) -> Result<String, Failure> {
        self.cluster.filter(&self.place, &self.rows.filter)
    }

    /// The calls about runs.
    pub(super) fn runs(&self) -> Result<Runs, Failure> {
        Ok(self.connect.client()?.runs())
    }

    /// What the server answered.
    pub(super) fn answered<T>(&self, reply: Result<Response<T>, Status>) -> Result<T, Failure> {
        let reply = reply.map_err(|status| self.connect.failure(&status))?;
        Ok(reply.into_inner())
    }

    /// Prints the answer as the REST API gives it.
    pub(super) fn message(&self, name: &str, message: &impl Message) -> Result<(), Failure> {
        output::message(self.look.out(), self.output == Form::Yaml, name, message)
    }

    /// Says that nothing was found among so many runs.
    pub(super) fn note_nothing(&self, what: &str, read: &str) {
        let place = self.place.said();
        output::note(&format!(
            "{what} in {} days {place}; {read} were read",
            self.days
        ));
    }

    /// Says that runs are missing from the answer, if they are.
    pub(super) fn note_incomplete(&self, incomplete: bool, read: i64) {
        if incomplete {
            output::note(&format!(
                "more runs match than one call compares; these are the {read} stored last"
            ));
        }
    }
}

/// The name of the local time zone; empty, which is UTC, if it has none.
pub(super) fn time_zone() -> String {
    let zone = TimeZone::system();
    zone.iana_name().unwrap_or_default().to_owned()
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

/// A run by its name, for people with its age, and the time of its start.
pub(super) fn point(of: Option<&RunPoint>) -> [Value; 2] {
    let Some(of) = of else {
        return [Value::default(), Value::default()];
    };
    match of.start_time.and_then(output::time) {
        Some(start) => {
            let ago = output::ago(Some(start), SystemClock.now());
            let shown = format!("{} ({ago})", of.name);
            [Value::both(&of.name, shown), Value::of(start.to_string())]
        }
        None => [Value::of(&of.name), Value::default()],
    }
}
