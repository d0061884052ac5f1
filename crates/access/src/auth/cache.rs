//! A cache of answers with a TTL of seconds: bounded, one question at a time for a key, and no entry
//! when there was no answer.
//!
//! Keys are digests, so that nothing secret is held. What is allowed and what is not are kept
//! apart: a flood of bad tokens cannot push out the good ones.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use super::{Error, metrics::Counts};
use hindsight_runtime::clock::Clock;

/// For how long it is remembered that an answer was yes.
const FAMILIAR: Duration = Duration::from_hours(1);

/// What an answer is kept under.
pub(super) type Key = [u8; 32];

/// The digest of `parts`, different for different parts, also where they join to the same text.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// TTLs and size of a cache; a TTL counts from the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachePolicy {
    pub(super) allowed: Duration,
    pub(super) denied: Duration,
    /// How many of each kind at most.
    pub(super) most: usize,
}

/// `Some` is yes, with what is known; `None` is no.
type Answer<V> = Result<Option<V>, Error>;

/// A memory of answers. Clones share it.
#[derive(Clone)]
pub(super) struct Cache<V> {
    clock: Arc<dyn Clock>,
    keep: CachePolicy,
    state: Arc<Mutex<State<V>>>,
    counts: Counts,
}

struct State<V> {
    allowed: TtlMap<V>,
    /// What was allowed within the last hour, whether or not that still counts.
    familiar: TtlMap<()>,
    denied: TtlMap<()>,
    pending: HashMap<Key, Shared<BoxFuture<'static, Answer<V>>>>,
}

/// Answers with one TTL; the oldest are evicted first.
struct TtlMap<V> {
    held: HashMap<Key, (Timestamp, V)>,
    order: VecDeque<(Key, Timestamp)>,
}

impl<V> TtlMap<V> {
    fn new() -> Self {
        Self {
            held: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    fn get(&self, key: &Key, now: Timestamp, keep: Duration) -> Option<&V> {
        let (since, value) = self.held.get(key)?;
        alive(*since, now, keep).then_some(value)
    }

    fn put(&mut self, key: Key, value: V, since: Timestamp, keep: Duration, most: usize) {
        if keep.is_zero() || most == 0 {
            return;
        }
        self.held.insert(key, (since, value));
        self.order.push_back((key, since));
        while let Some((oldest, at)) = self.order.front().copied() {
            if self.order.len() <= most && alive(at, since, keep) {
                break;
            }
            self.order.pop_front();
            // The same key may have been put again since.
            if self.held.get(&oldest).is_some_and(|(held, _)| *held == at) {
                self.held.remove(&oldest);
            }
        }
    }
}

/// Whether an answer of `since` still counts. A clock that was set back makes none immortal.
fn alive(since: Timestamp, now: Timestamp, keep: Duration) -> bool {
    let keep = SignedDuration::try_from(keep).unwrap_or(SignedDuration::MAX);
    since <= now && now.duration_since(since) < keep
}

impl<V: Clone + Send + Sync + 'static> Cache<V> {
    pub(super) fn new(clock: Arc<dyn Clock>, keep: CachePolicy, counts: Counts) -> Self {
        let state = State {
            allowed: TtlMap::new(),
            familiar: TtlMap::new(),
            denied: TtlMap::new(),
            pending: HashMap::new(),
        };
        Self {
            clock,
            keep,
            state: Arc::new(Mutex::new(state)),
            counts,
        }
    }

    /// The answer under `key`: the cached one, that of a question that is pending already, or
    /// that of `question`, which then runs to its end even if this caller goes away.
    pub(super) async fn ask<F>(&self, key: Key, question: impl FnOnce() -> F) -> Answer<V>
    where
        F: Future<Output = Answer<V>> + Send + 'static,
    {
        let pending = {
            let mut state = self.state();
            let now = self.clock.now();
            if let Some(value) = state.allowed.get(&key, now, self.keep.allowed) {
                self.counts.hit.inc();
                return Ok(Some(value.clone()));
            }
            if state.denied.get(&key, now, self.keep.denied).is_some() {
                self.counts.hit.inc();
                return Ok(None);
            }
            match state.pending.get(&key) {
                Some(pending) => {
                    self.counts.shared.inc();
                    pending.clone()
                }
                None => {
                    self.counts.miss.inc();
                    let pending = self.start(key, now, question());
                    state.pending.insert(key, pending.clone());
                    pending
                }
            }
        };
        pending.await
    }

    /// Whether the answer under `key` was yes lately, even if it is asked for again.
    pub(super) fn was_allowed(&self, key: &Key) -> bool {
        let now = self.clock.now();
        self.state().familiar.get(key, now, FAMILIAR).is_some()
    }

    fn start(
        &self,
        key: Key,
        since: Timestamp,
        question: impl Future<Output = Answer<V>> + Send + 'static,
    ) -> Shared<BoxFuture<'static, Answer<V>>> {
        let cache = self.clone();
        let task = tokio::spawn(async move {
            let asking = PendingGuard { cache, key };
            let answer = question.await;
            asking.cache.remember(key, &answer, since);
            answer
        });
        let outcome = async move {
            task.await.unwrap_or_else(|broken| {
                Err(Error::Unavailable {
                    source: Arc::new(broken),
                })
            })
        };
        outcome.boxed().shared()
    }

    fn remember(&self, key: Key, answer: &Answer<V>, since: Timestamp) {
        let CachePolicy {
            allowed,
            denied,
            most,
        } = self.keep;
        let mut state = self.state();
        match answer {
            Ok(Some(value)) => {
                state.allowed.put(key, value.clone(), since, allowed, most);
                state.familiar.put(key, (), since, FAMILIAR, most);
            }
            Ok(None) => state.denied.put(key, (), since, denied, most),
            Err(_) => {}
        }
        let held = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.counts.allowed.set(held(state.allowed.held.len()));
        self.counts.denied.set(held(state.denied.held.len()));
    }
}

impl<V> Cache<V> {
    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Cache")
            .field("keep", &self.keep)
            .field("allowed", &state.allowed.held.len())
            .field("denied", &state.denied.held.len())
            .field("pending", &state.pending.len())
            .finish_non_exhaustive()
    }
}

/// Removes a question from `pending` when it is dropped.
struct PendingGuard<V> {
    cache: Cache<V>,
    key: Key,
}

impl<V> Drop for PendingGuard<V> {
    fn drop(&mut self) {
        self.cache.state().pending.remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
