//! What to do about a PipelineRun: by whether it is ours, is to start, goes on, or has ended.

use jiff::Timestamp;

use super::{
    super::{plan::resolved, run::PipelineRun, spec::Pipeline},
    Next, Pass,
    progress::{Step, progress},
};
use crate::custom::RunStatus;

pub(super) fn decide(pass: &Pass, now: Timestamp) -> Next {
    let run = &pass.run;
    if !PipelineRun::is_delegated(&run.spec) {
        return Next::Rest(None);
    }
    if run.status.is_done() {
        return wind_down(pass).unwrap_or(Next::Rest(None));
    }
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut status = run.status.clone();
    let step = match advance(pass, &mut status, now) {
        Ok(step) => step,
        Err(next) => return next,
    };
    if status != run.status {
        let event = status.told_since(&run.status);
        return Next::Write { status, event };
    }
    if let Some((child, manifest)) = step.create {
        return Next::Create { child, manifest };
    }
    let is_ending = run.asks_for() == "CancelledRunFinally";
    let wound = is_ending.then(|| wind_down(pass)).flatten();
    wound.unwrap_or(Next::Rest(step.due))
}

/// Changes the status to what it should be; fails with what has to be done before that is known.
fn advance(pass: &Pass, status: &mut RunStatus, now: Timestamp) -> Result<Step, Next> {
    let run = &pass.run;
    if run.is_deleting || run.asks_for() == "Cancelled" {
        let message = format!("PipelineRun {:?} was cancelled", run.name);
        status.end("Cancelled", &message, now);
        return Ok(Step::default());
    }
    let pipeline = match Pipeline::started(run) {
        Some(pipeline) => pipeline,
        None if run.asks_for() == "PipelineRunPending" && status.start_time().is_none() => {
            let message = format!("PipelineRun {:?} is pending", run.name);
            status.say("Unknown", "PipelineRunPending", &message, now);
            return Ok(Step::default());
        }
        None => match resolved(run) {
            Ok((spec, pipeline)) => {
                status.set("pipelineSpec", spec);
                if status.start_time().is_none() {
                    status.start(now);
                }
                pipeline
            }
            Err(refusal) => {
                status.end(refusal.reason, &refusal.message, now);
                return Ok(Step::default());
            }
        },
    };
    progress(pass, &pipeline, status, now)
}

/// Asks children that go on to end. Of a PipelineRun that has ended, another replica may have created one late,
/// of a claim that it had made before.
fn wind_down(pass: &Pass) -> Option<Next> {
    let names = pass.names();
    let (name, child) = names.iter().find_map(|name| {
        let child = pass.own(name)?;
        let goes_on = child.outcome.is_none() && !child.is_cancelled;
        (goes_on && !pass.cancelled.contains(&child.uid)).then_some((name, child))
    })?;
    // One that has ended meanwhile is history.
    if !pass.looked.contains(name) {
        return Some(Next::Look(name.clone()));
    }
    let why = match pass.run.status.reason() {
        Some("PipelineRunTimeout") => "timed out",
        _ => "been cancelled",
    };
    let kind = name.kind.kind();
    Some(Next::Cancel {
        child: name.clone(),
        uid: child.uid.clone(),
        message: format!("{kind} cancelled as the PipelineRun it belongs to has {why}."),
    })
}
