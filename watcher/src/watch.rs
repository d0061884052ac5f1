//! Following one kind: what the cluster says about its objects goes into the ledger, and what
//! needs work onto the queue. Nothing is decided here but whether there may be work.
//!
//! A watch is read whatever the server does: an API server closes the watch of a client that does
//! not read, and forgets what happened meanwhile.

mod failing;
mod namespaces;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use hindsight_run::Kind;

use crate::{
    cluster::{self, Found},
    config::Logs,
    ledger::Uid,
    list_watch::{Event, Limits, ListWatch, Phase},
    logs::{Facts, label},
    metrics::OfKind,
    object::{Object, to_bytes},
    plan,
    presence::KindPresence,
    queue::Work,
    shared::Shared,
    spool::version,
    version::Version,
};

pub(crate) use namespaces::follow as follow_namespaces;

/// So often in a row a watch may be refused before it counts: an API server that starts refuses
/// some requests before it knows all roles.
const REFUSALS: u32 = 3;

/// Follows `kind` until `stop`: waits until the cluster has it, and again if it loses it.
pub(crate) async fn follow(shared: Arc<Shared>, kind: &'static Kind, stop: CancellationToken) {
    let mut watch = Watch {
        shared,
        kind,
        list: 0,
        failures: 0,
        refusals: 0,
        failing_since: None,
        patience: Duration::ZERO,
    };
    stop.run_until_cancelled(watch.run()).await;
}

struct Watch {
    shared: Arc<Shared>,
    kind: &'static Kind,
    /// Number of the list that is read, or was read last.
    list: u32,
    /// How many reads in a row failed.
    failures: u32,
    /// How often in a row the watch was refused, whatever else failed between.
    refusals: u32,
    failing_since: Option<Instant>,
    /// How long this list may still wait for the server.
    patience: Duration,
}

impl Watch {
    async fn run(&mut self) {
        let poll = self.shared.config.tuning.kind_poll;
        loop {
            match self.shared.cluster.api.find(self.kind).await {
                Ok(Found::Namespaced) => self.watch().await,
                Ok(Found::Absent) => {
                    self.not_watched(KindPresence::Absent, |name| {
                        info!("{name} is not installed; looking for it every {poll:?}");
                    });
                    self.on_missing(u32::MAX);
                    tokio::time::sleep(poll).await;
                }
                Ok(Found::OtherVersions(served)) => {
                    // Its objects are still there: nothing of what is known has vanished.
                    self.not_watched(KindPresence::Broken, |name| {
                        error!(
                            "{name} is not served, but {} is, which is not read: its runs are not \
                             stored, and runs that name one as their child are not collected; serve \
                             the version of {name} as well, or leave the kind out of --kinds",
                            served.join(" and ")
                        );
                    });
                    tokio::time::sleep(poll).await;
                }
                Ok(Found::ClusterScoped) => {
                    self.not_watched(KindPresence::ClusterScoped, |name| {
                        error!(
                            "{name} is cluster-scoped and is not stored: only objects of namespaces \
                             are; take its [[kind]] out of the configuration"
                        );
                    });
                    tokio::time::sleep(poll).await;
                }
                Err(failure) if failure.is_forbidden() => self.forbidden(&failure).await,
                Err(failure) => self.failed(&failure).await,
            }
        }
    }

    /// Reads until the cluster no longer has the kind, or no longer shows it.
    async fn watch(&mut self) {
        let shared = Arc::clone(&self.shared);
        let known = shared.cluster.kinds.get(self.kind);
        if !matches!(known, Some(KindPresence::Forbidden | KindPresence::Broken)) {
            shared.set_presence(self.kind, KindPresence::Listing);
            info!("watching {}", self.kind.data_type());
        }
        let selectors = shared.config.selectors.iter();
        let mut selectors = selectors.filter(|(kind, _)| kind == &self.kind);
        let labels = selectors.next().map(|(_, labels)| labels.as_str());
        let limits = Limits::from(&shared.config.tuning);
        let mut objects =
            ListWatch::new(shared.cluster.api.watched(self.kind), limits).labels(labels);
        loop {
            match objects.next().await {
                Ok(event) => {
                    if !matches!(event, Event::Init) {
                        self.refusals = 0;
                    }
                    if event.is_success() {
                        self.recovered();
                    }
                    self.on_event(event).await;
                }
                Err(failure) if failure.is_forbidden() => {
                    self.refusals += 1;
                    if failure.phase != Phase::Watch || self.refusals >= REFUSALS {
                        return self.forbidden(&failure).await;
                    }
                    self.failed(&failure).await;
                }
                Err(failure) => {
                    let is_gone = failure.is_missing()
                        && matches!(
                            shared.cluster.api.find(self.kind).await,
                            Ok(Found::Absent | Found::OtherVersions(_))
                        );
                    if is_gone {
                        return;
                    }
                    self.failed(&failure).await;
                }
            }
        }
    }

    async fn on_event(&mut self, event: Event) {
        match event {
            Event::Init => {
                self.list = self.list.wrapping_add(1) % u32::MAX;
                self.patience = self.shared.config.tuning.list_patience;
                let kind = self.kind.kind;
                self.shared
                    .metrics
                    .lists
                    .get_or_create(&OfKind { kind })
                    .inc();
            }
            Event::InitApply(object) => {
                self.on_object(object, self.list, false).await;
                self.wait_for_room().await;
            }
            Event::Apply(object) => self.on_object(object, self.list, false).await,
            Event::Delete(object) => self.on_object(object, self.list, true).await,
            Event::InitDone => self.on_missing(self.list),
            Event::Open
                if self.shared.cluster.kinds.get(self.kind) != Some(KindPresence::Listed) =>
            {
                self.shared.set_presence(self.kind, KindPresence::Listed);
            }
            Event::Open | Event::Settled | Event::Bookmark => {}
        }
    }

    /// Tells what of a run matters for its logs.
    fn note_logs(&self, object: &Value) {
        let shared = &self.shared;
        if shared.config.logs == Logs::Off || label(self.kind).is_none() {
            return;
        }
        let view = shared.view(object);
        let policy = &shared.config.policy;
        let Some(uid) = view.uid().filter(|_| plan::concerns_us(&view, policy)) else {
            return;
        };
        let Ok(upload) = plan::upload(&view, policy) else {
            return;
        };
        let now = shared.clock.now();
        if let Some(facts) = Facts::new(&view, &upload.grouping.record, now) {
            shared.logs.saw_run(&Uid::from(uid), facts, Instant::now());
        }
    }

    async fn on_object(&self, object: Object, list: u32, gone: bool) {
        let object = object.into_value(&cluster::resource(self.kind));
        if !gone {
            self.note_logs(&object);
        }
        let Some(uid) = self.note(&object, list, gone) else {
            return;
        };
        let shared = &self.shared;
        let bytes = to_bytes(&object);
        let view = shared.view(&object);
        let policy = &shared.config.policy;
        // What waits for us in the cluster need not be on disk.
        let may_vanish = gone || !plan::is_held(&view, policy, shared.clock.now());
        let copy = (shared.server.spool.is_some() && may_vanish).then(|| bytes.clone());
        let work = Work {
            object: Some(bytes),
            gone,
            is_final: view.finish().done,
            needs_finalizer: plan::finalizer::is_missing(&view, policy),
            is_progress: !gone && plan::goes_on(&view, policy),
        };
        match copy {
            // Before anybody may look for it there.
            Some(copy) if gone => {
                shared.spool_state(&uid, object, copy).await;
                shared.push(&uid, work);
            }
            Some(copy) => {
                shared.push(&uid, work);
                // Looked at after the push: a server that went away before it is known to
                // `spool_backlog`, which finds only what was pushed.
                if !shared.server.gate.is_open() {
                    shared.spool_state(&uid, object, copy).await;
                }
            }
            None => shared.push(&uid, work),
        }
    }

    /// Puts into the ledger what was seen. The run, if there may be work.
    fn note(&self, object: &Value, list: u32, gone: bool) -> Option<Uid> {
        let shared = &self.shared;
        let view = shared.view(object);
        let mut ledger = shared.ledger();
        let is_known = || ledger.get(&Uid::from(view.uid()?));
        if !plan::concerns_us(&view, &shared.config.policy) && is_known().is_none() {
            return None;
        }
        let (uid, entry) = ledger.saw(self.kind, &view, list, shared.clock.now())?;
        if gone {
            entry.remembered.presence.set_gone(true);
        }
        entry.last_seen_version = version(object);
        let deadline = plan::finalizer::deadline(&view, &shared.config.policy).filter(|_| !gone);
        let version = view.resource_version().map(Version::from);
        let is_reconciled = entry.reconciled == version;
        drop(ledger);
        shared.notify_progress();
        if let Some(deadline) = deadline {
            shared.queues.deadlines.add(deadline, &uid);
        }
        let policy = &shared.config.policy;
        let may_be_work = view.finish().done
            || policy.store_incomplete
            || self.kind.is_long_lived()
            || plan::finalizer::may_be_work(&view, policy);
        (gone || (may_be_work && !is_reconciled)).then_some(uid)
    }

    /// Every object of the kind that was not in the `list`-th list is gone.
    fn on_missing(&self, list: u32) {
        let missing = self.shared.ledger().unlisted(self.kind, list);
        for uid in missing {
            if let Some(entry) = self.shared.ledger().get_mut(&uid) {
                entry.remembered.presence.set_gone(true);
            }
            self.shared.push(&uid, Work::gone());
        }
    }

    /// Lets the server catch up with a list, so that what is listed need not be read again. Never for
    /// longer than was agreed, because the watch begins after the list; nor while it is unavailable;
    /// nor with finalizers or logs, because runs that begin must be seen to be protected or read.
    async fn wait_for_room(&mut self) {
        let shared = &self.shared;
        let must_see = shared.config.policy.finalizers || shared.config.logs != Logs::Off;
        if must_see || self.patience.is_zero() {
            return;
        }
        let began = Instant::now();
        let mut state = shared.server.gate.state();
        let room = async {
            tokio::select! {
                () = shared.queues.runs.room() => {}
                _ = state.wait_for(Option::is_some) => {}
            }
        };
        let waited = timeout(self.patience, room).await;
        self.patience = match waited {
            Ok(()) => self.patience.saturating_sub(began.elapsed()),
            Err(_elapsed) => Duration::ZERO,
        };
    }
}
