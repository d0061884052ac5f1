//! The command `hindsight diff`: two runs side by side.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hindsight_proto::v1::{DiffRunsRequest, Difference, RunDiff, difference::Category};

use super::{
    failure::Failure,
    output,
    run_ref::{Lookup, RUN},
    table::{Column, Form, Look, Table, Value},
    terminal::Cut,
};

/// Most cells of a value in a text.
pub(super) const VALUE: usize = 60;

/// What to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Parameters of the run
    Params,
    /// Images and their digests
    Images,
    /// References to pipelines and tasks, and what they were resolved to
    References,
    /// Environment variables of steps
    Environment,
    /// Anything else of the specification
    Spec,
    /// Labels and annotations
    Metadata,
    /// How long tasks and steps waited and took
    Timings,
}

/// Compare two runs, or a run with the last success before it
///
/// Only what differs is shown: before on the left, which is run B, after on the right, which is run
/// A. What every run has anew is not compared: UIDs, the status, notes of controllers. A time differs
/// if it changed by at least one second and a tenth of what it was.
#[derive(Debug, Args)]
#[command(after_long_help = format!("A and B are each a RUN. Without B, A is compared with the last successful run of the same pipeline and
namespace that started before it.

{RUN}

Examples:
  hindsight diff release-42 -n shop
  hindsight diff shop/release-42 shop/release-40 --only params,images
  hindsight diff @last-failed -n shop --only timings -o json"))]
pub(super) struct Diff {
    /// Run to compare
    a: String,

    /// Run that it is compared with; by default the last success before A
    b: Option<String>,

    /// Compare only these, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    only: Vec<Only>,

    /// Most differences, up to 10000
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: i32,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    lookup: Lookup,
}

impl Diff {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let a = self.lookup.record(&self.a).await?;
        let b = match &self.b {
            Some(b) => self.lookup.record(b).await?,
            None => String::new(),
        };
        let connect = &self.lookup.connect;
        let categories = self.only.iter().map(|only| category(*only).into());
        let request = DiffRunsRequest {
            a,
            b,
            categories: categories.collect(),
            limit: self.limit,
        };
        let reply = connect.client()?.runs().diff_runs(request).await;
        let diff = reply
            .map_err(|status| connect.failure(&status))?
            .into_inner();
        match self.output {
            Form::Table | Form::Csv => self.print(&diff)?,
            Form::Json | Form::Yaml => {
                let is_yaml = self.output == Form::Yaml;
                output::message(self.look.out(), is_yaml, "hindsight.v1.RunDiff", &diff)?;
            }
        }
        if diff.runs_left_out > 0 {
            let left_out = diff.runs_left_out;
            output::note(&format!(
                "warning: {left_out} runs are too large or too many to be compared whole"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Diff {
    fn print(&self, diff: &RunDiff) -> Result<(), Failure> {
        let columns = [
            Column::usual("what", Cut::Middle),
            Column::usual("before", Cut::End).titled(name(&diff.b_name, &diff.b)),
            Column::usual("after", Cut::End).titled(name(&diff.a_name, &diff.a)),
            Column::usual("change", Cut::Never),
            Column::more("task", Cut::Middle),
            Column::more("path", Cut::Middle),
        ];
        let mut table = Table::new(columns.to_vec(), &self.look, false)?;
        for difference in &diff.differences {
            table.row(row(difference));
        }
        table.print(self.output == Form::Csv, &self.look)?;
        let [b, a] = [name(&diff.b_name, &diff.b), name(&diff.a_name, &diff.a)];
        let differ = match diff.differences.len() {
            1 => "1 value differs".to_owned(),
            differ => format!("{differ} values differ"),
        };
        let verb = if diff.equal == 1 { "is" } else { "are" };
        output::note(&format!(
            "{b} -> {a}: {differ}, {} {verb} equal",
            diff.equal
        ));
        if diff.differences_left_out > 0 {
            let more = diff.differences_left_out;
            output::note(&format!("{more} more differences: raise --limit"));
        }
        Ok(())
    }
}

fn name<'a>(name: &'a str, record: &'a str) -> &'a str {
    match name {
        "" => record,
        name => name,
    }
}

fn category(only: Only) -> Category {
    match only {
        Only::Params => Category::Param,
        Only::Images => Category::Image,
        Only::References => Category::Reference,
        Only::Environment => Category::Environment,
        Only::Spec => Category::Spec,
        Only::Metadata => Category::Metadata,
        Only::Timings => Category::Timing,
    }
}

fn row(difference: &Difference) -> Vec<Value> {
    let side = |side: &Option<String>| match side.as_deref() {
        None => Value::default(),
        Some(text) if difference.category() == Category::Timing => Value::both(text, seconds(text)),
        Some(text) => Value::of(text),
    };
    let change = difference.ratio.map(|ratio| {
        let more = (ratio - 1.0) * 100.0;
        Value::of(format!("{more:+.0}%"))
    });
    vec![
        Value::of(label(difference)),
        side(&difference.before),
        side(&difference.after),
        change.unwrap_or_else(|| Value::both("", " ")),
        Value::of(&difference.task),
        Value::of(&difference.path),
    ]
}

/// A time of a difference, as people read it.
pub(super) fn seconds(text: &str) -> String {
    let seconds: Option<f64> = text.parse().ok();
    seconds.map_or_else(|| text.to_owned(), output::seconds)
}

/// What differs, as people call it: `param revision`, `test image of run`.
pub(super) fn label(difference: &Difference) -> String {
    let task = match difference.task.as_str() {
        "" => String::new(),
        task => format!("{task} "),
    };
    let path = difference.path.as_str();
    // The last brackets have the name of the parameter, the step or the variable.
    let name = path
        .rsplit_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    match (difference.category(), name) {
        (Category::Param, Some((name, _))) => format!("{task}param {name}"),
        (Category::Image, Some((name, ".imageID"))) => format!("{task}digest of {name}"),
        (Category::Image, Some((name, _))) => format!("{task}image of {name}"),
        (Category::Environment, Some((name, _))) => format!("{task}env {name}"),
        (Category::Timing, Some((name, _))) => format!("{task}step {name} took"),
        _ => format!("{task}{path}"),
    }
}
