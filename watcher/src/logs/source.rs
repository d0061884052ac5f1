//! One start of one container, as its reader and the sender see it.

use std::sync::Arc;

use hindsight_proto::{
    time,
    v1::{AppendLogRequest, LogContainer, LogSource},
};
use jiff::Timestamp;
use tokio::sync::watch;

use super::outbox::{Batch, OnDisk, Outbox};
use crate::{ledger::Uid, spool::Spool};

/// Which start of which container of which pod.
pub(crate) type Key = (Box<str>, Box<str>, i32);

/// How a log can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As that of the container.
    Current,
    /// As that of the start before.
    Previous,
    /// The container was started twice since.
    Replaced,
}

/// What is known about a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) access: Access,
    pub(crate) started: Option<Timestamp>,
    /// Whether this start of the container ended.
    pub(crate) has_ended: bool,
    /// Its pod is not in the cluster any more.
    pub(crate) is_gone: bool,
    /// Its run goes without waiting for its end.
    pub(crate) is_leaving: bool,
}

/// One start of one container.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) id: u64,
    pub(crate) run: Uid,
    pub(crate) log: Box<str>,
    pub(crate) namespace: Box<str>,
    pub(crate) key: Key,
    pub(crate) outbox: Outbox,
    sight: watch::Sender<Sight>,
}

impl Source {
    pub(super) fn new(
        id: u64,
        run: Uid,
        (log, namespace): (Box<str>, Box<str>),
        key: Key,
        held: Option<&LogContainer>,
        sight: Sight,
        spool: Option<Arc<Spool>>,
    ) -> Self {
        let (lines, bytes, last) = end_of(held);
        let of = AppendLogRequest {
            name: log.to_string(),
            source: Some(name(&key)),
            lines: None,
            seal: false,
        };
        let outbox = Outbox::new(
            lines,
            bytes,
            last,
            spool.map(|spool| OnDisk::new(spool, of)),
        );
        Self {
            id,
            run,
            log,
            namespace,
            key,
            outbox,
            sight: watch::Sender::new(sight),
        }
    }

    /// What is known about the container, and when that changes.
    pub(crate) fn sight(&self) -> watch::Receiver<Sight> {
        self.sight.subscribe()
    }

    /// Something else is known about the container.
    pub(super) fn show(&self, change: impl FnOnce(&mut Sight)) {
        self.sight.send_if_modified(|sight| {
            let before = *sight;
            change(sight);
            before != *sight
        });
    }

    pub(super) fn seen(&self) -> Sight {
        *self.sight.borrow()
    }

    /// Goes on after what is stored, with what waits and of which `is_stored` is not true.
    pub(crate) fn go_on(&self, held: Option<&LogContainer>, is_stored: impl FnMut(i64) -> bool) {
        self.outbox.resume(end_of(held), is_stored);
    }

    /// The source as the server names it.
    pub(crate) fn name(&self) -> LogSource {
        name(&self.key)
    }

    /// The message that stores `batch`.
    pub(crate) fn message(&self, batch: &Batch) -> AppendLogRequest {
        AppendLogRequest {
            name: self.log.to_string(),
            source: Some(self.name()),
            lines: Some(batch.lines.clone()),
            seal: batch.seal,
        }
    }
}

fn name((pod, container, restart): &Key) -> LogSource {
    LogSource {
        pod: pod.to_string(),
        container: container.to_string(),
        restart: *restart,
    }
}

/// Lines and bytes of what is stored, and when its last line was written.
fn end_of(held: Option<&LogContainer>) -> (i64, u64, Option<i64>) {
    let Some(held) = held else {
        return (0, 0, None);
    };
    let last = held.last_time.filter(|_| held.lines > 0);
    let last = last.and_then(|last| time::at(last.seconds, last.nanos));
    let bytes = u64::try_from(held.bytes).unwrap_or_default();
    (held.lines, bytes, last.map(|at| at.as_microsecond()))
}
