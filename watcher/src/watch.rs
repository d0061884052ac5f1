//! Following one kind: what the cluster says about its objects goes into the ledger, and what
//! needs work onto the queue. Nothing is decided here but whether there may be work.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use hindsight_proto::run::{Kind, View};

use crate::{
    cluster::{self, ClusterError},
    ledger::Uid,
    object::Object,
    plan,
    queue::Work,
    shared::{Presence, Shared},
    spool,
    version::Version,
};

/// Follows `kind` until `stop`: waits until the cluster has it, and again if it loses it.
pub(crate) async fn follow(shared: Arc<Shared>, kind: &'static Kind, stop: CancellationToken) {
    let watch = Watch { shared, kind };
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch.run() => {}
    }
}

struct Watch {
    shared: Arc<Shared>,
    kind: &'static Kind,
}

impl Watch {
    async fn run(&self) {
        let tuning = &self.shared.config.tuning;
        let mut list = 0;
        let mut failures = 0;
        loop {
            match self.shared.cluster.has(self.kind).await {
                Ok(true) => {
                    if failures > 0 {
                        info!(kind = self.kind.kind, "the cluster is back");
                    }
                    failures = 0;
                    self.shared.health.works(self.kind);
                    if self.shared.presence(self.kind) != Some(Presence::Forbidden) {
                        self.shared.set_presence(self.kind, Presence::Listing);
                        info!("watching {}", self.kind.data_type());
                    }
                    self.watch(&mut list).await;
                    continue;
                }
                Ok(false) => {
                    failures = 0;
                    self.shared.health.works(self.kind);
                    self.absent();
                    tokio::time::sleep(tuning.kind_poll).await;
                }
                Err(error) => {
                    failures += 1;
                    self.shared.health.broke(self.kind);
                    if failures == 1 {
                        warn!(
                            kind = self.kind.kind,
                            "the cluster cannot be asked for {}: {error}; trying until it can",
                            self.kind.data_type()
                        );
                    }
                    tokio::time::sleep(tuning.cluster.after(failures)).await;
                }
            }
        }
    }

    /// The cluster does not have the kind, so none of its objects either.
    fn absent(&self) {
        let before = self.shared.set_presence(self.kind, Presence::Absent);
        if before != Some(Presence::Absent) {
            info!(
                "{} is not installed; looking for it every {:?}",
                self.kind.data_type(),
                self.shared.config.tuning.kind_poll
            );
        }
        self.vanished(u32::MAX);
    }

    /// The cluster does not let us see the kind. That must not keep us from all others.
    async fn forbidden(&self, error: &ClusterError) {
        let before = self.shared.set_presence(self.kind, Presence::Forbidden);
        if before != Some(Presence::Forbidden) {
            warn!(
                kind = self.kind.kind,
                "{} cannot be watched: {error}; allow list and watch of {}.{}, or leave it out \
                 of --kinds",
                self.kind.data_type(),
                self.kind.plural,
                self.kind.group
            );
        }
        tokio::time::sleep(self.shared.config.tuning.kind_poll).await;
    }

    /// Reads events until the cluster no longer has the kind, or no longer shows it.
    async fn watch(&self, list: &mut u32) {
        let mut config = watcher::Config::default().page_size(self.shared.config.tuning.page_size);
        let selectors = &self.shared.config.selectors;
        if let Some((_, labels)) = selectors.iter().find(|(kind, _)| kind == &self.kind) {
            config = config.labels(labels);
        }
        let stream = watcher(self.shared.cluster.watched(self.kind), config);
        let mut stream = std::pin::pin!(stream);
        let mut failures = 0;
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => {
                    // A list that begins says nothing about the cluster yet.
                    if failures > 0 && !matches!(event, Event::Init) {
                        info!(
                            kind = self.kind.kind,
                            "watching {} again",
                            self.kind.data_type()
                        );
                        failures = 0;
                        self.shared.health.works(self.kind);
                    }
                    self.take(event, list).await;
                }
                Err(error) => {
                    if is_missing(&error)
                        && matches!(self.shared.cluster.has(self.kind).await, Ok(false))
                    {
                        return;
                    }
                    if let Some(refused) = cluster::refusal(&error) {
                        return self.forbidden(&refused).await;
                    }
                    failures += 1;
                    self.shared.health.broke(self.kind);
                    let said = describe(&error);
                    if failures == 1 && !is_expired(&error) {
                        warn!(
                            kind = self.kind.kind,
                            "the watch of {} broke: {said}; trying until it works",
                            self.kind.data_type()
                        );
                    } else {
                        debug!(kind = self.kind.kind, failures, "watch: {said}");
                    }
                    let wait = self.shared.config.tuning.cluster.after(failures);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn take(&self, event: Event<Object>, list: &mut u32) {
        match event {
            Event::Init => *list = list.wrapping_add(1) % u32::MAX,
            Event::InitApply(object) | Event::Apply(object) => {
                self.saw(object, *list, false).await;
                self.room().await;
            }
            Event::Delete(object) => {
                self.saw(object, *list, true).await;
                self.room().await;
            }
            Event::InitDone => {
                self.vanished(*list);
                self.shared.set_presence(self.kind, Presence::Listed);
            }
        }
    }

    async fn saw(&self, object: Object, list: u32, gone: bool) {
        let object = object.into_value(&cluster::resource(self.kind));
        let Some(uid) = self.note(&object, list, gone) else {
            return;
        };
        let shared = &self.shared;
        let bytes = bytes(&object);
        let view = View::new(&object);
        let policy = &shared.config.policy;
        // What waits for us in the cluster need not be on disk.
        let is_held = plan::is_held(&view, policy, shared.clock.now());
        let may_go = gone || !(shared.gate.is_open() || is_held);
        let copy = (shared.spool.is_some() && may_go).then(|| bytes.clone());
        let work = Work {
            object: Some(bytes),
            gone,
            is_final: view.finish().done,
            is_bare: plan::finalizer::is_missing(&view, policy),
        };
        match copy {
            // Before anybody may look for it there.
            Some(copy) if gone => {
                shared.keep(&uid, object, copy).await;
                shared.push(&uid, work);
            }
            Some(copy) => {
                shared.push(&uid, work);
                shared.keep(&uid, object, copy).await;
            }
            None => shared.push(&uid, work),
        }
    }

    /// Puts into the ledger what was seen. The run, if there may be work.
    fn note(&self, object: &Value, list: u32, gone: bool) -> Option<Uid> {
        let shared = &self.shared;
        let view = View::new(object);
        if !plan::is_ours(&view, &shared.config.policy) {
            return None;
        }
        let mut ledger = shared.ledger();
        let (uid, entry) = ledger.saw(self.kind, &view, list, shared.clock.now())?;
        entry.remembered.gone |= gone;
        entry.told = spool::version(object);
        let deadline = plan::finalizer::deadline(&view, &shared.config.policy).filter(|_| !gone);
        let version = view.resource_version().map(Version::from);
        let is_settled = entry.settled == version;
        drop(ledger);
        shared.tick();
        if let Some(deadline) = deadline {
            shared.deadlines.add(deadline, &uid);
        }
        let policy = &shared.config.policy;
        let may_be_work = view.finish().done
            || policy.store_incomplete
            || self.kind.is_standing()
            || plan::finalizer::may_be_work(&view, policy);
        (gone || (may_be_work && !is_settled)).then_some(uid)
    }

    /// Every object of the kind that was not in the `list`-th list is gone.
    fn vanished(&self, list: u32) {
        let missing = self.shared.ledger().unlisted(self.kind, list);
        for uid in missing {
            if let Some(entry) = self.shared.ledger().get_mut(&uid) {
                entry.remembered.gone = true;
            }
            self.shared.push(
                &uid,
                Work {
                    gone: true,
                    ..Work::default()
                },
            );
        }
    }

    /// Waits while much is held. Not while the server is away: then what happens in the
    /// cluster must be seen nevertheless, because what is deleted is seen only once. And with
    /// finalizers only if that much is gone from the cluster already: what is there waits for us,
    /// and runs that begin must be seen to be protected.
    async fn room(&self) {
        let (config, queue) = (&self.shared.config, &self.shared.queue);
        if config.policy.finalizers && queue.held() <= config.tuning.hold_bytes / 2 {
            return;
        }
        let mut state = self.shared.gate.state();
        tokio::select! {
            () = queue.room() => {}
            _ = state.wait_for(Option::is_some) => {}
            // Runs that can never be stored may fill the room for good.
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

/// An object as it is sent: compact JSON, everything in the order in which it came.
pub(crate) fn bytes(object: &Value) -> Vec<u8> {
    serde_json::to_vec(object).expect("JSON can be written as JSON")
}

fn is_missing(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            matches!(cluster::judge(error), ClusterError::Moved)
        }
        watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}

/// The watch fell behind and begins anew; that is part of the protocol.
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410)
}

fn describe(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => match cluster::judge(error) {
            ClusterError::Moved => "its version is too old".to_owned(),
            judged => judged.to_string(),
        },
        watcher::Error::WatchError(status) => format!("{} {}", status.code, status.message),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}
