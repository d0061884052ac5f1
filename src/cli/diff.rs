//! The command `hindsight diff`: two runs side by side.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hindsight_proto::v1::{DiffRunsRequest, Difference, RunDiff, difference::Category};

use super::{
    failure::Failure,
    output::{self, Form},
    run_ref::{Lookup, RUN},
    terminal::{ColorWhen, Cut, Screen},
};

/// Most cells of a value on a terminal or in a table.
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
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,

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
            Form::Text => print(&diff)?,
            form => output::message(form, "hindsight.v1.RunDiff", &diff)?,
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

fn print(diff: &RunDiff) -> Result<(), Failure> {
    if !diff.differences.is_empty() {
        let rows = diff.differences.iter();
        let screen = Screen::of_stdout(ColorWhen::Auto);
        let rows: Vec<_> = rows.map(|it| row(it, &screen)).collect();
        let (b, a) = (name(&diff.b_name, &diff.b), name(&diff.a_name, &diff.a));
        output::table(&["WHAT", b, a, "CHANGE"], &rows)?;
    }
    let equal = match diff.equal {
        1 => "1 value is equal".to_owned(),
        equal => format!("{equal} values are equal"),
    };
    output::say(&match diff.differences_left_out {
        0 => equal,
        more => format!("{more} more differences (--limit); {equal}"),
    })
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

fn row(difference: &Difference, screen: &Screen) -> Vec<String> {
    let side = |side: &Option<String>| match side.as_deref() {
        None => "-".to_owned(),
        Some(text) if difference.category() == Category::Timing => seconds(text),
        Some(text) => screen.cut(text, VALUE, Cut::End),
    };
    let ratio = difference.ratio;
    let ratio = ratio.map(|ratio| format!("{:+.0}%", (ratio - 1.0) * 100.0));
    vec![
        label(difference),
        side(&difference.before),
        side(&difference.after),
        ratio.unwrap_or_default(),
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
