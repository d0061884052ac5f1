//! One request from its head to the end of its answer: its account, and the memory that it takes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use super::{
    Account, Budgets, FairPermit, Inner, MemoryPermit, QuotaExceeded, QuotaGuard, locked,
    memory::MemoryShare,
};

/// How long the body of a request waits for memory before it is refused.
const WAIT: Duration = Duration::from_secs(5);
/// How long a stream waits, which is held back and not refused.
const STREAM_WAIT: Duration = Duration::from_hours(24 * 365);
/// Heads up to this take no memory that is counted; only so many requests of a caller arrive.
const SMALL_HEAD: usize = 16 << 10;
/// How many streams one caller may have.
const STREAMS: u32 = 32;

tokio::task_local! {
    static CURRENT: Arrival;
}

/// A request of a caller who is known. Clones are the same request.
#[derive(Debug, Clone)]
pub struct Arrival(Arc<ArrivalState>);

#[derive(Debug)]
struct ArrivalState {
    inner: Arc<Inner>,
    account: Option<Arc<Account>>,
    share: MemoryShare,
    /// Memory of the request, until its answer is gone.
    kept: Mutex<Vec<MemoryPermit>>,
    /// Memory of the messages of a stream, in their order.
    messages: Mutex<VecDeque<MemoryPermit>>,
    /// The quota that its answer is charged to, held until the answer is gone.
    quota: Mutex<Option<QuotaGuard>>,
}

impl Budgets {
    /// Takes in a request of `caller` whose head has so many bytes, before its body is read.
    ///
    /// # Errors
    /// If too many are there already, or there is no memory for the head.
    pub fn arrive(&self, caller: &str, head: usize) -> Result<Arrival, QuotaExceeded> {
        let inner = &self.inner;
        let account = (!caller.is_empty()).then(|| inner.account(caller));
        let share = account.as_ref().map_or(&inner.nameless, |of| &of.share);
        let arrival = Arrival(Arc::new(ArrivalState {
            share: share.clone(),
            inner: Arc::clone(inner),
            kept: Mutex::default(),
            messages: Mutex::default(),
            quota: Mutex::default(),
            account,
        }));
        if let Some(account) = &arrival.0.account {
            let limit = inner.limits().in_flight;
            if account.arrived.fetch_add(1, Ordering::Relaxed) >= limit {
                return Err(inner.refuse(QuotaExceeded::InFlight { limit }));
            }
        }
        if head > SMALL_HEAD {
            let held = arrival.0.share.try_take(head);
            arrival.keep(held.ok_or_else(|| inner.refuse(QuotaExceeded::Memory))?);
        }
        Ok(arrival)
    }
}

impl Arrival {
    /// The request that is answered by this task.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Does `work` as part of this request.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// Name of its caller; empty where callers are not told apart.
    #[must_use]
    pub fn caller(&self) -> &str {
        self.0.account.as_ref().map_or("", |account| &account.name)
    }

    /// Waits for memory for a message of so many bytes; `held_back` streams wait as long as it
    /// takes.
    ///
    /// # Errors
    /// If there is none in time.
    pub async fn take(&self, bytes: usize, held_back: bool) -> Result<MemoryPermit, QuotaExceeded> {
        let wait = if held_back { STREAM_WAIT } else { WAIT };
        let held = self.0.share.take(bytes, wait).await;
        held.ok_or_else(|| self.0.inner.refuse(QuotaExceeded::Memory))
    }

    /// Makes `held` what so many bytes take.
    ///
    /// # Errors
    /// If there is no more memory.
    pub fn resize(&self, held: &mut MemoryPermit, bytes: usize) -> Result<(), QuotaExceeded> {
        if self.0.share.resize(held, bytes) {
            Ok(())
        } else {
            Err(self.0.inner.refuse(QuotaExceeded::Memory))
        }
    }

    /// Waits for a turn to do what takes long. Callers take turns, however many requests each of them
    /// has.
    pub async fn turn(&self) -> FairPermit {
        self.0.inner.turns.acquire(self.caller()).await
    }

    /// Keeps memory until the answer is gone.
    pub fn keep(&self, held: MemoryPermit) {
        locked(&self.0.kept).push(held);
    }

    /// Keeps memory for the next message of a stream, until that is taken.
    pub fn keep_for_message(&self, held: MemoryPermit) {
        locked(&self.0.messages).push_back(held);
    }

    /// The memory of the message that was just taken from a stream.
    #[must_use]
    pub fn of_message(&self) -> MemoryPermit {
        locked(&self.0.messages).pop_front().unwrap_or_default()
    }

    /// Holds `quota` until the answer is gone.
    pub fn hold_quota(&self, quota: &QuotaGuard) {
        *locked(&self.0.quota) = Some(quota.clone());
    }

    /// Makes this a stream, of which a caller may have only so many.
    ///
    /// # Errors
    /// If the caller has them.
    pub fn streams(&self) -> Result<Streaming, QuotaExceeded> {
        let streaming = Streaming(self.clone());
        if let Some(account) = &self.0.account
            && account.streams.fetch_add(1, Ordering::Relaxed) >= STREAMS
        {
            return Err(self
                .0
                .inner
                .refuse(QuotaExceeded::Streams { limit: STREAMS }));
        }
        Ok(streaming)
    }
}

impl Drop for ArrivalState {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.arrived.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A stream of a caller, until it is dropped.
#[derive(Debug)]
pub struct Streaming(Arrival);

impl Drop for Streaming {
    fn drop(&mut self) {
        if let Some(account) = &self.0.0.account {
            account.streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
