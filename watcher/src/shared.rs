//! What the tasks of one watcher share: its configuration, its memory, and the ways out.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use hindsight_run::{Kind, Kinds, View};

use crate::{
    backoff::Backoff,
    cluster::{self, Cluster},
    config::Config,
    deadline::Deadlines,
    gate::Gate,
    health::Health,
    ledger::{Entry, Ledger, Uid},
    marks::Marks,
    metrics::{Metrics, OfRun},
    namespaces::Namespaces,
    pace::Pace,
    queue::{Queue, Work},
    refusals::{Action, Refusals, Scope},
    sink::Sink,
    spool::Spool,
};
use hindsight_runtime::clock::Clock;

/// How many runs that are lost together are named in the log.
const NAMED: usize = 1000;
/// Clients of Kubernetes grant each object 25 events, and one every five minutes; this is for all.
const EVENTS_AT_ONCE: u32 = 25;
const EVENTS_A_SECOND: f64 = 0.1;

const WARNINGS_AT_ONCE: u32 = 25;
const WARNINGS_A_SECOND: f64 = 0.2;

/// Whether the cluster has a kind, and whether all of its objects were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindPresence {
    /// The cluster was not asked yet, or did not answer.
    Unknown,
    /// The cluster does not have it.
    Absent,
    /// The cluster does not let us see it.
    Forbidden,
    /// The cluster has not been able to list it for long, although it answers.
    Broken,
    /// Its objects are in no namespace, and are not stored.
    ClusterScoped,
    /// Its first list is being read.
    Listing,
    /// All of its objects were seen, and a watch of them was open.
    Listed,
}

/// Whether this watcher is the one that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is.
    Leader,
    /// Another one is.
    Standby {
        /// Which, if that is known.
        leader: String,
    },
}

/// The tasks of one watcher share this.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The kinds of object that are known: those that are built in or watched.
    pub(crate) kinds: Kinds,
    pub(crate) cluster: Cluster,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue: Queue,
    pub(crate) gate: Gate,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    pub(crate) deadlines: Deadlines,
    pub(crate) namespaces: Namespaces,
    /// How fast runs are deleted.
    pub(crate) deletes: Pace,
    /// How fast the cluster is written to otherwise.
    pub(crate) writes: Pace,
    /// How often the cluster is told of runs that cannot be stored.
    pub(crate) events: Pace,
    /// How often single runs are warned of in the log.
    pub(crate) warnings: Pace,
    /// How many warnings were left out.
    pub(crate) unsaid: AtomicU64,
    pub(crate) marks: Marks,
    pub(crate) refusals: Refusals,
    pub(crate) spool: Option<Arc<Spool>>,
    /// Cancelled when the time for an orderly end is over.
    pub(crate) abandon: CancellationToken,
    pub(crate) stored: AtomicU64,
    pub(crate) collected: AtomicU64,
    pub(crate) lost: AtomicU64,
    changed: watch::Sender<()>,
    ledger: Mutex<Ledger>,
    role: Mutex<Role>,
    /// Why nothing could be spooled the last time.
    spool_problem: Mutex<Option<String>>,
    presence: Mutex<BTreeMap<(&'static str, &'static str), KindPresence>>,
}

impl Shared {
    pub(crate) fn new(
        mut config: Config,
        cluster: Cluster,
        sink: Arc<dyn Sink>,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
        spool: Option<Arc<Spool>>,
    ) -> Self {
        let unknown = |kind: &&'static Kind| ((kind.group, kind.plural), KindPresence::Unknown);
        let presence = config.kinds.iter().map(unknown).collect();
        let leader = String::new();
        let role = match config.lease {
            None => Role::Leader,
            Some(_) => Role::Standby { leader },
        };
        let selectors = config.selectors.iter();
        config.policy.selectors = selectors
            .filter_map(|(kind, labels)| Some((*kind, labels.parse().ok()?)))
            .collect();
        // What is in the cluster can be read again, and with finalizers it waits for us there.
        let readable = match config.policy.finalizers {
            true => config.tuning.hold_bytes / 16,
            false => config.tuning.hold_bytes / 4,
        };
        Self {
            queue: Queue::new(config.tuning.hold_bytes, readable),
            gate: Gate::new(config.tuning.server),
            health: Health::default(),
            abandon: CancellationToken::new(),
            deadlines: Deadlines::default(),
            namespaces: Namespaces::default(),
            deletes: Pace::new(config.deletes_per_second, 1),
            writes: Pace::new(config.writes_per_second, config.writes_burst.get()),
            events: Pace::new(Some(EVENTS_A_SECOND), EVENTS_AT_ONCE),
            warnings: Pace::new(Some(WARNINGS_A_SECOND), WARNINGS_AT_ONCE),
            unsaid: AtomicU64::new(0),
            marks: Marks::default(),
            refusals: Refusals::new(Backoff {
                first: config.tuning.retry.first,
                most: config.tuning.rare_retry,
            }),
            spool,
            role: Mutex::new(role),
            spool_problem: Mutex::new(None),
            stored: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            changed: watch::Sender::new(()),
            ledger: Mutex::new(Ledger::new()),
            presence: Mutex::new(presence),
            kinds: Kinds::with(&config.kinds),
            config,
            cluster,
            sink,
            clock,
            metrics,
        }
    }

    /// A view of an object in the cluster.
    pub(crate) fn view<'a>(&'a self, object: &'a Value) -> View<'a> {
        View::with_kinds(object, &self.kinds)
    }

    /// The ledger. Never held over an `await`.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn role(&self) -> Role {
        self.role
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_role(&self, role: Role) {
        *self.role.lock().unwrap_or_else(PoisonError::into_inner) = role;
        self.tick();
    }

    /// Tells whoever waits for progress that there was some.
    pub(crate) fn tick(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn presence(&self, kind: &Kind) -> Option<KindPresence> {
        let presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        presence.get(&(kind.group, kind.plural)).copied()
    }

    /// Notes whether a kind is there; returns what was known before.
    ///
    /// Runs that waited for that are looked at again at once.
    pub(crate) fn set_presence(
        &self,
        kind: &'static Kind,
        now: KindPresence,
    ) -> Option<KindPresence> {
        let mut presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        let before = presence.insert((kind.group, kind.plural), now);
        drop(presence);
        if before != Some(now) && self.is_listed() {
            self.wake_waiting();
        }
        self.tick();
        before
    }

    /// Runs that wait for something about the whole cluster are looked at again.
    pub(crate) fn wake_waiting(&self) {
        let waiting = self.ledger().waiting();
        for uid in waiting {
            self.push(&uid, Work::default());
        }
    }

    /// What a run's owners waited for may have happened: it is stored, or it is there no longer.
    pub(crate) fn wake_owners(&self, uid: &Uid) {
        let owners = self.ledger().waiting_owners(uid);
        for owner in owners {
            self.push(&owner, Work::default());
        }
    }

    /// Whether every object was seen of every kind that the cluster has and shows.
    pub(crate) fn is_listed(&self) -> bool {
        self.unlisted().is_empty()
    }

    /// Whether every object of some kind was seen.
    pub(crate) fn is_any_listed(&self) -> bool {
        !self
            .kinds_that(|presence| presence == KindPresence::Listed)
            .is_empty()
    }

    /// Kinds of which it is not known yet what there is.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        self.kinds_that(|presence| {
            matches!(presence, KindPresence::Unknown | KindPresence::Listing)
        })
    }

    /// Kinds whose runs are not stored, because the cluster does not show them.
    pub(crate) fn hidden(&self) -> Vec<String> {
        self.kinds_that(|presence| {
            use KindPresence::{Broken, ClusterScoped, Forbidden};
            matches!(presence, Forbidden | Broken | ClusterScoped)
        })
    }

    fn kinds_that(&self, holds: impl Fn(KindPresence) -> bool) -> Vec<String> {
        let presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds = presence.iter().filter(|(_, known)| holds(**known));
        kinds
            .map(|((group, plural), _)| cluster::full_name(plural, group))
            .collect()
    }

    /// What was refused is accepted: those that waited for that go on.
    pub(crate) fn accepted(&self, scope: &Scope) {
        for uid in self.refusals.accepted(scope) {
            self.retry(scope.action, &uid);
        }
    }

    /// Tries again what was refused.
    pub(crate) fn retry(&self, action: Action, uid: &Uid) {
        match action {
            Action::Annotate => self.marks.push(uid),
            Action::Release if self.config.policy.finalizers => self.marks.push(uid),
            _ => self.push(uid, Work::default()),
        }
    }

    /// Puts news about a run on the queue.
    pub(crate) fn push(&self, uid: &Uid, work: Work) {
        // What is on disk need not be in memory.
        let is_safe = || self.ledger().get(uid).is_some_and(Entry::is_safe);
        if self.queue.push(uid, work).is_err() && !self.is_spooled(uid) && !is_safe() {
            self.lose(
                uid,
                "its last state could not be held, because too much waits already",
            );
        }
    }

    /// Notes whether the spool works; says so when that changes.
    pub(crate) fn spool_works(&self, problem: Option<String>) {
        let mut known = self
            .spool_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => warn!("runs are kept in memory only: {problem}"),
            (Some(_), None) => info!("runs are kept on disk again"),
            _ => {}
        }
        *known = problem;
    }

    /// A run that is gone needs nothing more.
    pub(crate) fn forget(&self, uid: &Uid) {
        let owners = self.ledger().waiting_owners(uid);
        self.ledger().forget(uid);
        if let Some(spool) = &self.spool {
            spool.remove(uid);
        }
        for owner in owners {
            self.push(&owner, Work::default());
        }
    }

    /// A run was let go before it could be stored. Returns why it could not.
    ///
    /// Its last state is known all the same, and is stored if the server comes back.
    pub(crate) fn overdue(&self, uid: &Uid) -> String {
        let mut ledger = self.ledger();
        let Some(entry) = ledger.get_mut(uid) else {
            return "it is not known any more".to_owned();
        };
        let is_counted = std::mem::replace(&mut entry.overdue, true);
        let why = entry.error.as_deref().unwrap_or("not tried yet").to_owned();
        let (kind, namespace) = (entry.kind.kind, Arc::clone(&entry.namespace));
        drop(ledger);
        if !is_counted {
            self.not_stored(kind, &namespace);
        }
        why
    }

    fn not_stored(&self, kind: &str, namespace: &str) {
        let labels = OfRun {
            kind: kind.to_lowercase(),
            namespace: namespace.to_owned(),
        };
        self.metrics.not_stored.get_or_create(&labels).inc();
    }

    /// A run cannot be stored as things are; counted once for each.
    pub(crate) fn refused(&self, kind: &str, namespace: &str) {
        let labels = OfRun {
            kind: kind.to_lowercase(),
            namespace: namespace.to_owned(),
        };
        self.metrics.refused.get_or_create(&labels).inc();
    }

    /// The watcher ends, and with it what only it knows: the last states of runs that are gone and
    /// neither stored nor on disk. How many are lost.
    pub(crate) fn lose_rest(&self) -> usize {
        let mut lost = self.ledger().gone_unstored();
        lost.retain(|uid| !self.is_spooled(uid));
        for (n, uid) in lost.iter().enumerate() {
            self.give_up(uid, "the watcher ended before it was stored", n < NAMED);
        }
        if lost.len() > NAMED {
            warn!("{} more runs are lost with them", lost.len() - NAMED);
        }
        lost.len()
    }

    /// A run is lost: that is counted, listed and said.
    pub(crate) fn lose(&self, uid: &Uid, reason: &'static str) {
        self.give_up(uid, reason, true);
    }

    fn give_up(&self, uid: &Uid, reason: &'static str, is_named: bool) {
        let mut ledger = self.ledger();
        let Some(entry) = ledger.get(uid) else { return };
        let (kind, namespace, name) = (
            entry.kind.kind,
            Arc::clone(&entry.namespace),
            entry.name.clone(),
        );
        let is_counted = entry.overdue;
        let owners = ledger.waiting_owners(uid);
        ledger.lose(uid, reason, self.clock.now());
        drop(ledger);
        for owner in owners {
            self.push(&owner, Work::default());
        }
        if let Some(spool) = &self.spool {
            spool.remove(uid);
        }
        if !is_counted {
            self.not_stored(kind, &namespace);
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        if is_named {
            warn!(
                run.kind = kind, run.namespace = %namespace, run.name = %name, run.uid = %uid,
                "{kind} {namespace}/{name} is lost: {reason}"
            );
        }
        self.tick();
    }
}
