//! How far the tasks of a PipelineRun are, which of them start, and how it ends.

use std::collections::BTreeMap;

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use serde_json::{Value, json};

use super::{
    super::{
        child::{Child, ChildName, Outcome},
        manifest::{Filled, Results, manifest, name_of_child, of_results},
        run::{PipelineRun, go},
        spec::{Pipeline, Task},
        variables::{Found, fill, result, variables},
    },
    ChildSeen, Next, Pass,
};
use crate::custom::RunStatus;

/// What follows from how far the tasks are.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// A child that is to be created.
    pub(super) create: Option<(ChildName, Value)>,
    /// When the PipelineRun has to be over.
    pub(super) due: Option<Timestamp>,
}

/// The tasks by how far they are.
#[derive(Debug, Default)]
struct Count<'p> {
    succeeded: usize,
    failed: usize,
    cancelled: usize,
    incomplete: usize,
    /// Tasks whose parameters cannot be had, with the reason.
    invalid: Vec<String>,
    /// Tasks that may start.
    ready: Vec<&'p Task>,
    /// Tasks that were not started, or whose child is gone.
    waiting: Vec<&'p str>,
    create: Option<(ChildName, Value)>,
}

/// What is known of tasks.
struct Known<'p> {
    pass: &'p Pass,
    children: BTreeMap<String, ChildName>,
    ended: BTreeMap<String, Outcome>,
    results: Results,
}

pub(super) fn progress(
    pass: &Pass,
    pipeline: &Pipeline,
    status: &mut RunStatus,
    now: Timestamp,
) -> Result<Step, Next> {
    let run = &pass.run;
    let known = Known::new(pass, status);
    if known.ended != status.ended() {
        status.set_ended(&known.ended);
    }
    let limit = limit(run, status.start_time().unwrap_or(now));
    let is_due = limit.as_ref().is_some_and(|(due, _)| *due <= now);
    if !is_due && let Some(why) = known.refused()? {
        status.end("CreateRunFailed", &why, now);
        return Ok(Step::default());
    }
    let mut count = known.count(pipeline, is_due)?;
    let is_failing = count.failed + count.cancelled > 0;
    let skipping = match run.asks_for() {
        _ if is_failing || !count.invalid.is_empty() => Some("PipelineRun was stopping"),
        "CancelledRunFinally" => Some("PipelineRun was gracefully cancelled"),
        "StoppedRunFinally" => Some("PipelineRun was gracefully stopped"),
        _ => None,
    };
    if let Some(reason) = skipping {
        skip(status, &count.waiting, reason);
        count.create = None;
    } else if !is_due {
        skip(status, &[], "");
        for task in std::mem::take(&mut count.ready) {
            status.claim_child(&task.name, &task.display_name, &name_of_child(run, task));
        }
    }
    let skipped = skipping.map_or(0, |_| count.waiting.len());
    let incomplete = count.incomplete + count.waiting.len() - skipped;
    let due = limit.as_ref().map(|(due, _)| *due);
    match limit {
        _ if incomplete == 0 => known.finish(pipeline, status, &count, skipped, now)?,
        Some((_, (message, reason))) if is_due => {
            skip(status, &count.waiting, reason);
            status.end("PipelineRunTimeout", &message, now);
        }
        _ => {
            let reason = match run.asks_for() {
                "CancelledRunFinally" => "CancelledRunningFinally",
                "StoppedRunFinally" => "StoppedRunningFinally",
                _ if is_failing => "PipelineRunStopping",
                _ => "Running",
            };
            let message = count.message(&format!("Incomplete: {incomplete}, Skipped: {skipped}"));
            status.say("Unknown", reason, &message, now);
        }
    }
    let create = count.create;
    Ok(Step { create, due })
}

/// When the PipelineRun has to be over, and what is said then of it and of tasks that were not started.
fn limit(run: &PipelineRun, start: Timestamp) -> Option<(Timestamp, (String, &'static str))> {
    // Time is told in whole seconds: at a fraction of one it would not have come.
    let whole = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Ceil);
    let due = |timeout: SignedDuration| start.checked_add(timeout).ok()?.round(whole).ok();
    let all = run.timeout().and_then(|timeout| {
        let (name, within) = (&run.name, go(timeout));
        let message = format!("PipelineRun {name:?} failed to finish within {within:?}");
        Some((
            due(timeout)?,
            (message, "PipelineRun timeout has been reached"),
        ))
    });
    let tasks = run.tasks_timeout().and_then(|timeout| {
        let (name, within) = (&run.name, go(timeout));
        let message =
            format!("PipelineRun {name:?} failed due to tasks failed to finish within {within:?}");
        let skipped = "PipelineRun Tasks timeout has been reached";
        Some((due(timeout)?, (message, skipped)))
    });
    all.into_iter().chain(tasks).min_by_key(|(due, _)| *due)
}

/// These tasks are skipped, and no others.
fn skip(status: &mut RunStatus, tasks: &[&str], reason: &str) {
    let field = "skippedTasks";
    if tasks.is_empty() {
        return status.unset(field);
    }
    let tasks = tasks.iter();
    let tasks = tasks.map(|name| json!({"name": name, "reason": reason}));
    status.set(field, tasks.collect());
}

impl Count<'_> {
    fn message(&self, rest: &str) -> String {
        let (failed, cancelled) = (self.failed, self.cancelled);
        let completed = self.succeeded + failed + cancelled;
        format!("Tasks Completed: {completed} (Failed: {failed}, Cancelled {cancelled}), {rest}")
    }
}

impl<'p> Known<'p> {
    fn new(pass: &'p Pass, status: &RunStatus) -> Self {
        let (children, mut ended) = (status.children(), status.ended());
        let mut results = Results::new();
        for (task, name) in &children {
            let Some(child) = pass.own(name) else {
                continue;
            };
            if let Some(outcome) = child.outcome
                && *ended.entry(task.clone()).or_insert(outcome) == Outcome::Succeeded
            {
                results.insert(task.clone(), child.results.iter().cloned().collect());
            }
        }
        Self {
            pass,
            children,
            ended,
            results,
        }
    }

    /// Why a child that was claimed will never be there.
    fn refused(&self) -> Result<Option<String>, Next> {
        for (task, name) in &self.children {
            if self.ended.contains_key(task) {
                continue;
            }
            let kind = name.kind.kind();
            match self.pass.children.get(name) {
                Some(ChildSeen::There(_)) if self.pass.own(name).is_none() => {
                    if !self.pass.looked.contains(name) {
                        return Err(Next::Look(name.clone()));
                    }
                    let name = &name.name;
                    let text =
                        format!("task {task}: {kind} {name} is there, and is of another owner");
                    return Ok(Some(text));
                }
                Some(ChildSeen::Refused(why)) => {
                    let name = &name.name;
                    let text = format!("task {task}: {kind} {name} cannot be created: {why}");
                    return Ok(Some(text));
                }
                Some(ChildSeen::There(_) | ChildSeen::Gone) | None => {}
            }
        }
        Ok(None)
    }

    fn count<'t>(&self, pipeline: &'t Pipeline, is_due: bool) -> Result<Count<'t>, Next> {
        let mut count = Count::default();
        for task in &pipeline.tasks {
            let child = self.children.get(&task.name);
            match self.ended.get(&task.name) {
                Some(Outcome::Succeeded) => count.succeeded += 1,
                Some(Outcome::Failed) => count.failed += 1,
                Some(Outcome::Cancelled) => count.cancelled += 1,
                None if child.is_some_and(|child| self.pass.own(child).is_some()) => {
                    count.incomplete += 1;
                }
                None if is_due || !self.is_ready(task) => match child {
                    Some(_) => count.incomplete += 1,
                    None => count.waiting.push(&task.name),
                },
                None => self.count_ready(task, child, &mut count)?,
            }
        }
        Ok(count)
    }

    fn is_ready(&self, task: &Task) -> bool {
        let mut after = task.after().into_iter();
        after.all(|task| self.has_succeeded(task))
    }

    fn has_succeeded(&self, task: &str) -> bool {
        self.ended.get(task) == Some(&Outcome::Succeeded)
    }

    /// Counts a task that has no child and may have one.
    fn count_ready<'t>(
        &self,
        task: &'t Task,
        child: Option<&ChildName>,
        count: &mut Count<'t>,
    ) -> Result<(), Next> {
        let has_succeeded = |task: &str| self.has_succeeded(task);
        match (Filled::new(task, &self.results, has_succeeded), child) {
            (Err(why), _) => {
                let steps = task.steps();
                let named = variables(&steps).into_iter().filter_map(result);
                let named = named
                    .map(|(task, _)| task)
                    .filter(|task| has_succeeded(task));
                self.look_at(task.after().into_iter().chain(named))?;
                count.invalid.push(format!("task {}: {why}", task.name));
            }
            (Ok(_), None) => {
                count.ready.push(task);
                count.waiting.push(&task.name);
            }
            (Ok(_), Some(child)) if !self.pass.looked.contains(child) => {
                return Err(Next::Look(child.clone()));
            }
            (Ok(filled), Some(child)) => {
                count.waiting.push(&task.name);
                let of = || manifest(&self.pass.run, task, filled);
                count.create.get_or_insert_with(|| (child.clone(), of()));
            }
        }
        Ok(())
    }

    /// Unless it is known of each of these tasks with which results it ended, that has to be read.
    fn look_at<'t>(&self, tasks: impl Iterator<Item = &'t str>) -> Result<(), Next> {
        let is_unknown = |child: &&ChildName| {
            let ended = self.pass.own(child).and_then(|child: &Child| child.outcome);
            ended.is_none() && !self.pass.looked.contains(*child)
        };
        let mut children = tasks.filter_map(|task| self.children.get(task));
        match children.find(is_unknown) {
            Some(child) => Err(Next::Look(child.clone())),
            None => Ok(()),
        }
    }

    /// All tasks have ended or are skipped.
    fn finish(
        &self,
        pipeline: &Pipeline,
        status: &mut RunStatus,
        count: &Count<'_>,
        skipped: usize,
        now: Timestamp,
    ) -> Result<(), Next> {
        let run = &self.pass.run;
        let (results, lacking) = self.results_of(pipeline)?;
        if !results.is_empty() {
            status.set("results", results.into());
        }
        let mut message = count.message(&format!("Skipped: {skipped}"));
        let is_stopped = matches!(run.asks_for(), "CancelledRunFinally" | "StoppedRunFinally");
        let reason = if !count.invalid.is_empty() {
            let (many, why) = (count.invalid.len(), count.invalid.join("; "));
            message.push_str(&format!(", Failed Validation: {many} ({why})"));
            "PipelineValidationFailed"
        } else if count.failed > 0 {
            "Failed"
        } else if is_stopped {
            message = format!("PipelineRun {:?} was cancelled", run.name);
            "Cancelled"
        } else if count.cancelled > 0 {
            "Cancelled"
        } else if !lacking.is_empty() {
            let lacking = lacking.join(", ");
            message = format!("results of the pipeline that its tasks do not have: {lacking}");
            "CouldntGetPipelineResult"
        } else {
            let start = status.start_time().unwrap_or(now);
            status.complete(now.max(start));
            status.say("True", "Succeeded", &message, now);
            return Ok(());
        };
        status.end(reason, &message, now);
        Ok(())
    }

    /// The results of the pipeline, and the names of those that tasks which have succeeded should have had.
    fn results_of(&self, pipeline: &Pipeline) -> Result<(Vec<Value>, Vec<String>), Next> {
        let (mut results, mut lacking) = (Vec::new(), Vec::new());
        for wanted in &pipeline.results {
            let (mut value, name) = (wanted.value.0.clone(), &wanted.name);
            let mut without = Vec::new();
            let mixed = fill(&mut value, &mut |variable| {
                let found = of_results(variable, &self.results);
                if found.is_none() {
                    without.extend(result(variable).map(|(task, _)| task.to_owned()));
                }
                found.map_or(Found::Kept, Found::Value)
            });
            self.look_at(without.iter().map(String::as_str))?;
            if !mixed.is_empty() || without.iter().any(|task| self.has_succeeded(task)) {
                lacking.push(name.clone());
            } else if without.is_empty() {
                results.push(json!({"name": name, "value": value}));
            }
        }
        Ok((results, lacking))
    }
}
