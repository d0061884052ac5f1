//! Read, decide, write: the loop behind every update.
//!
//! An update computes the new state from the one it read and writes it only if the row still
//! has that etag. When another writer was faster, a caller who sent an etag is told; for one who
//! did not, the loop starts over. Updates without an etag hold one of [`KeyedLocks`], so that the loop
//! is lost only to other replicas and to callers with an etag.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use jiff::{Timestamp, ToSpan as _};
use tokio::sync::{Mutex, MutexGuard};

use super::{Error, Service, commit::AuditPolicy};
use hindsight_access::RequestContext;
use hindsight_access::auth::Verb;
use hindsight_filter::model::{Etag, Resource, following_uid};
use hindsight_storage as storage;
use hindsight_storage::Change;

/// The uid of what is stored first.
pub(super) fn new_uid(of: Resource, id: &str, now: Timestamp) -> String {
    following_uid(of, id, now).unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
}

/// How often a lost race is tried again for callers who sent no etag.
const RACES: usize = 64;

/// Number of locks. Names that share one wait for each other, which costs time only.
const LOCKS: usize = 256;

/// Locks by name, which serialize updates of a resource without an etag.
#[derive(Debug, Clone)]
pub(super) struct KeyedLocks {
    locks: Arc<[Mutex<()>]>,
    hasher: RandomState,
}

impl KeyedLocks {
    pub(super) fn new() -> Self {
        Self {
            locks: std::iter::repeat_with(Mutex::default).take(LOCKS).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Locks `name` for an update without an etag.
    async fn take(&self, name: &str, etags: [&str; 2]) -> Option<MutexGuard<'_, ()>> {
        if etags != ["", ""] {
            return None;
        }
        let hash = usize::try_from(self.hasher.hash_one(name) >> 32).unwrap_or_default();
        Some(self.locks[hash % LOCKS].lock().await)
    }
}

impl Service {
    /// Updates what is called `name`: `step` reads it and says what to write and what to answer.
    ///
    /// # Errors
    /// Those of `step`, and [`storage::Error::Stale`] if another writer was faster than a caller
    /// who sent an etag.
    pub(super) async fn update<T, S, F>(
        &self,
        by: &RequestContext,
        name: &str,
        etags: [&str; 2],
        step: S,
    ) -> Result<T, Error>
    where
        S: Fn() -> F,
        F: Future<Output = Result<(Change, T), Error>>,
    {
        let _turn = self.turns.take(name, etags).await;
        let mut attempt = 0;
        loop {
            let (change, value) = self.audited(by, Verb::Update, &name, step().await).await?;
            attempt += 1;
            let again = etags == ["", ""] && attempt < RACES;
            let policy = if again {
                AuditPolicy::UnlessStale
            } else {
                AuditPolicy::All
            };
            match self.commit(by, change.into(), policy).await {
                Ok(()) => return Ok(value),
                Err(storage::Error::Stale { .. }) if again => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Checks the etags a caller sent against the current one: every one that is given must match.
pub(super) fn expect(name: &str, current: &Etag, sent: [&str; 2]) -> Result<(), Error> {
    for etag in sent {
        if !etag.is_empty() && etag != current.as_str() {
            return Err(Error::Store(storage::Error::Stale {
                name: name.to_owned(),
                expected: Etag::from_text(etag),
            }));
        }
    }
    Ok(())
}

/// The time of a change: now, but always after the one before, so that every change gives a
/// new etag even when clocks of replicas disagree.
pub(super) fn after(now: Timestamp, last: Timestamp) -> Timestamp {
    if now > last {
        now
    } else {
        last.checked_add(1.microsecond()).unwrap_or(last)
    }
}
