//! Work that waits to be done, one run at a time: no run is worked on by two workers at once,
//! news about a run that waits replaces older news, and the objects that are held meanwhile
//! never take more memory than was agreed.

mod inner;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::{sync::Notify, time::Instant};

use crate::ledger::Uid;

use inner::{Inner, Slot};

/// What is known about a run that waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Its newest state as JSON; `None` if that must be read from the cluster.
    pub(crate) object: Option<Vec<u8>>,
    /// It is no longer in the cluster, so that its state cannot be read there.
    pub(crate) gone: bool,
    /// It is finished, and goes before those that are not.
    pub(crate) is_final: bool,
    /// It has no finalizer of ours yet, and should have one.
    pub(crate) needs_finalizer: bool,
    /// It goes on, and all that is left to do is to store how far it is. It goes after all others, and
    /// not more often than it was agreed.
    pub(crate) is_progress: bool,
}

/// So few are soon worked on.
const FEW: usize = 64;

/// A run to work on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) uid: Uid,
    /// What is known about it.
    pub(crate) work: Work,
    /// How often in a row it failed before.
    pub(crate) failures: u32,
}

/// What became of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// There is nothing more to do.
    Finished,
    /// There is nothing more to do before this time.
    Until(Instant),
    /// How far it is was stored, and is not stored again before this time.
    Paced(Instant),
    /// It failed and is tried again at this time, with what was known.
    Failed(Instant, Work),
    /// The rest is for others, as soon as it is its turn.
    Rest(Work),
}

/// A state that could not be held, because too much is held already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug)]
pub(crate) struct Queue {
    limit: usize,
    /// The part of the limit that states may take that can be read again.
    limit_readable: usize,
    inner: Mutex<Inner>,
    ready: Notify,
    unprotected: Notify,
    freed: Notify,
}

impl Queue {
    /// A queue that holds at most `limit` bytes of objects, and of those that can be read again at
    /// most `limit_readable`.
    pub(crate) fn new(limit: usize, limit_readable: usize) -> Self {
        Self {
            limit,
            limit_readable: limit_readable.min(limit),
            inner: Mutex::default(),
            ready: Notify::new(),
            unprotected: Notify::new(),
            freed: Notify::new(),
        }
    }

    /// Tells news about a run. If too much is held, the state of a run that is still there is
    /// not kept, because it can be read again.
    ///
    /// # Errors
    /// If the state of a run that is gone cannot be held.
    pub(crate) fn push(&self, uid: &Uid, mut work: Work) -> Result<(), Full> {
        let mut inner = self.lock();
        let size = work.object.as_ref().map_or(0, Vec::len);
        let known = inner
            .slots
            .get(uid)
            .and_then(|slot| slot.work.as_ref())
            .map_or(0, Work::size);
        let mut full = Ok(());
        if size > 0 && inner.held - known + size > self.limit_for(&work) {
            work.object = None;
            if work.gone {
                full = Err(Full);
            }
        }
        inner.put(uid, work);
        inner.make_ready(uid);
        drop(inner);
        self.ready.notify_one();
        self.unprotected.notify_one();
        full
    }

    fn limit_for(&self, work: &Work) -> usize {
        match work.gone {
            true => self.limit,
            false => self.limit_readable,
        }
    }

    /// The next run to work on. Cancel safe.
    pub(crate) async fn pop(&self) -> Job {
        self.next(&self.ready, Inner::take).await
    }

    /// The next run that is unprotected, in either line. Cancel safe.
    pub(crate) async fn pop_unprotected(&self) -> Job {
        self.next(&self.unprotected, Inner::take_unprotected).await
    }

    async fn next(&self, news: &Notify, take: impl Fn(&mut Inner) -> Option<Job>) -> Job {
        loop {
            let ready = news.notified();
            let next = {
                let mut inner = self.lock();
                if inner.wake(Instant::now()) {
                    // It may be for those who take others.
                    self.ready.notify_one();
                    self.unprotected.notify_one();
                }
                if let Some(job) = take(&mut inner) {
                    if inner.ready > 0 {
                        news.notify_one();
                    }
                    return job;
                }
                inner.later.first().map(|(at, _)| *at)
            };
            match next {
                Some(at) => tokio::select! {
                    () = ready => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => ready.await,
            }
        }
    }

    /// A run that is gone, whose last state only we know: what must not be left behind.
    pub(crate) fn pop_gone(&self) -> Option<Job> {
        let mut inner = self.lock();
        let is_last_state = |slot: &Slot| {
            !slot.is_running
                && slot
                    .work
                    .as_ref()
                    .is_some_and(|w| w.gone && w.object.is_some())
        };
        let uid = inner
            .slots
            .iter()
            .find(|(_, s)| is_last_state(s))
            .map(|(uid, _)| uid.clone())?;
        inner.make_ready(&uid);
        inner.start(&uid)
    }

    /// Gives a job back. News that came meanwhile go first.
    pub(crate) fn done(&self, uid: &Uid, done: Done) {
        let mut inner = self.lock();
        inner.running -= 1;
        let Some(slot) = inner.slots.get_mut(uid) else {
            return;
        };
        slot.is_running = false;
        slot.failures = match done {
            Done::Failed(..) => slot.failures.saturating_add(1),
            Done::Finished | Done::Until(_) | Done::Paced(_) | Done::Rest(_) => 0,
        };
        let has_news = slot.work.is_some();
        match done {
            Done::Finished => {}
            Done::Until(at) => inner.postpone(uid, at),
            Done::Paced(at) => inner.pace(uid, at),
            Done::Failed(at, mut work) => {
                // A state that is no longer the newest one is not needed, unless it is the
                // only one of a run that is gone.
                if inner.held + work.size() > self.limit_for(&work) && !work.gone {
                    work.object = None;
                }
                inner.put_older(uid, work);
                inner.postpone(uid, at);
            }
            Done::Rest(mut work) => {
                if inner.held + work.size() > self.limit_for(&work) {
                    work.object = None;
                }
                inner.put_older(uid, work);
                inner.make_ready(uid);
            }
        }
        if has_news {
            inner.make_ready(uid);
        }
        inner.tidy(uid);
        drop(inner);
        self.ready.notify_one();
        self.unprotected.notify_one();
        self.freed.notify_waiters();
    }

    /// All runs whose states are held.
    pub(crate) fn uids(&self) -> Vec<Uid> {
        let inner = self.lock();
        let held = inner
            .slots
            .iter()
            .filter(|(_, slot)| slot.work.as_ref().is_some_and(|w| w.object.is_some()));
        held.map(|(uid, _)| uid.clone()).collect()
    }

    /// The state that is held of a run.
    pub(crate) fn state(&self, uid: &Uid) -> Option<Vec<u8>> {
        self.lock().slots.get(uid)?.work.as_ref()?.object.clone()
    }

    /// Bytes of objects that are held.
    pub(crate) fn held(&self) -> usize {
        self.lock().held
    }

    /// How many runs wait to be worked on now.
    pub(crate) fn depth(&self) -> usize {
        self.lock().ready
    }

    /// Waits until less than a 64th of the limit is held, which keeps all workers busy, or few
    /// runs wait to be worked on, because what is held is tried again later. The rest is for what
    /// cannot be read again. Cancel safe.
    pub(crate) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before looking, so that no wake-up is missed.
            freed.as_mut().enable();
            let (held, ready) = {
                let inner = self.lock();
                (inner.held, inner.ready)
            };
            if held <= self.limit / 64 || ready < FEW {
                return;
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    /// Nothing but that the run is no longer in the cluster.
    pub(crate) fn gone() -> Self {
        Self {
            gone: true,
            ..Self::default()
        }
    }

    fn size(&self) -> usize {
        self.object.as_ref().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests;
