//! What one caller may use while others are there too: requests, memory, records that filters
//! read, and turns to evaluate them.
//!
//! Callers are told apart by name; where they are not, only scan concurrency is limited, and memory
//! is that of all. Every refusal says when to try again.

mod arrival;
mod bucket;
mod fair_semaphore;
mod memory;
mod metrics;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::{ErrorKind, HasKind};
use hindsight_runtime::telemetry::Registry;

use tokio::sync::Notify;

pub use self::{
    arrival::{Arrival, Streaming},
    fair_semaphore::{FairPermit, FairSemaphore},
    memory::MemoryPermit,
};
use self::{
    bucket::Bucket,
    memory::{MemoryPool, MemoryShare},
    metrics::Metrics,
};

/// Accounts that were not used lately are forgotten once there are so many.
const ACCOUNTS: usize = 10_000;
/// When to come again if too many requests are in flight, or there is no memory.
const SOON: Duration = Duration::from_secs(1);
/// How long a read waits for memory, which answers give back as they are taken.
const ANSWERS_WAIT: Duration = Duration::from_mins(1);

/// What one caller may use. `None` is any amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most requests of the caller that may be in flight at once.
    pub in_flight: u32,
    /// Requests begun in a second.
    pub per_second: Option<u32>,
    /// Records read in a minute by filters that the database does not answer.
    pub scan_per_minute: Option<u32>,
}

/// A quota of the caller is used up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    /// The caller has as many requests in flight as one may have.
    #[error(
        "{limit} requests of this caller are in flight, which is all it may have; wait for some"
    )]
    InFlight {
        /// How many there may be.
        limit: u32,
    },
    /// The caller has as many streams open as one may have.
    #[error("{limit} streams of this caller are open, which is all it may have; close some")]
    Streams {
        /// How many there may be.
        limit: u32,
    },
    /// The memory for requests and answers is taken, and was not given back in time.
    #[error(
        "the memory for requests and answers of this caller is taken (max_request_memory); wait \
         for some to be answered, or ask for less at once"
    )]
    Memory,
    /// Requests in a second.
    #[error("this caller may begin {limit} requests a second; try again in {after:?}")]
    Rate {
        /// Requests that the caller may begin in a second.
        limit: u32,
        /// When one more may begin.
        after: Duration,
    },
    /// Filters of the caller have used up the records of a minute.
    #[error(
        "filters of this caller may read {limit} records a minute; try again in {after:?}, or \
         narrow the filter by parent, data_type or time"
    )]
    Scan {
        /// Records that filters of the caller may read in a minute.
        limit: u32,
        /// When there are some again.
        after: Duration,
    },
}

impl HasKind for QuotaExceeded {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Exhausted
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InFlight { .. } | Self::Streams { .. } | Self::Memory => Some(SOON),
            Self::Rate { after, .. } | Self::Scan { after, .. } => Some(*after),
        }
    }
}

/// The accounts of all callers. Clones share them.
#[derive(Debug, Clone)]
pub struct Budgets {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    limits: RwLock<Limits>,
    accounts: Mutex<HashMap<Arc<str>, Arc<Account>>>,
    turns: FairSemaphore,
    pool: MemoryPool,
    /// The memory of callers that are not told apart.
    nameless: MemoryShare,
    metrics: Metrics,
}

#[derive(Debug)]
struct Account {
    name: Arc<str>,
    /// Requests that came and whose answers are not gone.
    arrived: AtomicU32,
    streams: AtomicU32,
    share: MemoryShare,
    in_flight: AtomicU32,
    /// Told when one of those in flight is over.
    over: Notify,
    requests: Mutex<Bucket>,
    scan: Mutex<Bucket>,
}

impl Budgets {
    /// Accounts with these limits; `slots` filters are evaluated at once, and requests and their
    /// answers take `memory` bytes.
    pub fn new(
        limits: Limits,
        slots: usize,
        memory: usize,
        clock: Arc<dyn Clock>,
        registry: &mut Registry,
    ) -> Self {
        let metrics = Metrics::new(registry);
        let pool = MemoryPool::new(memory);
        Self {
            inner: Arc::new(Inner {
                nameless: pool.whole(),
                pool,
                turns: FairSemaphore::new(slots),
                limits: RwLock::new(limits),
                accounts: Mutex::default(),
                clock,
                metrics,
            }),
        }
    }

    /// From now on these limits hold.
    pub fn set(&self, limits: Limits) {
        *self
            .inner
            .limits
            .write()
            .unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Takes a request of `caller` in; it counts as in flight for as long as the guard lives. An
    /// empty name stands for no caller, and nothing is counted.
    ///
    /// # Errors
    /// If too many are in flight, or began in the last second.
    pub fn enter(&self, caller: &str) -> Result<QuotaGuard, QuotaExceeded> {
        self.try_enter(caller)
            .map_err(|exceeded| self.inner.refuse(exceeded))
    }

    /// The same, but waits where [`Self::enter`] refuses.
    pub async fn enter_in_turn(&self, caller: &str) -> QuotaGuard {
        let account = (!caller.is_empty()).then(|| self.inner.account(caller));
        loop {
            // Made before the look, so that nothing that is over meanwhile is missed.
            let over = account.as_ref().map(|account| account.over.notified());
            match self.try_enter(caller) {
                Ok(quota) => return quota,
                Err(QuotaExceeded::InFlight { .. }) if let Some(over) = over => over.await,
                Err(exceeded) => tokio::time::sleep(exceeded.retry_after().unwrap_or(SOON)).await,
            }
        }
    }

    fn try_enter(&self, caller: &str) -> Result<QuotaGuard, QuotaExceeded> {
        let inner = &self.inner;
        let limits = inner.limits();
        let account = (!caller.is_empty()).then(|| inner.account(caller));
        if let Some(account) = &account {
            let more = |now: u32| (now < limits.in_flight).then_some(now + 1);
            let count = &account.in_flight;
            count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                .map_err(|_all| QuotaExceeded::InFlight {
                    limit: limits.in_flight,
                })?;
        }
        let request = InFlight {
            inner: Arc::clone(inner),
            account,
        };
        let Some(account) = &request.account else {
            return Ok(QuotaGuard::of(request));
        };
        if let Some(limit) = limits.per_second {
            let taken =
                locked(&account.requests).take(1, limit, Duration::from_secs(1), inner.clock.now());
            taken.map_err(|after| QuotaExceeded::Rate { limit, after })?;
        }
        Ok(QuotaGuard::of(request))
    }
}

impl Inner {
    fn limits(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self, caller: &str) -> Arc<Account> {
        let mut accounts = locked(&self.accounts);
        if let Some(account) = accounts.get(caller) {
            return Arc::clone(account);
        }
        if accounts.len() >= ACCOUNTS {
            // Whoever is here keeps theirs.
            accounts.retain(|_, account| Arc::strong_count(account) > 1);
        }
        let name: Arc<str> = caller.into();
        let account = Arc::new(Account {
            name: Arc::clone(&name),
            arrived: AtomicU32::new(0),
            streams: AtomicU32::new(0),
            share: self.pool.share(),
            in_flight: AtomicU32::new(0),
            over: Notify::new(),
            requests: Mutex::default(),
            scan: Mutex::default(),
        });
        accounts.insert(name, Arc::clone(&account));
        account
    }

    fn refuse(&self, exceeded: QuotaExceeded) -> QuotaExceeded {
        self.metrics.refused(&exceeded);
        exceeded
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that counts as in flight until it is dropped.
#[derive(Debug)]
struct InFlight {
    inner: Arc<Inner>,
    account: Option<Arc<Account>>,
}

impl InFlight {
    fn share(&self) -> &MemoryShare {
        let account = self.account.as_ref();
        account.map_or(&self.inner.nameless, |account| &account.share)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.in_flight.fetch_sub(1, Ordering::Relaxed);
            account.over.notify_waiters();
        }
    }
}

/// Account charged for a request; by default no one, without queueing.
#[derive(Debug, Clone, Default)]
pub struct QuotaGuard {
    request: Option<Arc<InFlight>>,
    /// Memory of what was read for the answer.
    held: Arc<Mutex<Vec<MemoryPermit>>>,
}

impl QuotaGuard {
    fn of(request: InFlight) -> Self {
        Self {
            request: Some(Arc::new(request)),
            held: Arc::default(),
        }
    }

    /// The same request, for a part of the work whose memory is given back when the part is over:
    /// what is kept by this guard and its clones is kept until all of them are dropped.
    #[must_use]
    pub fn part(&self) -> Self {
        Self {
            request: self.request.clone(),
            held: Arc::default(),
        }
    }

    /// Waits for a turn to evaluate a filter on some records. Callers take turns, however many
    /// requests each of them has.
    pub async fn turn(&self) -> Option<FairPermit> {
        let request = self.request.as_ref()?;
        let name = request
            .account
            .as_ref()
            .map_or("", |account| &*account.name);
        Some(request.inner.turns.acquire(name).await)
    }

    /// Waits for memory for what is about to be read, which has at most `most` bytes; about as
    /// much as what was read before.
    ///
    /// # Errors
    /// If there is none for a long time.
    pub async fn expect(&self, most: usize) -> Result<MemoryPermit, QuotaExceeded> {
        let Some(request) = &self.request else {
            return Ok(MemoryPermit::default());
        };
        let share = request.share();
        let held = share.take(share.guess(most), ANSWERS_WAIT).await;
        held.ok_or_else(|| request.inner.refuse(QuotaExceeded::Memory))
    }

    /// The same for those who hold memory already, and must not wait for others like them: nothing
    /// if there is none at once.
    #[must_use]
    pub fn expect_more(&self, most: usize) -> Option<MemoryPermit> {
        let Some(request) = &self.request else {
            return Some(MemoryPermit::default());
        };
        let share = request.share();
        share.try_take(share.guess(most))
    }

    /// Says how many bytes were read.
    ///
    /// # Errors
    /// If they are more than was expected, and there is no memory for them.
    pub fn was_read(&self, held: &mut MemoryPermit, bytes: usize) -> Result<(), QuotaExceeded> {
        let Some(request) = &self.request else {
            return Ok(());
        };
        request.share().learn(bytes);
        match self.holds(held, bytes) {
            true => Ok(()),
            false => Err(request.inner.refuse(QuotaExceeded::Memory)),
        }
    }

    /// Makes `held` what so many bytes take, of what was read; false if there is no memory for them.
    #[must_use]
    pub fn holds(&self, held: &mut MemoryPermit, bytes: usize) -> bool {
        let request = self.request.as_ref();
        request.is_none_or(|request| request.share().resize(held, bytes))
    }

    /// Keeps memory until the answer is gone.
    pub fn keep(&self, held: MemoryPermit) {
        if self.request.is_some() {
            locked(&self.held).push(held);
        }
    }

    /// Pays for records that were read.
    ///
    /// # Errors
    /// If the caller had read enough before.
    pub fn scanned(&self, records: u64) -> Result<(), QuotaExceeded> {
        let Some(request) = &self.request else {
            return Ok(());
        };
        let inner = &request.inner;
        inner.metrics.scanned(records);
        let (Some(account), Some(limit)) = (&request.account, inner.limits().scan_per_minute)
        else {
            return Ok(());
        };
        let taken =
            locked(&account.scan).take(records, limit, Duration::from_mins(1), inner.clock.now());
        taken.map_err(|after| inner.refuse(QuotaExceeded::Scan { limit, after }))
    }
}

#[cfg(test)]
mod tests;
