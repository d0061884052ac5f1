//! What is refused, and will be refused again. A right that is missing, an admission policy or a
//! cluster that is read only stops a write to all runs of a kind in a namespace, and a server that
//! denies one run denies all of its namespace. So after a refusal the others wait, and one at a time
//! finds out whether that has changed, ever more rarely. It is logged once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::{backoff::Backoff, ledger::Uid, uid_queue::Fifo};

/// A call that the cluster or the server may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// Storing on the server.
    Store,
    /// Reading from the server.
    Read,
    Annotate,
    /// Putting a finalizer on.
    Protect,
    /// Taking a finalizer off.
    Release,
    Delete,
}

impl Action {
    /// As metrics and the ledger name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Read => "read",
            Self::Annotate => "annotate",
            Self::Protect => "protect",
            Self::Release => "release",
            Self::Delete => "delete",
        }
    }

    /// What follows from a refusal, and what helps.
    fn advice(self) -> &'static str {
        match self {
            Self::Store => {
                "runs there are not stored; allow `create` and `update` of results and records"
            }
            Self::Read => {
                "what is stored there cannot be verified, and nothing is collected; allow `get` of \
                 results and records"
            }
            Self::Annotate => {
                "such runs are stored and collected without annotations; allow `patch`, or set \
                 --no-annotations"
            }
            Self::Protect => "deletes do not wait until such runs are stored; allow `patch`",
            Self::Release => {
                "finalizers stay, and deletes of such runs hang; allow `patch`, or run \
                 `hindsight-watcher release` with an account that may"
            }
            Self::Delete => "such runs stay in the cluster; allow `delete`, or leave out --collect",
        }
    }
}

/// For which runs it is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) action: Action,
    /// The kind; empty for what a server refuses.
    pub(crate) kind: &'static str,
    pub(crate) namespace: Arc<str>,
}

/// A scope in which something is refused, for those who ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) scope: Scope,
    pub(crate) message: String,
    pub(crate) since: Timestamp,
    /// How many runs wait for a change.
    pub(crate) waiting: usize,
}

/// All that is refused now.
#[derive(Debug)]
pub(crate) struct Refusals {
    backoff: Backoff,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    closed: BTreeMap<Scope, Closed>,
    /// Causes that were logged: action, kind and code.
    said: BTreeSet<(Action, &'static str, String)>,
}

#[derive(Debug)]
struct Closed {
    message: String,
    since: Timestamp,
    failures: u32,
    /// One finds out just now whether it is still refused.
    is_tried: bool,
    /// Before, nothing is tried.
    next: Timestamp,
    /// When one of those that wait is woken.
    wake: Timestamp,
    waiting: Fifo,
}

impl Refusals {
    /// Nothing is refused; what is, is tried as often as `backoff` says.
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            inner: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Whether it may be tried now. If not, `uid` is woken when it may.
    ///
    /// # Errors
    /// What was said when it was refused.
    pub(crate) fn admit(
        &self,
        scope: &Scope,
        uid: Option<&Uid>,
        now: Timestamp,
    ) -> Result<(), String> {
        let mut inner = self.lock();
        let Some(closed) = inner.closed.get_mut(scope) else {
            return Ok(());
        };
        if closed.next <= now {
            closed.is_tried = true;
            closed.next = self.later(now, closed.failures);
            return Ok(());
        }
        if let Some(uid) = uid {
            closed.waiting.push(uid.clone());
            self.changed.notify_one();
        }
        Err(closed.message.clone())
    }

    /// It was refused. `uid` waits until it is tried again, if there is one. Whether it is news that
    /// it is refused there.
    pub(crate) fn refused(
        &self,
        scope: &Scope,
        uid: Option<&Uid>,
        code: &str,
        message: &str,
        now: Timestamp,
    ) -> bool {
        let mut inner = self.lock();
        let closed = inner.closed.entry(scope.clone()).or_insert(Closed {
            message: String::new(),
            since: now,
            failures: 0,
            is_tried: false,
            next: now,
            wake: now,
            waiting: Fifo::default(),
        });
        message.clone_into(&mut closed.message);
        let is_news = closed.failures == 0;
        // Others had begun before the first was refused.
        if is_news || std::mem::take(&mut closed.is_tried) {
            closed.failures = closed.failures.saturating_add(1);
            closed.next = self.later(now, closed.failures);
            closed.wake = closed.next;
        }
        if let Some(uid) = uid {
            closed.waiting.push(uid.clone());
        }
        let cause = (scope.action, scope.kind, code.to_owned());
        if inner.said.insert(cause) {
            let action = scope.action;
            warn!(
                action = action.name(), kind = scope.kind, namespace = %scope.namespace,
                "{message}; {}. Retrying with backoff; /ledger lists where",
                action.advice()
            );
        }
        drop(inner);
        self.changed.notify_one();
        is_news
    }

    /// It was not refused. Those that waited for that.
    pub(crate) fn accepted(&self, scope: &Scope) -> Vec<Uid> {
        let mut inner = self.lock();
        let Some(open) = inner.closed.remove(scope) else {
            return Vec::new();
        };
        let is_same = |action, kind| action == scope.action && kind == scope.kind;
        if !inner.closed.keys().any(|s| is_same(s.action, s.kind)) {
            inner
                .said
                .retain(|(action, kind, _)| !is_same(*action, kind));
            let waited = open.waiting.len();
            info!(
                action = scope.action.name(),
                kind = scope.kind,
                waited,
                "refused action accepted again"
            );
        }
        open.waiting.into_iter().collect()
    }

    /// The next run that finds out whether something is still refused. Cancel safe.
    pub(crate) async fn next(
        &self,
        now: impl Fn() -> Timestamp,
        until: impl Fn(Timestamp) -> tokio::time::Instant,
    ) -> (Action, Uid) {
        loop {
            let changed = self.changed.notified();
            match self.wake(now()) {
                Ok(woken) => return woken,
                Err(Some(at)) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(until(at)) => {}
                },
                Err(None) => changed.await,
            }
        }
    }

    /// One that waits and may try; or when there is one.
    fn wake(&self, now: Timestamp) -> Result<(Action, Uid), Option<Timestamp>> {
        let mut inner = self.lock();
        let waiting = inner.closed.iter_mut();
        let first = waiting
            .filter(|(_, closed)| closed.waiting.len() > 0)
            .min_by_key(|(_, closed)| closed.wake);
        let (scope, closed) = first.ok_or(None)?;
        if closed.wake > now {
            return Err(Some(closed.wake));
        }
        // Should it not try after all, another one does.
        closed.wake = self.later(now, closed.failures);
        let uid = closed.waiting.pop().ok_or(None)?;
        Ok((scope.action, uid))
    }

    /// All that is refused now, the oldest first, at most `limit`; and how many there are.
    pub(crate) fn all(&self, limit: usize) -> (Vec<Refused>, usize) {
        let inner = self.lock();
        let mut all: Vec<(&Scope, &Closed)> = inner.closed.iter().collect();
        all.sort_by_key(|(_, closed)| closed.since);
        let listed = all.iter().take(limit).map(|(scope, closed)| Refused {
            scope: (*scope).clone(),
            message: closed.message.clone(),
            since: closed.since,
            waiting: closed.waiting.len(),
        });
        (listed.collect(), all.len())
    }

    fn later(&self, now: Timestamp, failures: u32) -> Timestamp {
        let wait = SignedDuration::try_from(self.backoff.after(failures)).unwrap_or_default();
        now.saturating_add(wait).unwrap_or(now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
