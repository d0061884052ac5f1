//! Until when deletes of others wait for us. It has a task of its own, because everybody else
//! may be waiting for an unavailable server, and a namespace must not wait with them.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::ledger::Uid;

/// Runs that are held while somebody wants them deleted, by when they must be let go.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    due: Mutex<BTreeSet<(Timestamp, Uid)>>,
    changed: Notify,
}

impl Deadlines {
    /// `uid` must be looked at then. One that is stored by then costs one look.
    pub(crate) fn add(&self, at: Timestamp, uid: &Uid) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.insert((at, uid.clone())) {
            drop(due);
            self.changed.notify_one();
        }
    }

    /// The next run whose time has come. Cancel safe.
    pub(crate) async fn next(
        &self,
        now: impl Fn() -> Timestamp,
        until: impl Fn(Timestamp) -> Instant,
    ) -> Uid {
        loop {
            let first = {
                let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
                match due.first() {
                    Some((at, _)) if *at <= now() => {
                        if let Some((_, uid)) = due.pop_first() {
                            return uid;
                        }
                        None
                    }
                    first => first.map(|(at, _)| *at),
                }
            };
            match first {
                Some(at) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = sleep_until(until(at)) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }
}
