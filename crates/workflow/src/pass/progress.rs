//! The next status of a workflow that goes on.
//!
//! A step is claimed by an entry of the status, which is written before its Job is created. An entry without
//! a UID is a claim whose Job may not exist yet; an entry with one names the Job that was created.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{JobSeen, Pass, TargetSeen};
use crate::{
    job::{End, Job, job_name},
    next::Next,
    object::Workflow,
    spec::ObjectReference,
    status::{COMPLETE, FAILED, FAILURE_TARGET, Reason, Status, StepStatus},
};

pub(super) struct Progress<'p> {
    pass: &'p Pass,
    now: Timestamp,
    pub(super) status: Status,
    /// Why it fails, as far as it was found now. The first reason counts.
    failure: Option<(Reason, String)>,
    /// Jobs that have to be read before anything else can be said.
    jobs: Vec<String>,
    /// Steps whose external objects have to be read.
    targets: Vec<String>,
    /// Claimed steps whose Jobs do not exist.
    pub(super) to_create: Vec<String>,
    /// Claimed steps that have not ended.
    running: BTreeSet<String>,
}

impl<'p> Progress<'p> {
    pub(super) fn new(pass: &'p Pass, now: Timestamp) -> Self {
        Self {
            pass,
            now,
            status: pass.workflow.status.clone(),
            failure: None,
            jobs: Vec::new(),
            targets: Vec::new(),
            to_create: Vec::new(),
            running: BTreeSet::new(),
        }
    }

    pub(super) fn start(&mut self) {
        self.status.start_time.get_or_insert(self.now);
    }

    pub(super) fn started(&self) -> Timestamp {
        self.status.start_time.unwrap_or(self.now)
    }

    pub(super) fn fail(&mut self, reason: Reason, message: String) {
        self.failure.get_or_insert((reason, message));
    }

    /// Whether no further step may start.
    fn is_failing(&self) -> bool {
        self.failure.is_some() || self.status.failure().is_some()
    }

    /// Whether something has to be read first.
    pub(super) fn is_blind(&self) -> bool {
        !self.jobs.is_empty() || !self.targets.is_empty()
    }

    pub(super) fn look(self) -> Next {
        let (jobs, targets) = (self.jobs, self.targets);
        Next::Look { jobs, targets }
    }

    /// External objects are followed from the start, whatever their steps depend on.
    pub(super) fn follow_targets(&mut self) {
        if self.is_failing() {
            return;
        }
        for (step, target) in self.pass.workflow.waits_for() {
            let Some(seen) = self.pass.targets.get(step) else {
                self.targets.push(step.to_owned());
                continue;
            };
            let before = self.status.statuses.get(step);
            let mut reference = target.clone();
            if let Some(before) = before {
                reference.uid.clone_from(&before.reference.uid);
            }
            let mut complete = false;
            match seen {
                TargetSeen::There { uid, end } if target.uid.is_empty() || target.uid == *uid => {
                    reference.uid.clone_from(uid);
                    match end {
                        Some(End::Complete) => complete = true,
                        Some(End::Failed(why)) => {
                            let (kind, namespace, name) =
                                (&target.kind, &target.namespace, &target.name);
                            self.failure.get_or_insert((
                                Reason::ExternalWorkflowFailed,
                                format!("step \"{step}\": {kind} {namespace}/{name} failed: {why}"),
                            ));
                        }
                        None => {}
                    }
                }
                TargetSeen::There { .. } | TargetSeen::Gone | TargetSeen::Hidden(_) => {}
            }
            let status = StepStatus {
                complete,
                reference,
            };
            self.status.statuses.insert(step.to_owned(), status);
        }
    }

    /// Looks after the Jobs of claimed steps.
    pub(super) fn follow_jobs(&mut self) {
        let pass = self.pass;
        for (step, before) in &pass.workflow.status.statuses {
            let reference = &before.reference;
            let name = job_name(&pass.workflow, step);
            if before.complete || reference.kind != "Job" || reference.name != name {
                continue;
            }
            let is_created = !reference.uid.is_empty();
            match pass.jobs.get(&name) {
                Some(JobSeen::There(job)) if pass.is_ours(job) && is_of(job, step) => {
                    self.follow_job(step, job);
                }
                Some(JobSeen::There(job)) => {
                    let whose = match (&job.owner, &job.step) {
                        (Some(_), Some(other)) if pass.is_ours(job) => {
                            format!("is of step \"{other}\"")
                        }
                        (Some(uid), _) => format!("is controlled by an object of UID {uid}"),
                        (None, _) => "has no owner".to_owned(),
                    };
                    self.fail(
                        Reason::JobNameConflict,
                        format!("step \"{step}\": Job {name} exists, and {whose}"),
                    );
                    self.status.statuses.remove(step);
                }
                Some(JobSeen::Refused(why)) => {
                    self.fail(
                        Reason::StepFailed,
                        format!("step \"{step}\": Job {name} cannot be created: {why}"),
                    );
                    self.status.statuses.remove(step);
                }
                Some(JobSeen::Gone) if self.status.failure().is_some() => {
                    self.status.statuses.remove(step);
                }
                // It was deleted by others before its end was seen; the step runs again.
                Some(JobSeen::Gone) if is_created => {
                    self.running.insert(step.clone());
                    if let Some(status) = self.status.statuses.get_mut(step) {
                        status.reference.uid.clear();
                    }
                }
                None if is_created || self.status.failure().is_some() => self.jobs.push(name),
                // If it is there after all, its creation says so.
                Some(JobSeen::Gone) | None => {
                    self.running.insert(step.clone());
                    self.to_create.push(step.clone());
                }
            }
        }
    }

    /// Records ended Jobs of steps whose claims were given up when the workflow failed: another replica created them late.
    pub(super) fn adopt_ended(&mut self) {
        let pass = self.pass;
        let (Ok(spec), Some(_)) = (&pass.workflow.spec, self.status.failure()) else {
            return;
        };
        for step in spec.steps.keys() {
            let Some(JobSeen::There(job)) = pass.jobs.get(&job_name(&pass.workflow, step)) else {
                continue;
            };
            let is_unknown = !pass.workflow.status.statuses.contains_key(step);
            if is_unknown && job.end.is_some() && pass.is_ours(job) && is_of(job, step) {
                let claim = claim(&pass.workflow, step);
                self.status.statuses.insert(step.clone(), claim);
                self.follow_job(step, job);
            }
        }
    }

    fn follow_job(&mut self, step: &str, job: &Job) {
        let status = self.status.statuses.entry(step.to_owned()).or_default();
        status.reference.uid.clone_from(&job.uid);
        match &job.end {
            Some(End::Complete) => status.complete = true,
            Some(End::Failed(why)) => {
                let text = format!("step \"{step}\": Job {} failed: {why}", job.name);
                self.fail(Reason::StepFailed, text);
            }
            None => {
                self.running.insert(step.to_owned());
            }
        }
    }

    /// Claims the steps whose dependencies are complete.
    pub(super) fn claim(&mut self) {
        let Ok(spec) = &self.pass.workflow.spec else {
            return;
        };
        if self.is_failing() {
            return;
        }
        for (name, step) in &spec.steps {
            let is_ready = step.job_template.is_some()
                && !self.status.statuses.contains_key(name)
                && step
                    .dependencies
                    .iter()
                    .all(|dependency| self.status.is_complete(dependency));
            if !is_ready {
                continue;
            }
            self.running.insert(name.clone());
            let claim = claim(&self.pass.workflow, name);
            self.status.statuses.insert(name.clone(), claim);
        }
    }

    /// Ends the workflow, if nothing is left to do.
    pub(super) fn finish(&mut self) {
        if self.is_failing() {
            if self.running.is_empty() {
                self.end_failed();
            } else if let Some((reason, message)) = self.failure.take()
                && self.status.failure().is_none()
            {
                let reason = Some(reason.to_string());
                self.status
                    .say(FAILURE_TARGET, self.now, reason, Some(message));
            }
            return;
        }
        let spec = self.pass.workflow.spec.as_ref();
        let is_done =
            spec.is_ok_and(|spec| spec.steps.keys().all(|step| self.status.is_complete(step)));
        if is_done {
            self.status.say(COMPLETE, self.now, None, None);
            self.status.completion_time = Some(self.now.max(self.started()));
        }
    }

    /// The workflow has failed, for the first reason that was found.
    pub(super) fn end_failed(&mut self) {
        let known = self.status.failure();
        let known = known.map(|known| (known.reason.clone(), known.message.clone()));
        let found = self.failure.take();
        let found = found.map(|(reason, message)| (Some(reason.to_string()), Some(message)));
        let (reason, message) = known.or(found).unwrap_or_default();
        self.status.say(FAILED, self.now, reason, message);
        self.status.completion_time = Some(self.now.max(self.started()));
    }
}

/// The entry of a step whose Job may not exist yet.
fn claim(workflow: &Workflow, step: &str) -> StepStatus {
    StepStatus {
        complete: false,
        reference: ObjectReference {
            kind: "Job".to_owned(),
            api_version: "batch/v1".to_owned(),
            namespace: workflow.namespace.clone(),
            name: job_name(workflow, step),
            ..ObjectReference::default()
        },
    }
}

/// Whether a Job is of a step, as far as its labels tell: two steps may have one name of a Job.
fn is_of(job: &Job, step: &str) -> bool {
    job.step.as_deref().is_none_or(|of| of == step)
}
