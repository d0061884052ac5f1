//! What is left to do about a workflow that has ended, or whose delete was asked for.

use super::{JobSeen, Pass};
use crate::{
    job::{Job, job_name},
    next::{Delete, Event, Next},
};

/// The workflow has ended: no Job of it goes on, and nothing holds it.
///
/// A Job may go on that another replica created late, of a claim that it had made before.
pub(super) fn tidy(pass: &Pass) -> Next {
    let jobs = pass.going_on().filter(|job| !is_recorded(pass, job));
    let jobs: Vec<Delete> = jobs.map(delete).collect();
    if !jobs.is_empty() {
        Next::Delete(jobs)
    } else if pass.workflow.is_protected() {
        Next::Release(Vec::new())
    } else {
        Next::Rest(None)
    }
}

/// Jobs of steps that go on, while their steps are complete by another Job or are not claimed.
pub(super) fn strays(pass: &Pass) -> Vec<Delete> {
    let statuses = &pass.workflow.status.statuses;
    let is_stray = |job: &&Job| {
        let Some(step) = &job.step else {
            return false;
        };
        let is_running = statuses.get(step).is_some_and(|status| !status.complete);
        job.name == job_name(&pass.workflow, step) && !is_running && !is_recorded(pass, job)
    };
    pass.going_on().filter(is_stray).map(delete).collect()
}

/// The end of this Job is known; what says that it goes on is old news.
fn is_recorded(pass: &Pass, job: &Job) -> bool {
    let statuses = pass.workflow.status.statuses.values();
    statuses
        .filter(|status| status.complete)
        .any(|status| status.reference.uid == job.uid)
}

/// The delete of the workflow was asked for: its Jobs end before it goes.
///
/// Those are deleted here rather than by the garbage collector, which a cluster may not have, and which
/// does not delete Jobs whose deletion others hold up in the order that is wanted.
pub(super) fn cancel(pass: &Pass) -> Next {
    if !pass.workflow.is_protected() {
        return Next::Rest(None);
    }
    if !pass.workflow.is_orphaning() {
        // After this the workflow is gone, and so is what leads from news of a Job to it.
        if !pass.is_listed {
            return Next::List;
        }
        let jobs: Vec<Delete> = pass.going_on().map(delete).collect();
        if !jobs.is_empty() {
            return Next::Delete(jobs);
        }
    }
    let is_over = pass.workflow.status.is_finished();
    let events = (!is_over).then(|| {
        let count = pass.jobs.values();
        let count = count.filter(|seen| matches!(seen, JobSeen::There(job) if job.end.is_none()));
        let count = count.count();
        let note = match count {
            0 => "deleted; none of its Jobs was running".to_owned(),
            _ if pass.workflow.is_orphaning() => "deleted; its Jobs go on".to_owned(),
            1 => "deleted, with a Job that was running".to_owned(),
            count => format!("deleted, with {count} Jobs that were running"),
        };
        Event::normal("WorkflowDeleted", note)
    });
    Next::Release(events.into_iter().collect())
}

fn delete(job: &Job) -> Delete {
    Delete {
        name: job.name.clone(),
        uid: job.uid.clone(),
        version: job.version.clone(),
    }
}
