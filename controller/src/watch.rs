//! Follows workflows and Jobs, and puts what they are news of into the queue.

use std::{
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt};
use hindsight_workflow::{Event as Told, Severity, UID_LABEL};
use kube::runtime::{
    WatchStreamExt,
    reflector::{ObjectRef, store::Writer},
    utils::Backoff,
    watcher::{self, Event, watcher},
};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::{caches::Name, cluster::Cluster, object::WorkflowObject, shared::Shared};

/// First wait after a watch broke.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// Longest wait after a watch broke: for as long as that no step starts.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A watch that was well for so long is not the one that broke before.
const CALM: Duration = Duration::from_secs(30);

/// How long to wait after a watch broke: twice as long as before, and some more by chance.
#[derive(Debug)]
pub(crate) struct Waits {
    next: Duration,
    asked: Option<Instant>,
    chance: RandomState,
}

impl Waits {
    pub(crate) fn new() -> Self {
        Self {
            next: FIRST_WAIT,
            asked: None,
            chance: RandomState::new(),
        }
    }
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let is_calm = |asked: Instant| now.duration_since(asked) > CALM;
        if self.asked.is_some_and(is_calm) {
            self.next = FIRST_WAIT;
        }
        self.asked = Some(now);
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST_WAIT);
        // Replicas do not come back all at once.
        let share = self.chance.hash_one(now) % 50;
        Some(wait + wait * u32::try_from(share).unwrap_or_default() / 100)
    }
}

impl Backoff for Waits {
    /// A list that works says nothing about the watch behind it; time does.
    fn reset(&mut self) {}
}

/// Follows workflows, for as long as the task lives.
pub(crate) async fn follow_workflows(shared: Arc<Shared>, writer: Writer<WorkflowObject>) {
    let api = shared.cluster.workflows();
    let events = watcher(api, Cluster::watch(None)).backoff(Waits::new());
    let mut events = pin!(told("workflows", events).reflect(writer));
    let mut listed: Vec<Name> = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                tell_run(&shared, &object);
                listed.push(ObjectRef::from_obj(&object));
            }
            Ok(Event::InitDone) => {
                // Those that others wait for may have gone meanwhile.
                for name in listed.drain(..) {
                    news(&shared, name);
                }
            }
            Ok(Event::Apply(object)) => {
                tell_run(&shared, &object);
                news(&shared, ObjectRef::from_obj(&object));
            }
            Ok(Event::Delete(object)) => {
                let name = ObjectRef::from_obj(&object);
                shared.waiting.set(&name, Vec::new());
                shared.failures.forgive(&name);
                tell_run(&shared, &object);
                news(&shared, name);
                tell_deleted(&shared, &object);
            }
            Err(_) => {}
        }
    }
}

/// Follows the Jobs of workflows, for as long as the task lives.
pub(crate) async fn follow_jobs(shared: Arc<Shared>) {
    let api = shared.cluster.jobs();
    let events = watcher(api, Cluster::watch(Some(UID_LABEL))).backoff(Waits::new());
    let mut events = pin!(told("jobs", events));
    while let Some(event) = events.next().await {
        if let Ok(event) = event {
            for name in shared.jobs.take(event) {
                shared.enqueue(name);
            }
        }
    }
}

/// A workflow is not as it was.
fn news(shared: &Shared, name: Name) {
    for behind in shared.waiting.behind(&name) {
        shared.enqueue(behind);
    }
    shared.enqueue(name);
}

/// A workflow is not as it was, which is news of the custom run that controls it.
fn tell_run(shared: &Shared, object: &WorkflowObject) {
    if let Some(run) = &object.run {
        let namespace = kube::ResourceExt::namespace(object).unwrap_or_default();
        shared.following.enqueue(&namespace, run);
    }
}

/// A workflow that had ended is not held any more, so that its delete is seen here alone.
fn tell_deleted(shared: &Shared, object: &WorkflowObject) {
    if let Ok(workflow) = object.read()
        && workflow.status.is_finished()
    {
        let event = Told {
            severity: Severity::Normal,
            reason: "WorkflowDeleted",
            note: "deleted after its end".to_owned(),
        };
        shared.events.of_workflow(&workflow, event);
    }
}

/// `events`, with a line in the log when they begin and cease to fail.
pub(crate) fn told<K>(
    kind: &'static str,
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> {
    let mut is_failing = false;
    events.inspect(move |event| match event {
        Err(error) if !is_failing => {
            is_failing = true;
            warn!(kind, "the watch of {kind} fails and is retried: {error}");
        }
        Err(error) => debug!(kind, "the watch of {kind}: {error}"),
        Ok(_) if is_failing => {
            is_failing = false;
            info!(kind, "the watch of {kind} works again");
        }
        Ok(_) => {}
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LONGEST_WAIT, Waits};

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_breaks_again_and_again_waits_longer_and_never_long() {
        let mut waits = Waits::new();
        let all: Vec<Duration> = waits.by_ref().take(8).collect();
        assert!(all[0] < Duration::from_millis(300) && all[3] >= Duration::from_millis(1600));
        assert!(all.iter().all(|wait| *wait < LONGEST_WAIT * 2));
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(waits.next().unwrap() < Duration::from_millis(300));
    }
}
