//! Sources that wait: to be read, and to be sent.

use std::collections::{BTreeSet, HashSet, VecDeque};

use jiff::Timestamp;

use super::source::Sight;

/// How many more readers may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Of containers that run.
    pub(crate) follow: usize,
    /// Of containers that ended.
    pub(crate) read: usize,
}

/// Sources that wait, by their ids.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Containers that ended, the one that began first before the others.
    ended: BTreeSet<(Timestamp, u64)>,
    running: BTreeSet<u64>,
    is_ended: HashSet<u64>,
    dirty: VecDeque<u64>,
    is_dirty: HashSet<u64>,
}

impl Queues {
    /// A source waits to be read, as it is now. Only with `follows` before it ended.
    pub(super) fn put(&mut self, id: u64, sight: Sight, follows: bool) {
        if sight.has_ended || sight.is_gone || sight.is_leaving {
            self.running.remove(&id);
            if self.is_ended.insert(id) {
                self.ended.insert((sight.started.unwrap_or_default(), id));
            }
        } else if follows {
            self.running.insert(id);
        }
    }

    /// The one whose turn it is, and whether it is followed.
    pub(super) fn next(&mut self, slots: Slots) -> Option<(u64, bool)> {
        if slots.read > 0
            && let Some((_, id)) = self.ended.pop_first()
        {
            self.is_ended.remove(&id);
            return Some((id, false));
        }
        let id = (slots.follow > 0).then(|| self.running.pop_first());
        id.flatten().map(|id| (id, true))
    }

    /// How many wait to be read.
    pub(super) fn waiting(&self) -> usize {
        self.ended.len() + self.running.len()
    }

    /// A source has something to send.
    pub(super) fn put_dirty(&mut self, id: u64) {
        if self.is_dirty.insert(id) {
            self.dirty.push_back(id);
        }
    }

    pub(super) fn pop_dirty(&mut self) -> Option<u64> {
        let id = self.dirty.pop_front()?;
        self.is_dirty.remove(&id);
        Some(id)
    }
}
