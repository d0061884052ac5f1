//! Follows the runs of one kind for as long as the cluster has it, and looks for it otherwise.

use std::{convert::Infallible, pin::pin, sync::Arc};

use futures::{FutureExt, StreamExt, stream};
use hindsight_cluster::{ClusterError, classify};
use hindsight_workflow::custom::Form;
use kube::runtime::{
    WatchStreamExt, controller,
    reflector::{ObjectRef, Store, store::Writer},
    watcher::{self, Event, watcher},
};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::reconcile::{Context, reconcile, retry};
use crate::{
    cluster::Cluster,
    following::{Part, RunName},
    metrics::OfKind,
    object::RunObject,
    shared::Shared,
    watch::{Waits, told},
};

/// Follows the runs of a kind until `shutdown`, then ends the passes that are under way.
pub(crate) async fn serve(shared: Arc<Shared>, form: Form, shutdown: CancellationToken) {
    let poll = shared.config.kind_poll;
    let name = format!("{}.{}", form.plural(), Form::GROUP);
    let mut said = None;
    while !shutdown.is_cancelled() {
        let found = tokio::select! {
            () = shutdown.cancelled() => return,
            found = shared.cluster.has(form) => found,
        };
        let state = match &found {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(ClusterError::Refused { .. }) => 2,
            Err(_) => 3,
        };
        if said.replace(state) != Some(state) {
            match &found {
                Ok(true) => info!("following {name}"),
                Ok(false) => info!("{name} is not installed; looking for it every {poll:?}"),
                Err(error) => {
                    warn!("{name} cannot be listed; trying again every {poll:?}: {error}")
                }
            }
        }
        if matches!(found, Ok(true)) {
            follow(&shared, form, &shutdown).await;
            // Whatever it is that ended, it is said again.
            said = None;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(poll) => {}
        }
    }
}

/// Passes over runs until the cluster has the kind no more, or shows it no more, or until `shutdown`.
async fn follow(shared: &Arc<Shared>, form: Form, shutdown: &CancellationToken) {
    let writer = Writer::new(form);
    let runs = writer.as_reader();
    let (queue, queued) = mpsc::unbounded_channel();
    let part = Part {
        runs: runs.clone(),
        queue,
    };
    shared.following.set(form, Some(part.clone()));
    let of_kind = OfKind { kind: form.kind() };
    shared
        .metrics
        .custom
        .following
        .get_or_create(&of_kind)
        .set(1);
    let ending = shutdown.child_token();
    let names = stream::unfold(queued, |mut queued| async move {
        let name: RunName = queued.recv().await?;
        Some((Ok::<_, Infallible>(name), queued))
    });
    let names = names.take_until(ending.clone().cancelled_owned());
    let context = Arc::new(Context::new(Arc::clone(shared), form));
    let concurrency = shared.config.concurrency.get();
    let passes = controller::applier(
        |object, context| reconcile(object, context).boxed(),
        retry,
        context,
        runs,
        names,
        controller::Config::default().concurrency(concurrency),
    );
    let mut passes = pin!(passes.for_each(|_| std::future::ready(())));
    let is_over = tokio::select! {
        () = &mut passes => true,
        () = watch(shared, form, writer, &part) => false,
    };
    shared.following.set(form, None);
    shared
        .metrics
        .custom
        .following
        .get_or_create(&of_kind)
        .set(0);
    if !is_over {
        ending.cancel();
        passes.await;
    }
}

/// Puts into the queue what the watch is news of; returns when the cluster has the kind no more.
async fn watch(shared: &Shared, form: Form, writer: Writer<RunObject>, part: &Part) {
    let events = watcher(shared.cluster.runs(form), Cluster::watch(None)).backoff(Waits::new());
    let mut events = pin!(told(form.plural(), events).reflect(writer));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                if object.is_ours() {
                    drop(part.queue.send(ObjectRef::from_obj_with(&object, form)));
                }
            }
            Ok(Event::Delete(object)) => {
                if object.is_ours() {
                    tell_workflows(shared, &object);
                }
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) if is_lasting(&error) => return,
            Err(_) => {}
        }
    }
}

/// A run is gone, which its workflows do not outlive.
fn tell_workflows(shared: &Shared, run: &RunObject) {
    let uid = kube::Resource::meta(run).uid.as_deref();
    let workflows: &Store<_> = &shared.workflows;
    for workflow in workflows.state() {
        if workflow.run.as_ref().map(|run| run.uid.as_str()) == uid {
            shared.enqueue(ObjectRef::from_obj(workflow.as_ref()));
        }
    }
}

/// Whether a watch goes on failing until somebody changes something: the kind is gone, or not for us.
fn is_lasting(error: &watcher::Error) -> bool {
    let refused = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => classify(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => return false,
    };
    let is_gone = matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 404
    );
    is_gone || matches!(refused, ClusterError::Refused { .. })
}
