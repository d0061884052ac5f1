//! Memory that requests and their answers take: one amount for all callers, and a share of it for
//! each, so that one caller never takes all of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// What each byte of a message takes: a message is there as it came and decoded, or as it is
/// answered and encoded.
const COPIES: usize = 2;
/// The least that is taken for something whose size is not known yet.
const LITTLE: usize = 64 << 10;

/// The memory of all callers.
#[derive(Debug, Clone)]
pub(super) struct MemoryPool {
    all: Arc<Semaphore>,
    bytes: usize,
}

impl MemoryPool {
    pub(super) fn new(bytes: usize) -> Self {
        // What is taken at once is counted in 32 bits.
        let bytes = bytes.clamp(1, u32::MAX as usize);
        Self {
            all: Arc::new(Semaphore::new(bytes)),
            bytes,
        }
    }

    /// What one caller may have: half, so that there is some left for others.
    pub(super) fn share(&self) -> MemoryShare {
        self.of(self.bytes.div_ceil(2))
    }

    /// Memory of callers that are not told apart: all of it.
    pub(super) fn whole(&self) -> MemoryShare {
        self.of(self.bytes)
    }

    fn of(&self, bytes: usize) -> MemoryShare {
        MemoryShare {
            all: Arc::clone(&self.all),
            own: Arc::new(Semaphore::new(bytes)),
            most: bytes,
            typical: Arc::new(AtomicUsize::new(LITTLE)),
        }
    }
}

/// The memory of one caller. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct MemoryShare {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    most: usize,
    /// About how much is read at once, by what was read lately.
    typical: Arc<AtomicUsize>,
}

impl MemoryShare {
    /// Waits until there is memory for `bytes`, at most for `wait`. What is larger than the share
    /// takes all of it.
    pub(super) async fn take(&self, bytes: usize, wait: Duration) -> Option<MemoryPermit> {
        let amount = self.amount(bytes);
        let both = async {
            // A caller that waits for its own share keeps no other caller waiting.
            let own = Arc::clone(&self.own)
                .acquire_many_owned(amount)
                .await
                .ok()?;
            let all = Arc::clone(&self.all)
                .acquire_many_owned(amount)
                .await
                .ok()?;
            Some(MemoryPermit(Some([own, all])))
        };
        match self.try_take(bytes) {
            Some(held) => Some(held),
            None => timeout(wait, both).await.ok().flatten(),
        }
    }

    pub(super) fn try_take(&self, bytes: usize) -> Option<MemoryPermit> {
        self.try_amount(self.amount(bytes))
    }

    fn try_amount(&self, amount: u32) -> Option<MemoryPermit> {
        let own = Arc::clone(&self.own).try_acquire_many_owned(amount).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(amount).ok()?;
        Some(MemoryPermit(Some([own, all])))
    }

    fn amount(&self, bytes: usize) -> u32 {
        let amount = bytes.saturating_mul(COPIES).min(self.most);
        u32::try_from(amount).unwrap_or(u32::MAX)
    }

    /// Makes `held` what `bytes` take; false, and nothing changes, if there is not so much.
    pub(super) fn resize(&self, held: &mut MemoryPermit, bytes: usize) -> bool {
        let amount = self.amount(bytes) as usize;
        let Some(permits) = &mut held.0 else {
            return true;
        };
        let had = permits[0].num_permits();
        if let Some(more) = amount.checked_sub(had).filter(|more| *more > 0) {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let Some(MemoryPermit(Some([own, all]))) = self.try_amount(more) else {
                return false;
            };
            permits[0].merge(own);
            permits[1].merge(all);
        } else {
            for permit in permits {
                drop(permit.split(had - amount));
            }
        }
        true
    }

    /// About what is read when at most `most` bytes are.
    pub(super) fn guess(&self, most: usize) -> usize {
        self.typical.load(Ordering::Relaxed).max(LITTLE).min(most)
    }

    /// So much was read. What is large counts at once, and is forgotten slowly.
    pub(super) fn learn(&self, bytes: usize) {
        let before = self.typical.load(Ordering::Relaxed);
        let now = bytes.max(before - before / 8);
        self.typical.store(now, Ordering::Relaxed);
    }
}

/// Memory that is taken until this is dropped.
#[derive(Debug, Default)]
pub struct MemoryPermit(Option<[OwnedSemaphorePermit; 2]>);

impl MemoryPermit {
    /// Whether no memory is taken.
    pub fn is_empty(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|[own, _]| own.num_permits() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn one_caller_leaves_half_to_the_others() {
        let pool = MemoryPool::new(400);
        let (ann, bob) = (pool.share(), pool.share());
        let first = ann.take(60, WAIT).await.unwrap();
        assert!(ann.try_take(41).is_none(), "each byte counts twice");
        assert!(ann.take(41, WAIT).await.is_none(), "nothing came free");
        let all = bob.take(1_000_000, WAIT).await.unwrap();
        assert!(bob.try_take(1).is_none());
        let waiting = tokio::spawn(async move { ann.take(100, WAIT).await.is_some() });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.unwrap());
        drop(all);
        assert!(pool.whole().try_take(200).is_some());
    }

    #[test]
    fn what_is_held_follows_what_there_is() {
        let pool = MemoryPool::new(400);
        let ann = pool.share();
        let mut held = ann.try_take(50).unwrap();
        assert!(ann.resize(&mut held, 100));
        assert!(ann.try_take(1).is_none());
        assert!(ann.resize(&mut held, 10));
        let other = ann.try_take(90).unwrap();
        assert!(!ann.resize(&mut held, 11));
        drop((held, other));
        assert!(ann.try_take(100).is_some());
    }

    #[test]
    fn reads_are_expected_to_be_like_those_before() {
        let ann = MemoryPool::new(1 << 20).share();
        assert_eq!(ann.guess(1 << 30), LITTLE);
        ann.learn(8 << 20);
        assert_eq!(ann.guess(1 << 30), 8 << 20);
        assert_eq!(ann.guess(1 << 10), 1 << 10);
        for _ in 0..100 {
            ann.learn(10);
        }
        assert_eq!(ann.guess(1 << 30), LITTLE);
    }
}
