//! One pass over a workflow: does what the pass says, and tells it what that came to.

use std::{sync::Arc, time::Duration};

use hindsight_cluster::ClusterError;
use hindsight_workflow::{
    Event, FINALIZER, JobSeen, Next, ObjectReference, Pass, Severity, Status, TargetSeen, Workflow,
    job_manifest, job_name,
};
use jiff::Timestamp;
use kube::runtime::{controller::Action, reflector::ObjectRef};
use tracing::info;

use crate::{
    cluster::target_of,
    custom::owners,
    interrupted::{Interrupted, Troubles},
    metrics::{OfEnd, reason},
    object::WorkflowObject,
    shared::{RESYNC, Shared, rest},
};

/// Most things that one pass does; a further one goes on where it ended.
const MOST: usize = 100;

/// Passes over a workflow; says when to do so again without news.
pub(crate) async fn reconcile(
    object: Arc<WorkflowObject>,
    shared: Arc<Shared>,
) -> Result<Action, Interrupted> {
    shared.jobs.ready().await;
    shared.metrics.passes.inc();
    let name = ObjectRef::from_obj(object.as_ref());
    let workflow = object.read().map_err(Interrupted::Unreadable)?;
    let is_over = workflow.status.is_finished() || workflow.is_deleting;
    if !is_over && owners::is_abandoned(&shared, &object).await? {
        let (namespace, name) = (&workflow.namespace, &workflow.name);
        shared
            .cluster
            .delete_workflow(namespace, name, &workflow.uid)
            .await?;
        return Ok(Action::requeue(RESYNC));
    }
    let jobs = shared.jobs.of(&workflow.uid);
    let mut task = Task {
        shared: &shared,
        object: object.as_ref().clone(),
        pass: Pass::new(workflow, jobs),
    };
    let mut action = Action::requeue(Duration::ZERO);
    for _ in 0..MOST {
        let now = shared.cluster.now();
        match task.pass.next(now) {
            Next::Rest(wake) => {
                action = task.rest(now, wake);
                break;
            }
            Next::Release(_) if owners::is_awaited(&shared, &task.object).await? => {
                action = Action::requeue(RESYNC);
                break;
            }
            next => {
                if !task.execute(next).await? {
                    action = Action::await_change();
                    break;
                }
            }
        }
    }
    task.remember_waits();
    shared.failures.forgive(&name);
    Ok(action)
}

/// What becomes of a workflow over which a pass failed.
pub(crate) fn retry(
    object: Arc<WorkflowObject>,
    error: &Interrupted,
    shared: Arc<Shared>,
) -> Action {
    let name = ObjectRef::from_obj(object.as_ref());
    let wait = shared.failures.failed(&name);
    // Its deadline holds also while the cluster refuses something.
    let left = object.read().ok().and_then(|workflow| {
        let due = workflow.deadline(workflow.status.start_time?)?;
        Duration::try_from(due.duration_since(shared.cluster.now())).ok()
    });
    let troubles = Troubles {
        kind: hindsight_workflow::KIND,
        cluster: &shared.cluster,
        conflicts: &shared.metrics.conflicts,
        errors: &shared.metrics.errors,
    };
    troubles.after(error, &name, left.map_or(wait, |left| wait.min(left)))
}

struct Task<'s> {
    shared: &'s Shared,
    /// The workflow as it was read or written last.
    object: WorkflowObject,
    pass: Pass,
}

impl Task<'_> {
    /// Does one thing. Returns whether the workflow is still there.
    async fn execute(&mut self, next: Next) -> Result<bool, Interrupted> {
        let workflow = self.pass.workflow().clone();
        let cluster = &self.shared.cluster;
        match next {
            Next::Rest(_) => {}
            Next::Reread => match cluster.workflow(&workflow).await? {
                Some(object) => self.has(object)?,
                None => return Ok(false),
            },
            Next::Look { jobs, targets } => self.look(&workflow, jobs, targets).await?,
            Next::List => {
                let jobs = cluster.list_jobs(&workflow).await?;
                self.pass.listed(jobs);
            }
            Next::Protect => {
                let mut finalizers = workflow.finalizers.clone();
                finalizers.push(FINALIZER.to_owned());
                self.hold(&workflow, &finalizers).await?;
            }
            Next::Write { status, events } => self.write(&workflow, &status, events).await?,
            Next::Create(steps) => self.create(&workflow, steps).await?,
            Next::Delete(jobs) => {
                for job in jobs {
                    cluster.delete_job(&workflow.namespace, &job).await?;
                    self.shared.metrics.jobs_deleted.inc();
                    self.pass.deleted(&job.uid);
                }
            }
            Next::Release(events) => {
                let ours = |name: &&String| *name != FINALIZER;
                let finalizers: Vec<String> =
                    workflow.finalizers.iter().filter(ours).cloned().collect();
                self.hold(&workflow, &finalizers).await?;
                for event in events {
                    self.shared.events.of_workflow(&workflow, event);
                }
                return Ok(!workflow.is_deleting);
            }
        }
        Ok(true)
    }

    fn has(&mut self, object: WorkflowObject) -> Result<(), Interrupted> {
        let workflow = object.read().map_err(Interrupted::Unreadable)?;
        self.pass.has(workflow);
        self.object = object;
        Ok(())
    }

    async fn hold(
        &mut self,
        workflow: &Workflow,
        finalizers: &[String],
    ) -> Result<(), Interrupted> {
        let object = self.object.with_finalizers(finalizers);
        let object = object.map_err(Interrupted::Unreadable)?;
        let written = self.shared.cluster.write(workflow, &object).await?;
        self.has(written)
    }

    async fn look(
        &mut self,
        workflow: &Workflow,
        jobs: Vec<String>,
        targets: Vec<String>,
    ) -> Result<(), Interrupted> {
        let cluster = &self.shared.cluster;
        for name in jobs {
            let seen = cluster.job(&workflow.namespace, &name).await?;
            self.pass.saw_job(&name, seen);
        }
        // What is read comes after that, so that no news falls between them.
        self.remember_waits();
        for step in targets {
            let Some(target) = workflow.target(&step) else {
                continue;
            };
            let seen = match self.target(&target).await {
                // The other steps and the deadline do not wait until that changes.
                Err(error @ ClusterError::Refused { .. }) => TargetSeen::Hidden(error.to_string()),
                seen => seen?,
            };
            self.pass.saw_target(&step, seen);
        }
        Ok(())
    }

    async fn target(&self, target: &ObjectReference) -> Result<TargetSeen, ClusterError> {
        if !self.shared.is_followed(target) {
            return self.shared.cluster.target(target).await;
        }
        let name = ObjectRef::new(&target.name).within(&target.namespace);
        match self.shared.workflows.get(&name) {
            Some(found) => {
                target_of(&found).map_err(|message| ClusterError::Refused { code: 0, message })
            }
            None => Ok(TargetSeen::Gone),
        }
    }

    async fn write(
        &mut self,
        workflow: &Workflow,
        status: &Status,
        events: Vec<Event>,
    ) -> Result<(), Interrupted> {
        let object = self.object.with_status(status);
        let object = object.map_err(Interrupted::Unreadable)?;
        let written = self.shared.cluster.write_status(workflow, &object).await?;
        self.shared.metrics.status_writes.inc();
        self.has(written)?;
        if status.is_finished() {
            let why = status
                .failure()
                .and_then(|failure| failure.reason.as_deref());
            let reason = reason(why);
            self.shared
                .metrics
                .ended
                .get_or_create(&OfEnd { reason })
                .inc();
            info!(
                workflow.namespace = workflow.namespace,
                workflow.name = workflow.name,
                workflow.uid = workflow.uid,
                "workflow `{}` ended: {reason}",
                workflow.name
            );
        }
        for event in events {
            self.shared.events.of_workflow(workflow, event);
        }
        Ok(())
    }

    /// Creates Jobs. Those that the API server denies, as for a quota, hold up no other one.
    async fn create(&mut self, workflow: &Workflow, steps: Vec<String>) -> Result<(), Interrupted> {
        let cluster = &self.shared.cluster;
        let mut denied = Vec::new();
        let mut first = None;
        for step in steps {
            let name = job_name(workflow, &step);
            let created = match job_manifest(workflow, &step) {
                Some(manifest) => {
                    cluster
                        .create_job(&workflow.namespace, &name, &manifest)
                        .await
                }
                None => Ok(JobSeen::Refused(
                    "the step has no template any more".to_owned(),
                )),
            };
            let seen = match created {
                Ok(seen) => seen,
                Err(error @ ClusterError::Refused { .. }) => {
                    denied.push(format!("step \"{step}\": Job {name}: {error}"));
                    first.get_or_insert(error);
                    continue;
                }
                // It may say when to ask again, which holds for all.
                Err(error) => {
                    first = Some(error);
                    break;
                }
            };
            if let JobSeen::There(job) = &seen
                && job.owner.as_deref() == Some(workflow.uid.as_str())
            {
                self.shared.metrics.jobs_created.inc();
                self.shared.jobs.created(&workflow.uid, job);
            }
            self.pass.saw_job(&name, seen);
        }
        if !denied.is_empty() {
            let event = Event {
                severity: Severity::Warning,
                reason: "JobNotCreated",
                note: denied.join("; "),
            };
            self.shared.events.of_workflow(workflow, event);
        }
        first.map_or(Ok(()), |error| Err(error.into()))
    }

    /// When to pass over the workflow again if there is no news.
    fn rest(&self, now: Timestamp, wake: Option<Timestamp>) -> Action {
        let workflow = self.pass.workflow();
        if workflow.status.is_finished() || workflow.is_deleting {
            return Action::await_change();
        }
        let is_waiting = workflow
            .waits_for()
            .any(|(_, target)| !self.shared.is_followed(&target));
        let most = match is_waiting {
            true => self.shared.config.external_poll.min(RESYNC),
            false => RESYNC,
        };
        rest(now, wake, most)
    }

    /// News of these workflows are news of this one.
    fn remember_waits(&self) {
        let workflow = self.pass.workflow();
        let name = ObjectRef::new(&workflow.name).within(&workflow.namespace);
        let is_over = workflow.status.is_finished() || workflow.is_deleting;
        let targets = workflow
            .waits_for()
            .filter(|(_, target)| self.shared.is_followed(target));
        let targets =
            targets.map(|(_, target)| ObjectRef::new(&target.name).within(&target.namespace));
        let targets = if is_over {
            Vec::new()
        } else {
            targets.collect()
        };
        self.shared.waiting.set(&name, targets);
    }
}
