//! One pass over a custom run: does what the pass says, and tells it what that came to.

use std::{sync::Arc, time::Duration};

use hindsight_workflow::custom::{Form, Next, Owned, Pass, RunStatus};
use jiff::Timestamp;
use kube::runtime::{controller::Action, reflector::ObjectRef};
use tracing::info;

use crate::{
    following::RunName,
    interrupted::{Interrupted, Troubles},
    metrics::{OfEnd, custom_reason},
    object::RunObject,
    shared::{Failures, RESYNC, Shared, rest},
};

/// Most things that one pass does; a further one goes on where it ended.
const MOST: usize = 50;

/// What passes over the runs of one kind share.
pub(super) struct Context {
    shared: Arc<Shared>,
    form: Form,
    failures: Failures<RunName>,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, form: Form) -> Self {
        Self {
            shared,
            form,
            failures: Failures::default(),
        }
    }
}

/// Passes over a run; says when to do so again without news.
pub(super) async fn reconcile(
    object: Arc<RunObject>,
    context: Arc<Context>,
) -> Result<Action, Interrupted> {
    if !object.is_ours() {
        return Ok(Action::await_change());
    }
    let shared = &context.shared;
    if shared.workflows.wait_until_ready().await.is_err() {
        return Ok(Action::await_change());
    }
    shared.metrics.custom.passes.inc();
    let run = object.read(context.form).map_err(Interrupted::Unreadable)?;
    let mut task = Task {
        shared,
        object: object.as_ref().clone(),
        pass: Pass::new(run),
    };
    task.recall();
    let mut action = Action::requeue(Duration::ZERO);
    for _ in 0..MOST {
        let now = shared.cluster.now();
        match task.pass.next(now) {
            Next::Rest(wake) => {
                action = task.rest(now, wake);
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
    let name = ObjectRef::from_obj_with(object.as_ref(), context.form);
    context.failures.forgive(&name);
    Ok(action)
}

/// What becomes of a run over which a pass failed.
pub(super) fn retry(object: Arc<RunObject>, error: &Interrupted, context: Arc<Context>) -> Action {
    let name = ObjectRef::from_obj_with(object.as_ref(), context.form);
    let wait = context.failures.failed(&name);
    let metrics = &context.shared.metrics.custom;
    let troubles = Troubles {
        kind: context.form.kind(),
        cluster: &context.shared.cluster,
        conflicts: &metrics.conflicts,
        errors: &metrics.errors,
    };
    troubles.after(error, &name, wait)
}

struct Task<'s> {
    shared: &'s Shared,
    /// The run as it was read or written last.
    object: RunObject,
    pass: Pass,
}

impl Task<'_> {
    /// Tells the pass what the watch has said about workflows.
    fn recall(&mut self) {
        let namespace = self.pass.run().namespace.clone();
        for name in self.pass.names() {
            let known = self
                .shared
                .workflows
                .get(&ObjectRef::new(&name).within(&namespace));
            let value = known.and_then(|known| known.value().ok());
            if let Some(owned) = value.and_then(|value| Owned::read(&value).ok()) {
                self.pass.knows(owned);
            }
        }
    }

    /// Does one thing. Returns whether the run is still there.
    async fn execute(&mut self, next: Next) -> Result<bool, Interrupted> {
        let run = self.pass.run().clone();
        let cluster = &self.shared.cluster;
        match next {
            Next::Rest(_) => {}
            Next::Reread => {
                let found = cluster
                    .run(run.form, &run.namespace, &run.name, &run.uid)
                    .await?;
                // Of one that asks for something else by now, nothing is kept.
                match found.filter(RunObject::is_ours) {
                    Some(object) => self.has(object)?,
                    None => return Ok(false),
                }
            }
            Next::Look(name) => {
                let seen = cluster.owned(&run.namespace, &name).await?;
                self.pass.saw(&name, seen);
            }
            Next::Template(name) => {
                let seen = cluster.template(&run.namespace, &name).await?;
                self.pass.saw_template(seen);
            }
            Next::Write { status, event } => {
                self.write(&status).await?;
                if let Some(event) = event {
                    self.shared.events.of_run(&run, event);
                }
            }
            Next::Create(manifest) => {
                let (seen, is_new) = cluster.create_workflow(&run.namespace, &manifest).await?;
                if is_new {
                    self.shared.metrics.custom.workflows_created.inc();
                }
                if let Some(claim) = run.status.claim() {
                    self.pass.saw(&claim.name, seen);
                }
            }
            Next::Delete { name, uid } => {
                cluster.delete_workflow(&run.namespace, &name, &uid).await?;
                self.shared.metrics.custom.workflows_deleted.inc();
                self.pass.deleted(&uid);
            }
        }
        Ok(true)
    }

    fn has(&mut self, object: RunObject) -> Result<(), Interrupted> {
        let form = self.pass.run().form;
        let run = object.read(form).map_err(Interrupted::Unreadable)?;
        self.pass.has(run);
        self.object = object;
        Ok(())
    }

    async fn write(&mut self, status: &RunStatus) -> Result<(), Interrupted> {
        let run = self.pass.run().clone();
        let object = self
            .object
            .with_status(&status.value())
            .map_err(Interrupted::Unreadable)?;
        let written = self.shared.cluster.write_run_status(&run, &object).await?;
        let metrics = &self.shared.metrics.custom;
        metrics.status_writes.inc();
        self.has(written)?;
        if status.attempt() > run.status.attempt() {
            metrics.retries.inc();
        }
        if status.is_done() {
            let reason = custom_reason(status.is_successful(), status.reason());
            metrics.ended.get_or_create(&OfEnd { reason }).inc();
            info!(
                run.namespace = run.namespace,
                run.name = run.name,
                run.uid = run.uid,
                "{} `{}` ended: {reason}",
                run.form.kind(),
                run.name
            );
        }
        // A workflow whose end was noted is held no longer.
        let claim = run.status.claim();
        if let Some(claim) = claim.filter(|claim| !status.awaits(&claim.name)) {
            self.shared
                .enqueue(ObjectRef::new(&claim.name).within(&run.namespace));
        }
        Ok(())
    }

    /// When to pass over the run again if there is no news.
    fn rest(&self, now: Timestamp, wake: Option<Timestamp>) -> Action {
        if self.pass.run().status.is_done() {
            return Action::await_change();
        }
        rest(now, wake, RESYNC)
    }
}

#[cfg(test)]
mod tests {
    use crate::object::RunObject;

    #[test]
    fn of_runs_of_others_nothing_is_kept_and_no_content_breaks_a_list() {
        let text = r#"[
            {"metadata": {"name": "a"}, "spec": {"customSpec": {"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop", "spec": {"x": 1}}}},
            {"metadata": {"name": "b"}, "spec": {"customRef": 7}},
            {"metadata": {"name": "c"}},
            {"metadata": {"name": "d"}, "spec": {"customSpec": {"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow"}}}
        ]"#;
        let objects: Vec<RunObject> = serde_json::from_str(text).unwrap();
        let ours: Vec<bool> = objects.iter().map(RunObject::is_ours).collect();
        assert_eq!(ours, [false, false, false, true]);
    }
}
