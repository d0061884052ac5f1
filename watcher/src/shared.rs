//! What the tasks of one watcher share: its configuration, its memory, and the ways out.

mod leaving;
mod parts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64};

use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use hindsight_run::{Kind, Kinds, View};

use crate::{
    backoff::Backoff,
    cluster::Cluster,
    config::Config,
    deadline::Deadlines,
    gate::Gate,
    health::Health,
    ledger::{Entry, Ledger, Uid},
    logs::Board,
    metrics::Metrics,
    namespaces::Namespaces,
    presence::{KindPresence, KindPresences},
    queue::{Queue, Work},
    refusals::{Action, Refusals, Scope},
    sink::Sink,
    spool::Spool,
    uid_queue::UidQueue,
};
use hindsight_cluster::Pace;
use hindsight_runtime::clock::Clock;

pub(crate) use parts::{Budgets, ClusterSide, Counters, Queues, ServerSide};

/// Clients of Kubernetes grant each object 25 events, and one every five minutes; this is for all.
const EVENTS_AT_ONCE: u32 = 25;
const EVENTS_A_SECOND: f64 = 0.1;

const WARNINGS_AT_ONCE: u32 = 25;
const WARNINGS_A_SECOND: f64 = 0.2;

/// Whether this watcher is the one that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    Leader,
    /// Another watcher works, or none.
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
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) cluster: ClusterSide,
    pub(crate) server: ServerSide,
    pub(crate) queues: Queues,
    pub(crate) budgets: Budgets,
    pub(crate) counters: Counters,
    pub(crate) logs: Board,
    /// Cancelled when the time for an orderly end is over.
    pub(crate) abandon: CancellationToken,
    changed: watch::Sender<()>,
    ledger: Mutex<Ledger>,
    role: Mutex<Role>,
}

impl Shared {
    pub(crate) fn new(
        mut config: Config,
        api: Cluster,
        sink: Arc<dyn Sink>,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
        spool: Option<Arc<Spool>>,
    ) -> Self {
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
            kinds: Kinds::with(&config.kinds),
            clock,
            metrics,
            cluster: ClusterSide {
                api,
                kinds: KindPresences::new(&config.kinds),
                health: Health::default(),
                namespaces: Namespaces::default(),
            },
            server: ServerSide {
                sink,
                gate: Gate::new(config.tuning.server),
                spool: spool.clone(),
                spool_problem: Mutex::new(None),
            },
            queues: Queues {
                runs: Queue::new(config.tuning.hold_bytes, readable),
                annotations: UidQueue::default(),
                deadlines: Deadlines::default(),
                refusals: Refusals::new(Backoff {
                    first: config.tuning.retry.first,
                    most: config.tuning.rare_retry,
                }),
            },
            budgets: Budgets {
                deletes: Pace::new(config.deletes_per_second, 1),
                writes: Pace::new(config.writes_per_second, config.writes_burst.get()),
                events: Pace::new(Some(EVENTS_A_SECOND), EVENTS_AT_ONCE),
                warnings: Pace::new(Some(WARNINGS_A_SECOND), WARNINGS_AT_ONCE),
                suppressed_warnings: AtomicU64::new(0),
            },
            counters: Counters::default(),
            logs: Board::new(
                config.logs,
                config.policy.logs_deadline,
                config.tuning.logs_settle,
                spool,
            ),
            abandon: CancellationToken::new(),
            changed: watch::Sender::new(()),
            ledger: Mutex::new(Ledger::new()),
            role: Mutex::new(role),
            config,
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
        self.notify_progress();
    }

    /// Wakes those that wait for progress.
    pub(crate) fn notify_progress(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Notes whether a kind is there; returns what was known before.
    ///
    /// Runs that waited for that are looked at again at once.
    pub(crate) fn set_presence(
        &self,
        kind: &'static Kind,
        now: KindPresence,
    ) -> Option<KindPresence> {
        let before = self.cluster.kinds.set(kind, now);
        if before != Some(now) && self.cluster.kinds.is_listed() {
            self.wake_waiting();
        }
        self.notify_progress();
        before
    }

    /// Runs that wait for something about the whole cluster are looked at again.
    pub(crate) fn wake_waiting(&self) {
        let waiting = self.ledger().waiting();
        self.wake(waiting);
    }

    /// What a run's owners waited for may have happened: it is stored, or it is there no longer.
    pub(crate) fn wake_owners(&self, uid: &Uid) {
        let owners = self.ledger().waiting_owners(uid);
        self.wake(owners);
    }

    /// Looks at runs again.
    pub(crate) fn wake(&self, uids: Vec<Uid>) {
        for uid in uids {
            self.push(&uid, Work::default());
        }
    }

    /// What was refused is accepted: those that waited for that go on.
    pub(crate) fn accepted(&self, scope: &Scope) {
        for uid in self.queues.refusals.accepted(scope) {
            self.retry(scope.action, &uid);
        }
    }

    /// Tries again what was refused.
    pub(crate) fn retry(&self, action: Action, uid: &Uid) {
        match action {
            Action::Annotate => self.queues.annotations.push(uid),
            Action::Release if self.config.policy.finalizers => self.queues.annotations.push(uid),
            _ => self.push(uid, Work::default()),
        }
    }

    /// Puts news about a run on the queue.
    pub(crate) fn push(&self, uid: &Uid, work: Work) {
        // What is on disk need not be in memory.
        let is_safe = || self.ledger().get(uid).is_some_and(Entry::is_safe);
        if self.queues.runs.push(uid, work).is_err() && !self.server.is_spooled(uid) && !is_safe() {
            self.lose(
                uid,
                "its last state could not be held, because too much waits already",
            );
        }
    }
}
