//! Follows the runs of one kind for as long as the cluster has it, and looks for it otherwise.

use std::{pin::pin, sync::Arc};

use futures::{FutureExt, StreamExt};
use hindsight_workflow::custom::Form;
use kube::runtime::{
    WatchStreamExt, controller,
    reflector::{ObjectRef, Store, store::Writer},
    watcher::{Event, watcher},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::reconcile::{Context, reconcile, retry};
use crate::{
    cluster::Cluster,
    following::Part,
    kinds::{follow_while_there, is_lasting, pass_beside, queued},
    metrics::OfKind,
    object::RunObject,
    shared::Shared,
    watch::{Waits, told},
};

/// Follows the runs of a kind until `shutdown`, then ends the passes that are under way.
pub(crate) async fn serve(shared: Arc<Shared>, form: Form, shutdown: CancellationToken) {
    let name = format!("{}.{}", form.plural(), Form::GROUP);
    follow_while_there(
        &name,
        shared.config.kind_poll,
        &shutdown,
        || shared.cluster.has(form),
        || follow(&shared, form, &shutdown),
    )
    .await;
}

/// Passes over runs until the cluster has the kind no more, or shows it no more, or until `shutdown`.
async fn follow(shared: &Arc<Shared>, form: Form, shutdown: &CancellationToken) {
    let writer = Writer::new(form);
    let runs = writer.as_reader();
    let (queue, names) = mpsc::unbounded_channel();
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
    let names = queued(names, ending.clone());
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
    let over = || {
        shared.following.set(form, None);
        let following = &shared.metrics.custom.following;
        following.get_or_create(&of_kind).set(0);
    };
    let watches = async {
        watch(shared, form, writer, &part).await;
        over();
    };
    pass_beside(passes, watches, &ending).await;
    over();
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
