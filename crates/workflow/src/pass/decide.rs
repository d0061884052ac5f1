//! What to do: by whether the workflow goes on, has ended, or is deleted.

use jiff::Timestamp;

use super::{Pass, TargetSeen, ends, progress::Progress};
use crate::{
    next::{Event, Next},
    status::{Reason, Status},
    validate::check_spec,
};

pub(super) fn decide(pass: &Pass, now: Timestamp) -> Next {
    let workflow = &pass.workflow;
    if workflow.is_deleting {
        return ends::cancel(pass);
    }
    if workflow.status.is_finished() {
        return ends::tidy(pass);
    }
    let now = whole_seconds(now);
    let mut progress = Progress::new(pass, now);
    let problems = check_spec(workflow);
    if !problems.is_empty() {
        progress.fail(Reason::InvalidSpec, problems.join("; "));
    } else if !workflow.is_protected() {
        return Next::Protect;
    }
    progress.start();
    let due = workflow.deadline(progress.started());
    if let Some(due) = due.filter(|due| *due <= now) {
        let seconds = due.duration_since(progress.started()).as_secs();
        progress.fail(
            Reason::DeadlineExceeded,
            format!("the workflow was to end within {seconds} s"),
        );
        progress.end_failed();
    } else {
        progress.follow_targets();
        progress.follow_jobs();
        progress.adopt_ended();
        if progress.is_blind() {
            return progress.look();
        }
        progress.claim();
        progress.finish();
    }
    let steps = workflow.spec.iter().flat_map(|spec| spec.steps.keys());
    progress.status.sum_up(steps);
    if progress.status != workflow.status {
        let events = events(pass, &progress.status);
        let status = progress.status;
        return Next::Write { status, events };
    }
    if !progress.to_create.is_empty() {
        return Next::Create(progress.to_create);
    }
    let strays = ends::strays(pass);
    if !strays.is_empty() {
        return Next::Delete(strays);
    }
    Next::Rest(due)
}

/// What a new status of a workflow tells.
fn events(pass: &Pass, new: &Status) -> Vec<Event> {
    let workflow = &pass.workflow;
    let old = &workflow.status;
    let mut events = Vec::new();
    if old.start_time.is_none() && new.start_time.is_some() {
        events.push(Event::normal(
            "WorkflowCreated",
            "the controller has seen it",
        ));
        if !(new.is_failed() && new.statuses.is_empty()) {
            events.push(Event::normal("WorkflowStarted", "its steps are started"));
        }
    }
    let (mut missing, mut hidden) = (Vec::new(), Vec::new());
    for (step, status) in &new.statuses {
        let reference = &status.reference;
        let is_found = !reference.uid.is_empty() || workflow.target(step).is_none();
        if is_found || old.statuses.contains_key(step) {
            continue;
        }
        let (kind, namespace, name) = (&reference.kind, &reference.namespace, &reference.name);
        let waits = format!("step \"{step}\" waits for {kind} {namespace}/{name}");
        match pass.targets.get(step) {
            Some(TargetSeen::Hidden(why)) => {
                hidden.push(format!("{waits}, which cannot be read: {why}"));
            }
            _ => missing.push(format!("{waits}, which does not exist")),
        }
    }
    // One each: events of the same object and reason are counted as one.
    if !missing.is_empty() {
        events.push(Event::warning("ExternalRefNotFound", missing.join("; ")));
    }
    if !hidden.is_empty() {
        events.push(Event::warning("ExternalRefUnreadable", hidden.join("; ")));
    }
    if !old.is_finished() && new.is_finished() {
        events.push(match new.failure() {
            None => Event::normal("WorkflowEnded", "all steps are complete"),
            Some(failure) => {
                let reason = failure.reason.clone().unwrap_or_default();
                let message = failure.message.clone().unwrap_or_default();
                Event::warning("WorkflowEnded", format!("{reason}: {message}"))
            }
        });
    }
    events
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
