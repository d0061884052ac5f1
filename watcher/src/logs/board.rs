//! Which containers each run has, and how far their logs are.

mod state;

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hindsight_proto::v1::LogContainer;
use jiff::{SignedDuration, Timestamp};
use tokio::{sync::Notify, time::Instant};

use super::{pod::Pod, run::Facts, source::Source};
use crate::{config::Logs, ledger::Uid, spool::Spool};

pub(crate) use super::queues::Slots;
use state::{Ground, State, Stored};

/// Bytes of all sources that wait to be sent. Readers share them.
const HELD: usize = 16 << 20;

/// The least and the most bytes that wait of one source.
const SHARE: RangeInclusive<usize> = 16 << 10..=1 << 20;

/// The memory of logs. It is never held over an `await`.
#[derive(Debug)]
pub(crate) struct Board {
    ground: Ground,
    state: Mutex<State>,
    /// Something may be read, or asked.
    pub(crate) to_read: Notify,
    /// Something may be sent.
    pub(crate) to_send: Notify,
    /// A reader waits for what it read to be sent.
    pub(crate) full: Notify,
}

impl Board {
    /// `settle` is how long after the end of a run its last pods may become known. What is read is in `spool` until
    /// it is stored.
    pub(crate) fn new(
        logs: Logs,
        deadline: SignedDuration,
        settle: Duration,
        spool: Option<Arc<Spool>>,
    ) -> Self {
        let is_on = logs != Logs::Off;
        Self {
            ground: Ground {
                follows: logs == Logs::Follow,
                deadline,
                settle,
                spool,
            },
            state: Mutex::new(State::new(is_on)),
            to_read: Notify::new(),
            to_send: Notify::new(),
            full: Notify::new(),
        }
    }

    /// From now on logs are read, or not; what was known of the server counts no more. Returns runs that
    /// waited for their logs.
    pub(crate) fn turn(&self, is_on: bool) -> Vec<Uid> {
        let mut state = self.state();
        state.is_on = is_on;
        let woken = state.reset(&self.ground);
        drop(state);
        self.to_read.notify_one();
        woken
    }

    /// A run was seen.
    pub(crate) fn saw_run(&self, uid: &Uid, facts: Facts, now: Instant) {
        self.state().saw_run(uid, facts, now, &self.ground);
        self.to_read.notify_one();
    }

    /// A run left the cluster, or what is watched of it.
    pub(crate) fn forget(&self, uid: &Uid, at: Timestamp, now: Instant) {
        self.state().forget(uid, at, now);
        self.to_read.notify_one();
    }

    /// Whether something of the log of a run is still to be stored, for which it waits. It is woken
    /// when that is over.
    pub(crate) fn is_open(&self, uid: &Uid) -> bool {
        let mut state = self.state();
        let is_on = state.is_on;
        let run = state.open.get_mut(uid).filter(|_| is_on);
        run.is_some_and(|run| {
            run.is_waited_for = true;
            !run.is_expired
        })
    }

    /// A pod of a run was seen in the `list`-th list of those with `label`, or after it.
    pub(crate) fn saw_pod(&self, pod: &Pod, run: &Uid, label: &'static str, list: u32) {
        self.state().saw_pod(pod, run, label, list, &self.ground);
        self.to_read.notify_one();
    }

    /// A pod left the cluster.
    pub(crate) fn pod_left(&self, uid: &str) {
        self.state().pod_left(uid, &self.ground);
        self.to_read.notify_one();
    }

    /// The `list`-th list of pods with `label` was read to its end.
    pub(crate) fn listed(&self, label: &'static str, list: u32) {
        self.state().listed(label, list, &self.ground);
        self.to_read.notify_one();
    }

    /// The next run of which it has to be asked what is stored of its log, and the log.
    pub(crate) fn next_unasked(&self) -> Option<(Uid, Box<str>)> {
        let mut state = self.state();
        loop {
            let uid = state.unasked.pop_front()?;
            let facts = state.open.get(&uid).and_then(|run| run.facts.as_ref());
            if let Some(log) = facts.map(|facts| facts.log.clone()) {
                return Some((uid, log));
            }
        }
    }

    /// What the server holds of the log of a run.
    pub(crate) fn answered(&self, uid: &Uid, containers: Vec<LogContainer>) {
        let known = containers.into_iter().filter_map(|container| {
            let source = container.source.clone()?;
            let key = (source.pod.into(), source.container.into(), source.restart);
            Some((key, container))
        });
        let known: HashMap<_, _> = known.collect();
        let mut state = self.state();
        if let Some(run) = state.open.get_mut(uid) {
            run.stored = Stored::Known(known);
        }
        state.refresh(uid, &self.ground);
        drop(state);
        self.to_read.notify_one();
    }

    /// Asks again, later, what is stored.
    pub(crate) fn unanswered(&self, uid: Uid) {
        self.state().unasked.push_back(uid);
    }

    /// A source whose turn it is to be read, and whether it is followed.
    pub(crate) fn next(&self, slots: Slots) -> Option<(Arc<Source>, bool)> {
        let (mut state, now) = (self.state(), Instant::now());
        loop {
            let (id, follow) = state.queues.next(slots)?;
            let Some(source) = state.sources.get(&id).map(Arc::clone) else {
                continue;
            };
            state.taken.insert(id);
            match state.denied.get(&source.namespace).copied() {
                Some(until) if until > now => {
                    state.later.insert((until, id));
                }
                _ => return Some((source, follow)),
            }
        }
    }

    /// A source is not read before `at`. Until then it has no reader.
    pub(crate) fn later(&self, source: &Source, at: Instant) {
        self.state().later.insert((at, source.id));
    }

    /// The cluster denies the logs of a namespace, of which none is read before `until`. Whether that is news.
    pub(crate) fn denied(&self, namespace: &str, until: Instant) -> bool {
        self.state()
            .denied
            .insert(namespace.into(), until)
            .is_none()
    }

    /// The cluster gives the logs of a namespace. Whether that is news.
    pub(crate) fn allowed(&self, namespace: &str) -> bool {
        self.state().denied.remove(namespace).is_some()
    }

    /// How many bytes may wait to be sent of each source that is read.
    pub(crate) fn share(&self) -> usize {
        let state = self.state();
        let readers = state.taken.len().saturating_sub(state.later.len());
        (HELD / readers.max(1)).clamp(*SHARE.start(), *SHARE.end())
    }

    /// A source has lines to send.
    pub(crate) fn has_lines(&self, source: &Source) {
        self.state().queues.put_dirty(source.id);
        self.to_send.notify_one();
    }

    /// The next source that has lines to send.
    pub(crate) fn next_dirty(&self) -> Option<Arc<Source>> {
        let mut state = self.state();
        loop {
            let id = state.queues.pop_dirty()?;
            if let Some(source) = state.sources.get(&id) {
                return Some(Arc::clone(source));
            }
        }
    }

    /// Nothing more is stored of a source. Runs that waited for that.
    pub(crate) fn over(&self, source: &Source, now: Instant) -> Vec<Uid> {
        source.outbox.give_up();
        let mut state = self.state();
        state.sources.remove(&source.id);
        state.taken.remove(&source.id);
        if let Some(run) = state.open.get_mut(&source.run) {
            run.reading.remove(&source.id);
        }
        let woken = state.settle(&source.run, now, &self.ground);
        woken.into_iter().collect()
    }

    /// Runs whose logs are stored by now, or were waited for as long as was agreed.
    pub(crate) fn tick(&self, now: Instant) -> Vec<Uid> {
        let mut state = self.state();
        let woken = state.tick(now, &self.ground);
        drop(state);
        self.to_read.notify_one();
        woken
    }

    /// How many sources wait to be read.
    pub(crate) fn waiting(&self) -> usize {
        self.state().queues.waiting()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
