//! What one caller may use while others are there too: requests, records that filters read, and
//! turns to evaluate them.
//!
//! Callers are told apart by name; where nobody tells them apart, only turns are taken. Nothing
//! here says no for long: every refusal says when to come again.

mod bucket;
mod metrics;
mod turns;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::Clock,
    error::{ErrorKind, HasKind},
    telemetry::Registry,
};

use self::{bucket::Bucket, metrics::Metrics, turns::Turns};
pub use turns::Turn;

/// Accounts that were not used lately are forgotten once there are so many.
const ACCOUNTS: usize = 10_000;
/// When to come again if too many requests are in flight.
const SOON: Duration = Duration::from_secs(1);

/// What one caller may use. `None` is any amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests begun in a second.
    pub per_second: Option<u32>,
    /// Records read in a minute by filters that the database does not answer.
    pub scan_per_minute: Option<u32>,
}

/// Something is used up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// Requests in flight.
    #[error(
        "{limit} requests of this caller are in flight, which is all it may have; wait for some"
    )]
    InFlight {
        /// How many there may be.
        limit: u32,
    },
    /// Requests in a second.
    #[error("this caller may begin {limit} requests a second; try again in {after:?}")]
    Rate {
        /// How many.
        limit: u32,
        /// When one more may begin.
        after: Duration,
    },
    /// Records read.
    #[error(
        "filters of this caller may read {limit} records a minute; try again in {after:?}, or \
         narrow the filter by parent, data_type or time"
    )]
    Scan {
        /// How many.
        limit: u32,
        /// When there are some again.
        after: Duration,
    },
}

impl HasKind for Spent {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Exhausted
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InFlight { .. } => Some(SOON),
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
    turns: Turns,
    metrics: Metrics,
}

#[derive(Debug)]
struct Account {
    name: Arc<str>,
    in_flight: AtomicU32,
    requests: Mutex<Bucket>,
    scan: Mutex<Bucket>,
}

impl Budgets {
    /// Accounts with these limits; `slots` filters are evaluated at once.
    pub fn new(
        limits: Limits,
        slots: usize,
        clock: Arc<dyn Clock>,
        registry: &mut Registry,
    ) -> Self {
        let metrics = Metrics::new(registry);
        Self {
            inner: Arc::new(Inner {
                turns: Turns::new(slots),
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

    /// Takes a request of `caller` in; it counts as in flight for as long as the payer lives. An
    /// empty name is nobody's, and nothing is counted.
    ///
    /// # Errors
    /// If too many are in flight, or began in the last second.
    pub fn enter(&self, caller: &str) -> Result<Payer, Spent> {
        let inner = &self.inner;
        if caller.is_empty() {
            return Ok(Payer(Some(Arc::new(Visit {
                inner: Arc::clone(inner),
                account: None,
            }))));
        }
        let limits = inner.limits();
        let account = inner.account(caller);
        let before = account.in_flight.fetch_add(1, Ordering::Relaxed);
        let visit = Visit {
            inner: Arc::clone(inner),
            account: Some(account),
        };
        let account = visit.account.as_ref().expect("it was just put there");
        if before >= limits.in_flight {
            return Err(inner.refuse(Spent::InFlight {
                limit: limits.in_flight,
            }));
        }
        if let Some(limit) = limits.per_second {
            let taken =
                locked(&account.requests).take(1, limit, Duration::from_secs(1), inner.clock.now());
            taken.map_err(|after| inner.refuse(Spent::Rate { limit, after }))?;
        }
        Ok(Payer(Some(Arc::new(visit))))
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
            in_flight: AtomicU32::new(0),
            requests: Mutex::default(),
            scan: Mutex::default(),
        });
        accounts.insert(name, Arc::clone(&account));
        account
    }

    fn refuse(&self, spent: Spent) -> Spent {
        self.metrics.refused(&spent);
        spent
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Visit {
    inner: Arc<Inner>,
    account: Option<Arc<Account>>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// At whose expense something is done. By default at nobody's, and without turns.
#[derive(Debug, Clone, Default)]
pub struct Payer(Option<Arc<Visit>>);

impl Payer {
    /// Waits for a turn to evaluate a filter on some records. Callers take turns, however many
    /// requests each of them has.
    pub async fn turn(&self) -> Option<Turn> {
        let visit = self.0.as_ref()?;
        let name = visit.account.as_ref().map_or("", |account| &*account.name);
        Some(visit.inner.turns.take(name).await)
    }

    /// Pays for records that were read.
    ///
    /// # Errors
    /// If the caller had read enough before.
    pub fn scanned(&self, records: u64) -> Result<(), Spent> {
        let Some(visit) = &self.0 else { return Ok(()) };
        let inner = &visit.inner;
        inner.metrics.scanned(records);
        let (Some(account), Some(limit)) = (&visit.account, inner.limits().scan_per_minute) else {
            return Ok(());
        };
        let taken =
            locked(&account.scan).take(records, limit, Duration::from_mins(1), inner.clock.now());
        taken.map_err(|after| inner.refuse(Spent::Scan { limit, after }))
    }
}

#[cfg(test)]
mod tests;
