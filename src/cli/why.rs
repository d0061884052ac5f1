//! The command `hindsight why`: what ended a run.

use std::process::ExitCode;

use clap::Args;
use hindsight_proto::v1::{
    Difference, ExplainFailureRequest, FailureExplanation, FailureLog, RunNode,
    difference::Category,
};

use super::{
    describe::word,
    diff,
    failure::Failure,
    logs,
    output::{self, Form},
    pager::Paging,
    run_ref::{Lookup, RUN},
    terminal::{ColorWhen, Cut, Screen},
};

/// Changes that are told in one line.
const CHANGES: usize = 6;

/// Say what ended a run, since when its pipeline fails, and what changed then
///
/// `What` is the task and step that failed first. `Since` is the first failure after the last success
/// of the same pipeline in the same namespace; runs that failed alike say the same, but for ids, times
/// and other values that differ from run to run. `Changed` is what differs between those two. `Log` is
/// the end of the log of that step, if it is stored.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN} `hindsight diff RUN` shows all that differs from the
last success.

Examples:
  hindsight why release-42 -n shop
  hindsight why @last-failed -A --log-lines 40
  hindsight why shop/results/5d5f/records/5d5f -o json"))]
pub(super) struct Why {
    /// Run that failed
    run: String,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,

    /// The last lines of the log of the step that failed, up to 100; 0 for none
    #[arg(long, value_name = "LINES", default_value_t = 10, value_parser = clap::value_parser!(i32).range(0..=100))]
    log_lines: i32,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    lookup: Lookup,
}

impl Why {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let name = self.lookup.record(&self.run).await?;
        let connect = &self.lookup.connect;
        let request = ExplainFailureRequest {
            name,
            limit: 0,
            log_lines: self.log_lines,
        };
        let reply = connect.client()?.runs().explain_failure(request).await;
        let why = reply
            .map_err(|status| connect.failure(&status))?
            .into_inner();
        match self.output {
            Form::Text => {
                let mut facts = vec![
                    ("What", what(&why)),
                    ("Since", since(&why)),
                    ("Changed", changed(&why)),
                ];
                let log = why.log.as_ref().filter(|_| self.log_lines > 0);
                facts.extend(log.map(|log| ("Log", log_of(log))));
                let facts = facts.into_iter();
                let facts: Vec<_> = facts
                    .map(|(name, text)| vec![name.to_owned(), text])
                    .collect();
                let tail = log.map_or(&[][..], |log| log.tail.as_slice());
                let lines = tail.iter().map(|line| logs::shown(line.text.as_bytes()));
                let lines: Vec<_> = lines.map(|line| format!("  {line}")).collect();
                output::facts_and_lines(&facts, &lines, &self.paging)?;
            }
            form => {
                let name = "hindsight.v1.FailureExplanation";
                output::message(self.paging.out(), form == Form::Yaml, name, &why)?;
            }
        }
        for note in &why.notes {
            output::note(&format!("warning: {note}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What ended the run.
fn what(why: &FailureExplanation) -> String {
    let unknown = RunNode::default();
    let leaf = why.leaf.as_ref().unwrap_or(&unknown);
    let place = match why.path.as_str() {
        "" => format!("{} {}", leaf.kind, leaf.object),
        path => format!("task {path}"),
    };
    let attempt = match leaf.attempt {
        ..=1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let filled = |texts: [&str; 2]| {
        let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        match texts.as_slice() {
            [] => String::new(),
            texts => format!(": {}", texts.join(": ")),
        }
    };
    match &why.step {
        Some(step) => {
            let ended = word(step.outcome());
            let code = step.exit_code.map(|code| format!(" (exit {code})"));
            format!(
                "step {} of {place} {ended}{}{}{attempt}",
                step.name,
                filled([&step.reason, &step.message]),
                code.unwrap_or_default()
            )
        }
        None => {
            let ended = word(leaf.outcome());
            let reason = filled([&leaf.reason, &leaf.message]);
            format!("{place} {ended}{reason}{attempt}")
        }
    }
}

/// Which lines are printed, of which log.
fn log_of(log: &FailureLog) -> String {
    let container = log.source.as_ref().map(|source| source.container.as_str());
    let of = match container {
        Some(container) => format!("container {container}"),
        None => "the uploaded log".to_owned(),
    };
    let shown = log.tail.len();
    match i64::try_from(shown) {
        Ok(shown) if shown < log.lines => format!("last {shown} of {} lines of {of}", log.lines),
        _ => format!("{shown} lines of {of}"),
    }
}

/// Since when the pipeline fails.
fn since(why: &FailureExplanation) -> String {
    if why.series.is_empty() {
        return "not known: the run names no pipeline or task".to_owned();
    }
    let time = |time: Option<prost_types::Timestamp>| time.and_then(output::time);
    let first = why.first_failure.as_ref();
    let began = time(first.and_then(|first| first.start_time));
    let mut parts = Vec::new();
    if let Some(first) = first {
        let start = began.map(|start| format!(", {start}"));
        parts.push(format!("{}{}", first.name, start.unwrap_or_default()));
    }
    match &why.last_success {
        Some(success) => {
            let gap = output::took(time(success.start_time), began);
            parts.push(format!("{} succeeded {gap} before", success.name));
        }
        None => parts.push(format!("no success of {} is stored", why.series)),
    }
    parts.push(format!(
        "{} of {} since failed{}",
        why.failed_since,
        why.runs_since,
        alike(why)
    ));
    parts.join("; ")
}

/// How many of those that failed did so for the same cause.
fn alike(why: &FailureExplanation) -> String {
    let Some(alike) = &why.alike else {
        return String::new();
    };
    match (alike.count, alike.of) {
        (_, 0 | 1) => String::new(),
        (count, of) if of < why.failed_since => format!(", {count} of the newest {of} alike"),
        (count, of) if count == of => " alike".to_owned(),
        (count, _) => format!(", {count} of them alike"),
    }
}

/// What changed between the last success and the first failure.
fn changed(why: &FailureExplanation) -> String {
    if why.last_success.is_none() {
        return "not known: there is no success to compare with".to_owned();
    }
    let shown = why.changes.iter().take(CHANGES);
    let screen = Screen::of_stdout(ColorWhen::Auto);
    let shown: Vec<_> = shown.map(|it| change(it, &screen)).collect();
    if shown.is_empty() {
        return "nothing that is compared".to_owned();
    }
    let left = why.changes.len() - shown.len();
    let left = u64::try_from(why.changes_left_out).unwrap_or_default() + left as u64;
    match left {
        0 => shown.join("; "),
        left => format!("{}; {left} more", shown.join("; ")),
    }
}

fn change(change: &Difference, screen: &Screen) -> String {
    let side = |side: &Option<String>| match side.as_deref() {
        None => "nothing".to_owned(),
        Some(text) if change.category() == Category::Timing => diff::seconds(text),
        Some(text) => screen.cut(text, diff::VALUE, Cut::End),
    };
    let (before, after) = (side(&change.before), side(&change.after));
    format!("{} {before} -> {after}", diff::label(change))
}
