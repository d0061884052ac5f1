//! Followers of the feed of changes. While there are any, one task reads the feed for all of them into
//! a ring; a follower that falls behind the ring reads the database in pages until it has caught up.

mod ring;

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use self::ring::{After, Ring, weight};
use super::Error;
use hindsight_access::budget::{MemoryPermit, QuotaExceeded, QuotaGuard};
use hindsight_runtime::error::report;
use hindsight_storage as storage;
use hindsight_storage::{ChangedRecord, FeedPosition, Store};

/// How often the feed is looked at.
const POLL: Duration = Duration::from_millis(500);
/// After an error it is looked at again after this.
const RETRY: Duration = Duration::from_secs(2);
/// Changes that are read into the ring at once.
const PAGE: NonZeroU32 = NonZeroU32::new(1_000).expect("1,000 is not 0");
/// Changes that a follower takes at once, and the bytes after which it takes no more.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 64 << 10;
/// Changes that a follower reads at once, and their memory.
const BEHIND: NonZeroU32 = NonZeroU32::new(200).expect("200 is not 0");
const BEHIND_BYTES: usize = 4 << 20;
/// How many followers read the database at once.
const READERS: usize = 2;
/// How many followers one caller may have, where callers are told apart.
const OF_CALLER: u32 = 500;
/// How many followers there may be.
const FOLLOWERS: u32 = 5_000;

/// The feed of one store. Clones are the same feed.
#[derive(Debug, Clone)]
pub(super) struct Feed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    state: Mutex<State>,
    /// Told when the ring has more changes.
    news: watch::Sender<()>,
    readers: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    ring: Option<Ring>,
    followers: HashMap<String, u32>,
    count: u32,
    polling: Option<AbortOnDropHandle<()>>,
}

impl Feed {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(Inner {
            store,
            state: Mutex::default(),
            news: watch::Sender::new(()),
            readers: Semaphore::new(READERS),
        }))
    }

    /// A follower of what comes after a place, or from now on. It fails if there are too many, or
    /// changes after the place are not kept any more.
    pub(super) async fn follow(
        &self,
        caller: &str,
        after: Option<FeedPosition>,
        quota: QuotaGuard,
    ) -> Result<Follower, Error> {
        let place = Place::take(&self.0, caller)?;
        let store = &self.0.store;
        let position = match after {
            None => store.feed_end().await?,
            Some(after) => {
                let known = self
                    .0
                    .state()
                    .ring
                    .as_ref()
                    .map(|ring| ring.after(after, 0, 0));
                if !matches!(known, Some(After::Changes(..))) {
                    let _turn = self.0.readers.acquire().await;
                    store.feed(after, NonZeroU32::MIN).await?;
                }
                after
            }
        };
        Ok(Follower {
            news: self.0.news.subscribe(),
            place,
            position,
            quota,
        })
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the feed into the ring, for as long as it is polled.
    async fn poll(self: Arc<Self>) {
        let mut end = None;
        loop {
            let wait = match self.read(end).await {
                Ok(None) => Duration::ZERO,
                Ok(Some(read)) => {
                    end = Some(read);
                    POLL
                }
                Err(storage::Error::Expired) => {
                    end = None;
                    POLL
                }
                Err(error) => {
                    let error = report(&error);
                    tracing::warn!(error, "cannot read the feed of changes; retrying");
                    RETRY
                }
            };
            if wait.is_zero() {
                end = self.state().ring.as_ref().map(Ring::end);
            } else {
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Reads the next page; the place after the last, or nothing if there is more.
    async fn read(
        &self,
        after: Option<FeedPosition>,
    ) -> Result<Option<FeedPosition>, storage::Error> {
        let Some(after) = after else {
            let end = self.store.feed_end().await?;
            self.state().ring = Some(Ring::new(end));
            self.news.send_replace(());
            return Ok(Some(end));
        };
        let page = self.store.feed(after, PAGE).await?;
        let (is_news, more, end) = (!page.changes.is_empty(), page.more, page.end);
        if let Some(ring) = &mut self.state().ring
            // Not that of another task, which was begun after this one was to end.
            && ring.end() == after
        {
            ring.push(page);
        }
        if is_news {
            self.news.send_replace(());
        }
        Ok((!more).then_some(end))
    }
}

/// The place of one follower among all.
#[derive(Debug)]
struct Place {
    feed: Arc<Inner>,
    caller: String,
}

impl Place {
    fn take(feed: &Arc<Inner>, caller: &str) -> Result<Self, QuotaExceeded> {
        let mut state = feed.state();
        let own = state.followers.get(caller).copied().unwrap_or_default();
        if !caller.is_empty() && own >= OF_CALLER {
            return Err(QuotaExceeded::Streams { limit: OF_CALLER });
        }
        if state.count >= FOLLOWERS {
            return Err(QuotaExceeded::Streams { limit: FOLLOWERS });
        }
        state.followers.insert(caller.to_owned(), own + 1);
        state.count += 1;
        if state.polling.is_none() {
            let polling = tokio::spawn(Arc::clone(feed).poll());
            state.polling = Some(AbortOnDropHandle::new(polling));
        }
        Ok(Self {
            feed: Arc::clone(feed),
            caller: caller.to_owned(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.feed.state();
        state.count -= 1;
        if let Some(own) = state.followers.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                state.followers.remove(&self.caller);
            }
        }
        if state.count == 0 {
            state.polling = None;
            state.ring = None;
        }
    }
}

/// One that follows a feed.
#[derive(Debug)]
pub(super) struct Follower {
    news: watch::Receiver<()>,
    place: Place,
    position: FeedPosition,
    quota: QuotaGuard,
}

/// Changes in their order.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) changes: VecDeque<Arc<ChangedRecord>>,
    /// The place after them.
    pub(super) end: FeedPosition,
    /// The memory of those that were read for this follower alone.
    _held: MemoryPermit,
}

impl Follower {
    /// The quota that what it reads is charged to.
    pub(super) fn quota(&self) -> QuotaGuard {
        self.quota.clone()
    }

    /// The place after everything that it was given, and after what it would not be given anyway.
    pub(super) fn position(&mut self) -> FeedPosition {
        if let Some(ring) = &self.place.feed.state().ring
            && let After::Changes(changes, end) = ring.after(self.position, 1, 1)
            && changes.is_empty()
        {
            self.position = end;
        }
        self.position
    }

    /// The next changes, once there are any. What is given up before it is ready is not lost.
    pub(super) async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            self.news.mark_unchanged();
            let found = match &self.place.feed.state().ring {
                Some(ring) => ring.after(self.position, BATCH, BATCH_BYTES),
                None => After::Behind,
            };
            let (batch, more) = match found {
                After::Changes(changes, end) => {
                    let held = MemoryPermit::default();
                    let batch = Batch {
                        changes,
                        end,
                        _held: held,
                    };
                    (batch, false)
                }
                After::Behind => self.read().await?,
            };
            self.position = batch.end;
            if !batch.changes.is_empty() {
                return Ok(batch);
            }
            if !more && self.news.changed().await.is_err() {
                // The feed lives as long as this.
                return Err(storage::Error::Expired.into());
            }
        }
    }

    /// Changes from the database, and whether there are more.
    async fn read(&self) -> Result<(Batch, bool), Error> {
        let feed = &self.place.feed;
        let _turn = feed.readers.acquire().await;
        let mut held = self.quota.expect(BEHIND_BYTES).await?;
        let page = feed.store.feed(self.position, BEHIND).await?;
        let bytes = page.changes.iter().map(weight).sum();
        self.quota.was_read(&mut held, bytes)?;
        let batch = Batch {
            changes: page.changes.into_iter().map(Arc::new).collect(),
            end: page.end,
            _held: held,
        };
        Ok((batch, page.more))
    }
}
