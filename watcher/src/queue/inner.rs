//! The runs of a queue, and in which line each waits.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use tokio::time::Instant;

use super::{Job, Work};
use crate::ledger::Uid;

/// Where runs wait for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    /// Ends of runs, and runs that are gone.
    First,
    /// Runs that are not finished.
    Second,
    /// Runs of which only the progress is to be stored, while no others wait.
    Third,
}

/// After so many runs of the first line, one of the second has its turn.
const TURNS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) slots: HashMap<Uid, Slot>,
    /// May name a run that is no longer ready, or is in the other line by now.
    pub(super) first: VecDeque<Uid>,
    pub(super) second: VecDeque<Uid>,
    pub(super) third: VecDeque<Uid>,
    /// Those of either line that are unprotected; may name others as well.
    pub(super) unprotected: VecDeque<Uid>,
    /// How many are ready, in any line.
    pub(super) ready: usize,
    /// How many of the first line were taken since one of the second was.
    pub(super) turns: usize,
    pub(super) later: BTreeSet<(Instant, Uid)>,
    pub(super) held: usize,
    pub(super) running: usize,
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) work: Option<Work>,
    pub(super) is_running: bool,
    pub(super) line: Option<Line>,
    /// It is among the unprotected ones.
    pub(super) is_among_unprotected: bool,
    pub(super) later: Option<Instant>,
    /// What it waits for is that its progress may be stored again.
    pub(super) is_paced: bool,
    pub(super) failures: u32,
}

impl Inner {
    /// Newer news replace older ones; but that a run is gone stays true, and its last state is
    /// kept until a newer one is known.
    pub(super) fn put(&mut self, uid: &Uid, mut work: Work) {
        let slot = self.slots.entry(uid.clone()).or_default();
        if let Some(old) = slot.work.take() {
            self.held -= old.size();
            work.gone |= old.gone;
            work.is_final |= old.is_final;
            work.is_progress &= old.is_progress;
            // What has no state tells nothing about that.
            work.needs_finalizer |= old.needs_finalizer && work.object.is_none();
            if work.object.is_none() && work.gone {
                work.object = old.object;
            }
        }
        self.held += work.size();
        slot.work = Some(work);
    }

    /// Puts back what was known before the news, if there are any.
    pub(super) fn put_older(&mut self, uid: &Uid, work: Work) {
        match self.slots.get_mut(uid).and_then(|slot| slot.work.take()) {
            None => self.put(uid, work),
            Some(newer) => {
                self.held -= newer.size();
                self.put(uid, work);
                self.put(uid, newer);
            }
        }
    }

    pub(super) fn make_ready(&mut self, uid: &Uid) {
        let Some(slot) = self.slots.get_mut(uid) else {
            return;
        };
        let line = match &slot.work {
            Some(work) if work.gone || work.is_final => Line::First,
            Some(work) if work.is_progress && !work.needs_finalizer => Line::Third,
            _ => Line::Second,
        };
        let is_there = slot.line.is_some_and(|there| there <= line);
        let is_early = slot.is_paced && line == Line::Third;
        if slot.is_running || is_early {
            return;
        }
        let needs_finalizer = slot
            .work
            .as_ref()
            .is_some_and(|w| w.needs_finalizer && !w.gone);
        if needs_finalizer && !std::mem::replace(&mut slot.is_among_unprotected, true) {
            self.unprotected.push_back(uid.clone());
        }
        if is_there {
            return;
        }
        self.ready += usize::from(slot.line.is_none());
        slot.line = Some(line);
        slot.is_paced = false;
        if let Some(at) = slot.later.take() {
            self.later.remove(&(at, uid.clone()));
        }
        match line {
            Line::First => self.first.push_back(uid.clone()),
            Line::Second => self.second.push_back(uid.clone()),
            Line::Third => self.third.push_back(uid.clone()),
        }
    }

    /// Its progress is not stored again before then.
    pub(super) fn pace(&mut self, uid: &Uid, until: Instant) {
        self.postpone(uid, until);
        if let Some(slot) = self.slots.get_mut(uid) {
            slot.is_paced = true;
        }
    }

    pub(super) fn postpone(&mut self, uid: &Uid, at: Instant) {
        let Some(slot) = self.slots.get_mut(uid) else {
            return;
        };
        if let Some(old) = slot.later.replace(at) {
            self.later.remove(&(old, uid.clone()));
        }
        self.later.insert((at, uid.clone()));
    }

    /// Makes ready what has waited long enough. Whether there was any.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        while let Some((at, uid)) = self.later.first().cloned() {
            if at > now {
                break;
            }
            self.later.pop_first();
            let Some(slot) = self.slots.get_mut(&uid) else {
                continue;
            };
            slot.later = None;
            let is_paced = std::mem::take(&mut slot.is_paced);
            if is_paced && slot.work.is_none() {
                self.tidy(&uid);
                continue;
            }
            is_any = true;
            self.make_ready(&uid);
        }
        is_any
    }

    pub(super) fn take(&mut self) -> Option<Job> {
        loop {
            let is_seconds_turn = self.turns >= TURNS && !self.second.is_empty();
            let line = match (self.first.is_empty(), self.second.is_empty()) {
                (false, _) if !is_seconds_turn => Line::First,
                (_, false) => Line::Second,
                _ => Line::Third,
            };
            let uid = match line {
                Line::First => self.first.pop_front()?,
                Line::Second => self.second.pop_front()?,
                Line::Third => self.third.pop_front()?,
            };
            if self.slots.get(&uid).and_then(|slot| slot.line) == Some(line) {
                self.turns = match line {
                    Line::First => self.turns + 1,
                    Line::Second | Line::Third => 0,
                };
                return self.start(&uid);
            }
        }
    }

    pub(super) fn take_unprotected(&mut self) -> Option<Job> {
        loop {
            let uid = self.unprotected.pop_front()?;
            let Some(slot) = self.slots.get_mut(&uid) else {
                continue;
            };
            slot.is_among_unprotected = false;
            // Another one may have taken it, or it is not unprotected any more.
            let needs_finalizer = slot
                .work
                .as_ref()
                .is_some_and(|w| w.needs_finalizer && !w.gone);
            if needs_finalizer && slot.line.is_some() {
                self.tidy_lines();
                return self.start(&uid);
            }
        }
    }

    /// Takes out of the lines what is no longer there, once that is the larger part: nobody comes to
    /// it while all workers wait for the server.
    fn tidy_lines(&mut self) {
        let waiting = self.first.len() + self.second.len() + self.third.len();
        if waiting <= 2 * self.ready + 1024 {
            return;
        }
        let mut seen = HashSet::new();
        for (line, deque) in [
            (Line::First, &mut self.first),
            (Line::Second, &mut self.second),
            (Line::Third, &mut self.third),
        ] {
            let is_in = |uid: &Uid| self.slots.get(uid).and_then(|slot| slot.line) == Some(line);
            deque.retain(|uid| is_in(uid) && seen.insert(uid.clone()));
        }
    }

    /// Gives out a run that is ready.
    pub(super) fn start(&mut self, uid: &Uid) -> Option<Job> {
        let slot = self.slots.get_mut(uid)?;
        slot.line.take()?;
        self.ready -= 1;
        slot.is_running = true;
        let work = slot.work.take().unwrap_or_default();
        let failures = slot.failures;
        self.held -= work.size();
        self.running += 1;
        Some(Job {
            uid: uid.clone(),
            work,
            failures,
        })
    }

    /// Keeps no slot of a run that nothing waits for.
    pub(super) fn tidy(&mut self, uid: &Uid) {
        let is_idle = self.slots.get(uid).is_some_and(|slot| {
            slot.work.is_none() && !slot.is_running && slot.line.is_none() && slot.later.is_none()
        });
        if is_idle {
            self.slots.remove(uid);
            // After many have waited.
            let capacity = self.slots.capacity();
            if capacity > 4096 && self.slots.len() < capacity / 8 {
                self.slots.shrink_to(capacity / 4);
            }
        }
    }
}
