//! What to do about a custom run: by whether it asks for a workflow, is to start, goes on, or has ended.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    Claim, CustomRun, Next, Owned, OwnedSeen, Pass, RunSpec, RunStatus, TemplateSeen, attempt_name,
    workflow,
};
use crate::custom::rules::check_run;

/// The value of `spec.status` that asks for the end of a run, in both kinds.
const CANCELLED: &str = "RunCancelled";

/// How an attempt ends.
struct Failure {
    reason: String,
    message: String,
    /// Whether another attempt may do better.
    is_retried: bool,
}

impl Failure {
    fn last(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            is_retried: false,
        }
    }

    fn retried(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            is_retried: true,
            ..Self::last(reason, message)
        }
    }
}

/// What the workflow of an attempt is to become or has become.
enum Attempt {
    /// It is to be claimed.
    Claim,
    /// It is to be created.
    Create(Value),
    /// This has to be done before more can be said.
    Ask(Next),
    /// It goes on.
    Running(Owned),
    Succeeded(Owned),
    Failed(Failure),
}

pub(super) fn decide(pass: &Pass, now: Timestamp) -> Next {
    let run = &pass.run;
    if !CustomRun::asks_for_workflow(run.form, &run.raw_spec) {
        return Next::Rest(None);
    }
    if run.status.is_done() {
        return tidy(pass).unwrap_or(Next::Rest(None));
    }
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let due = due(run);
    let mut status = run.status.clone();
    match attempt(pass, due.is_some_and(|due| due <= now)) {
        Attempt::Ask(next) => return next,
        // The workflows of earlier attempts are deleted first.
        Attempt::Create(manifest) => return tidy(pass).unwrap_or(Next::Create(manifest)),
        Attempt::Claim => {
            if let Some(next) = tidy(pass) {
                return next;
            }
            let name = attempt_name(run, status.attempt());
            let message = format!("workflow {name} is started");
            status.set_claim(&Claim {
                name,
                uid: String::new(),
            });
            status.start(now);
            status.say("Unknown", "Running", &message, now);
        }
        Attempt::Running(owned) => {
            let Owned { name, uid, .. } = owned;
            status.say(
                "Unknown",
                "Running",
                &format!("workflow {name} goes on"),
                now,
            );
            status.set_claim(&Claim { name, uid });
        }
        Attempt::Succeeded(owned) => {
            let message = format!("workflow {} is complete", owned.name);
            note_end(&mut status, &owned, now);
            status.say("True", "Succeeded", &message, now);
        }
        Attempt::Failed(failure) => fail(pass, &mut status, &failure, now),
    }
    if status != run.status {
        let event = status.told_since(&run.status);
        return Next::Write { status, event };
    }
    tidy(pass).unwrap_or(Next::Rest(due))
}

fn attempt(pass: &Pass, is_due: bool) -> Attempt {
    let run = &pass.run;
    let spec = match well_formed(run) {
        Ok(spec) => spec,
        Err(failure) => return Attempt::Failed(failure),
    };
    let Some(claim) = run.status.claim() else {
        return match cancelled(run, spec) {
            Some(failure) => Attempt::Failed(failure),
            None => planned(pass, spec).map_or_else(|end| end, |_| Attempt::Claim),
        };
    };
    let seen = pass.workflows.get(&claim.name);
    let is_looked = pass.looked.contains(&claim.name);
    if let Some(OwnedSeen::There(owned)) = seen
        && is_of(owned, run, &claim)
        && owned.is_finished
    {
        return match &owned.failure {
            None => Attempt::Succeeded(owned.clone()),
            Some((reason, message)) => Attempt::Failed(Failure::retried(reason, message)),
        };
    }
    let end = cancelled(run, spec).or_else(|| is_due.then(|| timed_out(run)));
    // Its end may be there already, and counts.
    if end.is_some() && !is_looked {
        return Attempt::Ask(Next::Look(claim.name));
    }
    match (seen, end) {
        (_, Some(failure)) => Attempt::Failed(failure),
        (Some(OwnedSeen::There(owned)), None)
            if is_of(owned, run, &claim) && !owned.is_deleting =>
        {
            Attempt::Running(owned.clone())
        }
        (Some(OwnedSeen::There(_)), None) if !is_looked => Attempt::Ask(Next::Look(claim.name)),
        (Some(OwnedSeen::There(owned)), None) => Attempt::Failed(lost(run, owned)),
        (Some(OwnedSeen::Refused(why)), None) => {
            let text = format!("workflow {} cannot be created: {why}", claim.name);
            Attempt::Failed(Failure::last("WorkflowRefused", text))
        }
        (None, None) if !claim.uid.is_empty() => Attempt::Ask(Next::Look(claim.name)),
        (Some(OwnedSeen::Gone), None) if !claim.uid.is_empty() => {
            Attempt::Failed(deleted(&claim.name))
        }
        // If it is there after all, its creation says so.
        (Some(OwnedSeen::Gone) | None, None) => {
            planned(pass, spec).map_or_else(|end| end, Attempt::Create)
        }
    }
}

/// Whether a workflow is the one that was created for this attempt.
fn is_of(owned: &Owned, run: &CustomRun, claim: &Claim) -> bool {
    let is_ours = owned.owner.as_deref() == Some(run.uid.as_str());
    is_ours && (claim.uid.is_empty() || claim.uid == owned.uid)
}

/// The workflow of that name is another one, or is being deleted.
fn lost(run: &CustomRun, owned: &Owned) -> Failure {
    let name = &owned.name;
    let owner = match &owned.owner {
        Some(uid) if *uid == run.uid => return deleted(name),
        Some(uid) => format!("is controlled by an object of UID {uid}"),
        None => "has no owner".to_owned(),
    };
    Failure::last(
        "WorkflowNameConflict",
        format!("workflow {name} exists, and {owner}"),
    )
}

fn deleted(name: &str) -> Failure {
    let text = format!("workflow {name} was deleted before its end");
    Failure::last("WorkflowDeleted", text)
}

/// What the run says, if that can be done.
fn well_formed(run: &CustomRun) -> Result<&RunSpec, Failure> {
    let problems = check_run(run.form, &run.raw_spec);
    if !problems.is_empty() {
        return Err(Failure::last("InvalidSpec", problems.join("; ")));
    }
    let invalid = |why: &String| Failure::last("InvalidSpec", why);
    let spec = run.spec.as_ref().map_err(invalid)?;
    if spec
        .reference
        .as_ref()
        .is_some_and(|named| named.name.is_empty())
    {
        let text = format!("spec.{}.name: is missing", run.form.reference());
        return Err(Failure::last("InvalidSpec", text));
    }
    if spec.workspaces > 0 {
        let text = "spec.workspaces: a workflow has none; its Jobs have volumes";
        return Err(Failure::last(
            run.form.reason("WorkspaceNotSupported"),
            text,
        ));
    }
    if spec.has_pod_template {
        let text = "spec.podTemplate: a workflow has none; its Jobs have templates of their own";
        return Err(Failure::last(
            run.form.reason("PodTemplateNotSupported"),
            text,
        ));
    }
    Ok(spec)
}

/// The workflow of the attempt, or what has to be done or said instead.
fn planned(pass: &Pass, spec: &RunSpec) -> Result<Value, Attempt> {
    let run = &pass.run;
    let template = match (&spec.reference, &pass.template) {
        (None, _) => None,
        (Some(named), None) => return Err(Attempt::Ask(Next::Template(named.name.clone()))),
        (Some(named), Some(TemplateSeen::Gone)) => {
            let (field, name) = (run.form.reference(), &named.name);
            let text = format!("spec.{field}.name: there is no workflow {name} in this namespace");
            return Err(Attempt::Failed(Failure::last("WorkflowNotFound", text)));
        }
        (Some(_), Some(TemplateSeen::Unreadable(why))) => {
            let why = format!("workflow {why}");
            return Err(Attempt::Failed(Failure::last("InvalidSpec", why)));
        }
        (Some(_), Some(TemplateSeen::There(template))) => Some(template),
    };
    workflow(run, spec, run.status.attempt(), template)
        .map_err(|problems| Attempt::Failed(Failure::last("InvalidSpec", problems.join("; "))))
}

fn cancelled(run: &CustomRun, spec: &RunSpec) -> Option<Failure> {
    let message = match (run.is_deleting, spec.status.as_str()) {
        (_, CANCELLED) if spec.status_message.is_empty() => "cancelled".to_owned(),
        (_, CANCELLED) => spec.status_message.clone(),
        (true, _) => "deleted before its end".to_owned(),
        (false, _) => return None,
    };
    Some(Failure::last(run.form.reason("Cancelled"), message))
}

fn timed_out(run: &CustomRun) -> Failure {
    let timeout = run.spec.iter().filter_map(|spec| spec.timeout).next();
    let text = format!(
        "the attempt was to end within {:#}",
        timeout.unwrap_or_default()
    );
    Failure::retried(run.form.reason("TimedOut"), text)
}

/// When the attempt that is under way has to be over.
fn due(run: &CustomRun) -> Option<Timestamp> {
    let timeout = run.spec.as_ref().ok()?.timeout?;
    let timeout = Some(timeout).filter(|timeout| *timeout > SignedDuration::ZERO)?;
    run.status.start_time()?.checked_add(timeout).ok()
}

/// Ends the attempt, and the run with it if there is no further one.
fn fail(pass: &Pass, status: &mut RunStatus, failure: &Failure, now: Timestamp) {
    if status.start_time().is_none() {
        status.start(now);
    }
    let claim = status.claim();
    let seen = claim.and_then(|claim| pass.workflows.get(&claim.name));
    match seen {
        Some(OwnedSeen::There(owned)) if owned.is_finished => note_end(status, owned, now),
        _ => status.complete(now.max(status.start_time().unwrap_or(now))),
    }
    status.say("False", &failure.reason, &failure.message, now);
    let retries = pass.run.spec.as_ref().map_or(0, |spec| spec.retries);
    if failure.is_retried && status.attempt() < retries {
        status.put_aside();
        let (attempt, message) = (status.attempt(), &failure.message);
        let message = format!("attempt {attempt} has failed, and is repeated: {message}");
        status.say("Unknown", "ToBeRetried", &message, now);
    }
}

/// What the end of a workflow says.
fn note_end(status: &mut RunStatus, owned: &Owned, now: Timestamp) {
    let end = owned.completion_time.unwrap_or(now);
    status.complete(end.max(status.start_time().unwrap_or(end)));
    let name = ("workflow".to_owned(), owned.name.clone());
    let mut results = vec![name];
    results.extend(owned.results.iter().cloned());
    status.set_results(&results);
    status.set_claim(&Claim {
        name: owned.name.clone(),
        uid: owned.uid.clone(),
    });
}

/// Deletes workflows that go on though their attempt is over: another replica may have created one late, of
/// a claim that it had made before.
fn tidy(pass: &Pass) -> Option<Next> {
    let status = &pass.run.status;
    let is_stray = |owned: &Owned| {
        let is_ours = owned.owner.as_deref() == Some(pass.run.uid.as_str());
        let goes_on = !owned.is_finished && !owned.is_deleting;
        is_ours && goes_on && !status.awaits(&owned.name) && !pass.deleted.contains(&owned.uid)
    };
    let owned = pass.workflows.values().find_map(|seen| match seen {
        OwnedSeen::There(owned) if is_stray(owned) => Some(owned),
        _ => None,
    })?;
    let name = owned.name.clone();
    // One that has ended meanwhile is history.
    Some(match pass.looked.contains(&name) {
        false => Next::Look(name),
        true => Next::Delete {
            name,
            uid: owned.uid.clone(),
        },
    })
}
