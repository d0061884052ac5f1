//! What changed, newest last, and how far back the server remembers. It keeps no present state.
//!
//! As a real server, it remembers for two purposes: etcd keeps every change until it is compacted, for
//! pages of a list; the cache before it keeps the last ones, for watches.

use std::{collections::VecDeque, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::objects::{KindId, Stored};

/// How long a change is kept for pages: etcd is compacted every five minutes.
const COMPACTED: SignedDuration = SignedDuration::from_mins(5);

/// How long a change is kept for watches.
const FRESH: SignedDuration = SignedDuration::from_secs(75);

/// How many changes are kept for watches however old they are.
const CACHED: usize = 100;

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) at: Timestamp,
    pub(crate) kind: KindId,
    /// The object before; `None` when it was created.
    pub(crate) before: Option<Arc<Stored>>,
    /// The object after; for a deletion, as it was when it went, at the version of the deletion.
    pub(crate) after: Arc<Stored>,
    pub(crate) deleted: bool,
}

/// The last changes, at most `capacity` of them and for five minutes.
///
/// Invariant: every change with a version above `forgotten` is present, in order of version.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Event>,
    capacity: usize,
    forgotten: u64,
    bytes: usize,
}

impl History {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            events: VecDeque::new(),
            capacity: capacity.max(1),
            forgotten: 0,
            bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.pass(event.at);
        self.bytes += event.after.size();
        self.events.push_back(event);
        while self.events.len() > self.capacity {
            self.forget_first();
        }
    }

    /// Forgets what is compacted by `now`.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        while self
            .events
            .front()
            .is_some_and(|event| now.duration_since(event.at) > COMPACTED)
        {
            self.forget_first();
        }
    }

    /// Forgets every change up to `version`.
    pub(crate) fn compact(&mut self, version: u64) {
        while self
            .events
            .front()
            .is_some_and(|event| event.version <= version)
        {
            self.forget_first();
        }
        self.forgotten = self.forgotten.max(version);
    }

    /// The highest version whose change is no longer known.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The highest version whose change no watch can have any more.
    pub(crate) fn uncached(&self, now: Timestamp) -> u64 {
        let old = self
            .events
            .partition_point(|event| now.duration_since(event.at) > FRESH);
        let old = old.min(self.events.len().saturating_sub(CACHED));
        let last = old.checked_sub(1).and_then(|last| self.events.get(last));
        last.map_or(self.forgotten, |event| event.version)
    }

    /// The size of all that etcd still has of these changes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The changes after `version`, or `None` when some of them are forgotten.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Event>> {
        if version < self.forgotten {
            return None;
        }
        let first = self
            .events
            .partition_point(|event| event.version <= version);
        Some(self.events.range(first..))
    }

    fn forget_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.forgotten = event.version;
            self.bytes -= event.after.size();
        }
    }
}
