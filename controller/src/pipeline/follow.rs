//! Follows delegated PipelineRuns and their children for as long as the cluster has the kinds.

use std::{pin::pin, sync::Arc};

use futures::{FutureExt, StreamExt};
use hindsight_workflow::pipeline::{ChildKind, PIPELINE_RUN_UID_LABEL};
use kube::runtime::{
    WatchStreamExt, controller,
    reflector::{self, ObjectRef, store::Writer},
    watcher::{Event, watcher},
};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio_util::sync::CancellationToken;

use super::reconcile::{Children, Context, Name, reconcile, retry};
use crate::{
    cluster::Cluster,
    kinds::{follow_while_there, is_lasting, pass_beside, queued},
    object::pipeline::{ChildObject, PipelineObject},
    shared::Shared,
    watch::{Waits, told},
};

/// Follows PipelineRuns until `shutdown`, then ends the passes that are under way.
pub(crate) async fn serve(shared: Arc<Shared>, shutdown: CancellationToken) {
    follow_while_there(
        "pipelineruns.tekton.dev",
        shared.config.kind_poll,
        &shutdown,
        || shared.cluster.has_pipeline_runs(),
        || follow(&shared, &shutdown),
    )
    .await;
}

/// Passes over PipelineRuns until `shutdown`, or until the cluster no longer has or shows one of the kinds.
async fn follow(shared: &Arc<Shared>, shutdown: &CancellationToken) {
    let (runs, writer) = reflector::store();
    let writers = ChildKind::ALL.map(Writer::new);
    let children: Children =
        std::array::from_fn(|at| (ChildKind::ALL[at], writers[at].as_reader()));
    let [tasks, custom] = writers;
    let (queue, names) = mpsc::unbounded_channel();
    let following = &shared.metrics.pipelines.following;
    following.set(1);
    let ending = shutdown.child_token();
    let names = queued(names, ending.clone());
    let context = Arc::new(Context::new(Arc::clone(shared), children));
    let concurrency = shared.config.concurrency.get();
    let passes = controller::applier(
        |object, context| reconcile(object, context).boxed(),
        retry,
        context,
        runs,
        names,
        controller::Config::default().concurrency(concurrency),
    );
    let watches = Box::pin(async {
        tokio::select! {
            () = watch_runs(shared, writer, &queue) => {}
            () = watch_children(shared, ChildKind::TaskRun, tasks, &queue) => {}
            () = watch_children(shared, ChildKind::CustomRun, custom, &queue) => {}
        }
        following.set(0);
    });
    pass_beside(passes, watches, &ending).await;
    following.set(0);
}

/// Puts into the queue what the watch of PipelineRuns is news of; returns when the cluster has the kind no more.
async fn watch_runs(
    shared: &Shared,
    writer: Writer<PipelineObject>,
    queue: &UnboundedSender<Name>,
) {
    let api = shared.cluster.pipeline_runs();
    let events = watcher(api, Cluster::watch(None)).backoff(Waits::new());
    let mut events = pin!(told("pipelineruns", events).reflect(writer));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(object) | Event::Apply(object)) if object.is_ours() => {
                // The queue is gone once the controller ends.
                drop(queue.send(ObjectRef::from_obj(&object)));
            }
            Err(error) if is_lasting(&error) => return,
            Ok(_) | Err(_) => {}
        }
    }
}

/// The same of children, which are news of the PipelineRuns that control them.
async fn watch_children(
    shared: &Shared,
    kind: ChildKind,
    writer: Writer<ChildObject>,
    queue: &UnboundedSender<Name>,
) {
    let api = shared.cluster.children(kind);
    let config = Cluster::watch(Some(PIPELINE_RUN_UID_LABEL));
    let events = watcher(api, config).backoff(Waits::new());
    let mut events = pin!(told(kind.plural(), events).reflect(writer));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => {
                let namespace = kube::ResourceExt::namespace(&object).unwrap_or_default();
                let owner = object.child.ok().and_then(|child| child.owner_name);
                if let Some(owner) = owner {
                    drop(queue.send(ObjectRef::new(&owner).within(&namespace)));
                }
            }
            Err(error) if is_lasting(&error) => return,
            Ok(_) | Err(_) => {}
        }
    }
}
