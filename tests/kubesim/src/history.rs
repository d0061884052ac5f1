//! What changed, newest last, and how far back the server remembers. It keeps no present state.

use std::{collections::VecDeque, sync::Arc};

use crate::objects::{KindId, Stored};

/// One change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) kind: KindId,
    /// The object before; `None` when it was created.
    pub(crate) before: Option<Arc<Stored>>,
    /// The object after; for a deletion, as it was when it went, at the version of the deletion.
    pub(crate) after: Arc<Stored>,
    pub(crate) deleted: bool,
}

/// The last changes, at most `capacity` of them.
///
/// Invariant: every change with a version above `forgotten` is present, in order of version.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Event>,
    capacity: usize,
    forgotten: u64,
}

impl History {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            events: VecDeque::new(),
            capacity: capacity.max(1),
            forgotten: 0,
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        while self.events.len() > self.capacity {
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
        }
    }
}
