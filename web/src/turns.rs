//! How much is made for callers at once: of all, of each of them, and of those who are not known yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::fault::Fault;

/// How much of pages is made at once: a list takes one share, a page of a whole run several.
const SHARES: usize = 64;
/// How many of these one caller may have.
const OWN: usize = 24;
/// How many callers are looked up elsewhere at once.
const STRANGERS: usize = 32;
/// How long a page waits for its share.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many callers are remembered who have no page in the making.
const IDLE: usize = 256;

/// The shares of one server.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    own: Mutex<HashMap<String, Arc<Semaphore>>>,
    strangers: Semaphore,
}

/// A page may be made while this lasts.
#[derive(Debug)]
pub(crate) struct Turn {
    _own: Option<OwnedSemaphorePermit>,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(SHARES)),
            own: Mutex::default(),
            strangers: Semaphore::new(STRANGERS),
        }
    }

    /// A page of this size for a caller. Callers without a name are not told apart.
    pub(crate) async fn page(&self, caller: &str, size: u32) -> Result<Turn, Fault> {
        let waited = tokio::time::timeout(PATIENCE, async {
            let own = match caller {
                "" => None,
                caller => Some(self.own(caller).acquire_many_owned(size).await.ok()?),
            };
            let all = Arc::clone(&self.all).acquire_many_owned(size).await.ok()?;
            Some(Turn {
                _own: own,
                _all: all,
            })
        });
        waited.await.ok().flatten().ok_or(Fault::Busy)
    }

    /// A caller who is looked up.
    pub(crate) async fn stranger(&self) -> Result<SemaphorePermit<'_>, Fault> {
        let waited = tokio::time::timeout(PATIENCE, self.strangers.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or(Fault::Busy)
    }

    fn own(&self, caller: &str) -> Arc<Semaphore> {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= IDLE && !all.contains_key(caller) {
            // Permits hold their semaphore.
            all.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let own = all.entry(caller.to_owned());
        Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(OWN))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pages_in_flight_are_capped_for_each_caller() {
        let turns = Turns::new();
        let mut held = Vec::new();
        for _ in 0..OWN {
            held.push(turns.page("greedy", 1).await.unwrap());
        }
        assert!(matches!(turns.page("greedy", 1).await, Err(Fault::Busy)));
        let other = turns.page("other", 8).await.unwrap();
        held.clear();
        drop(other);
        assert!(turns.page("greedy", 8).await.is_ok());
        // Callers who are not told apart share all there is.
        for _ in 0..SHARES {
            held.push(turns.page("", 1).await.unwrap());
        }
        assert!(matches!(turns.page("other", 1).await, Err(Fault::Busy)));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_without_pages_are_forgotten() {
        let turns = Turns::new();
        let held = turns.page("held", 1).await.unwrap();
        for number in 0..IDLE * 2 {
            turns.page(&number.to_string(), 1).await.unwrap();
        }
        let own = turns.own.lock().unwrap();
        assert!(own.len() <= IDLE && own.contains_key("held"));
        drop(held);
    }
}
