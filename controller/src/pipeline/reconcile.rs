//! One pass over a PipelineRun: does what the pass says, and tells it what that came to.

use std::{sync::Arc, time::Duration};

use hindsight_workflow::{
    custom::RunStatus,
    pipeline::{ChildKind, Next, Pass},
};
use jiff::Timestamp;
use kube::runtime::{
    controller::Action,
    reflector::{ObjectRef, Store},
};
use tracing::info;

use crate::{
    interrupted::{Interrupted, Troubles},
    metrics::{OfEnd, OfKind, pipeline_reason},
    object::pipeline::{ChildObject, PipelineObject},
    shared::{Failures, RESYNC, Shared, rest},
};

/// Names a PipelineRun.
pub(super) type Name = ObjectRef<PipelineObject>;

/// The children of each kind that are followed.
pub(super) type Children = [(ChildKind, Store<ChildObject>); ChildKind::ALL.len()];

/// Most things that one pass does; a further one goes on where it ended.
const MOST: usize = 50;

/// What passes over PipelineRuns share.
pub(super) struct Context {
    shared: Arc<Shared>,
    children: Children,
    failures: Failures<Name>,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, children: Children) -> Self {
        Self {
            shared,
            children,
            failures: Failures::default(),
        }
    }
}

/// Passes over a PipelineRun; says when to do so again without news.
pub(super) async fn reconcile(
    object: Arc<PipelineObject>,
    context: Arc<Context>,
) -> Result<Action, Interrupted> {
    if !object.is_ours() {
        return Ok(Action::await_change());
    }
    for (_, children) in &context.children {
        if children.wait_until_ready().await.is_err() {
            return Ok(Action::await_change());
        }
    }
    let shared = &context.shared;
    shared.metrics.pipelines.passes.inc();
    let run = object.read().map_err(Interrupted::Unreadable)?;
    let mut task = Task {
        shared,
        object: object.as_ref().clone(),
        pass: Pass::new(run),
    };
    task.recall(&context.children);
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
    context
        .failures
        .forgive(&ObjectRef::from_obj(object.as_ref()));
    Ok(action)
}

/// What becomes of a PipelineRun over which a pass failed.
pub(super) fn retry(
    object: Arc<PipelineObject>,
    error: &Interrupted,
    context: Arc<Context>,
) -> Action {
    let name = ObjectRef::from_obj(object.as_ref());
    let wait = context.failures.failed(&name);
    let metrics = &context.shared.metrics.pipelines;
    let troubles = Troubles {
        kind: "PipelineRun",
        cluster: &context.shared.cluster,
        conflicts: &metrics.conflicts,
        errors: &metrics.errors,
    };
    troubles.after(error, &name, wait)
}

struct Task<'s> {
    shared: &'s Shared,
    /// The PipelineRun as it was read or written last.
    object: PipelineObject,
    pass: Pass,
}

impl Task<'_> {
    /// Tells the pass what the watches have said about children.
    fn recall(&mut self, children: &Children) {
        let namespace = self.pass.run().namespace.clone();
        for name in self.pass.names() {
            let of_kind = children.iter().find(|(kind, _)| *kind == name.kind);
            let reference = ObjectRef::new_with(&name.name, name.kind).within(&namespace);
            let known = of_kind.and_then(|(_, children)| children.get(&reference));
            if let Some(child) = known.and_then(|known| known.child.clone().ok()) {
                self.pass.knows(name, child);
            }
        }
    }

    /// Does one thing. Returns whether the PipelineRun is still there.
    async fn execute(&mut self, next: Next) -> Result<bool, Interrupted> {
        let run = self.pass.run().clone();
        let cluster = &self.shared.cluster;
        let metrics = &self.shared.metrics.pipelines;
        match next {
            Next::Rest(_) => {}
            Next::Reread => {
                let found = cluster.pipeline_run(&run).await?;
                // Of one that is delegated to others by now, nothing is kept.
                let Some(object) = found.filter(PipelineObject::is_ours) else {
                    return Ok(false);
                };
                self.pass
                    .has(object.read().map_err(Interrupted::Unreadable)?);
                self.object = object;
            }
            Next::Look(name) => {
                let seen = cluster.child(&run.namespace, &name).await?;
                self.pass.saw(&name, seen);
            }
            Next::Write { status, event } => {
                self.write(&status).await?;
                if let Some(event) = event {
                    self.shared.events.of_pipeline_run(&run, event);
                }
            }
            Next::Create { child, manifest } => {
                let created = cluster.create_child(&run.namespace, &child, &manifest);
                let (seen, is_new) = created.await?;
                if is_new {
                    let kind = child.kind.kind();
                    metrics
                        .children_created
                        .get_or_create(&OfKind { kind })
                        .inc();
                }
                self.pass.saw(&child, seen);
            }
            Next::Cancel {
                child,
                uid,
                message,
            } => {
                let cancelled = cluster.cancel_child(&run.namespace, &child, &uid, &message);
                if cancelled.await? {
                    let kind = child.kind.kind();
                    metrics
                        .children_cancelled
                        .get_or_create(&OfKind { kind })
                        .inc();
                }
                self.pass.cancelled(&uid);
            }
        }
        Ok(true)
    }

    async fn write(&mut self, status: &RunStatus) -> Result<(), Interrupted> {
        let run = self.pass.run();
        let object = self.object.with_status(status.value());
        let object = object.map_err(Interrupted::Unreadable)?;
        let cluster = &self.shared.cluster;
        let written = cluster.write_pipeline_status(run, &object).await?;
        let metrics = &self.shared.metrics.pipelines;
        metrics.status_writes.inc();
        if status.is_done() {
            let reason = pipeline_reason(status.reason());
            metrics.ended.get_or_create(&OfEnd { reason }).inc();
            info!(
                run.namespace = run.namespace,
                run.name = run.name,
                run.uid = run.uid,
                "PipelineRun `{}` ended: {reason}",
                run.name
            );
        }
        self.pass
            .wrote(written.read().map_err(Interrupted::Unreadable)?);
        self.object = written;
        Ok(())
    }

    /// When to pass over the PipelineRun again if there is no news.
    fn rest(&self, now: Timestamp, wake: Option<Timestamp>) -> Action {
        if self.pass.run().status.is_done() {
            return Action::await_change();
        }
        rest(now, wake, RESYNC)
    }
}
