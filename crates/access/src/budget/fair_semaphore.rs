//! A semaphore that is fair to callers: the next permit goes to the next caller who waits, not to the
//! next request. A caller with a hundred requests and one with a single request wait equally long.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use super::locked;

/// Permits, and the callers that wait for one. Clones share both.
#[derive(Clone)]
pub struct FairSemaphore(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    free: usize,
    /// Callers in the order of their turns; each who waits is there once.
    order: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<oneshot::Sender<FairPermit>>>,
}

/// A permit, which passes to the next caller when it is dropped.
pub struct FairPermit(Option<FairSemaphore>);

impl fmt::Debug for FairSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = locked(&self.0);
        f.debug_struct("FairSemaphore")
            .field("free", &state.free)
            .field("waiting", &state.order)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FairPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FairPermit")
    }
}

impl FairSemaphore {
    /// A semaphore with so many permits, at least one.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let state = State {
            free: slots.max(1),
            ..State::default()
        };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) async fn acquire(&self, caller: &str) -> FairPermit {
        let permit = self.acquire_among(caller, usize::MAX).await;
        permit.expect("nobody is turned away")
    }

    /// Waits for a permit, unless so many requests of this caller wait already.
    pub async fn acquire_among(&self, caller: &str, most: usize) -> Option<FairPermit> {
        let granted = {
            let mut state = locked(&self.0);
            if state.free > 0 {
                state.free -= 1;
                return Some(FairPermit(Some(self.clone())));
            }
            let (grant, granted) = oneshot::channel();
            let caller: Arc<str> = caller.into();
            let queue = state.waiting.entry(Arc::clone(&caller)).or_default();
            let is_listed = !queue.is_empty();
            if queue.len() >= most {
                // Those who gave up waiting are still in the queue.
                queue.retain(|waiting| !waiting.is_closed());
            }
            if queue.len() >= most {
                return None;
            }
            queue.push_back(grant);
            if !is_listed {
                state.order.push_back(caller);
            }
            granted
        };
        let permit = granted.await;
        Some(permit.expect("whoever waits is given a permit at last"))
    }

    /// Gives a permit that was dropped to the next caller, or keeps it.
    fn pass_on(&self) {
        loop {
            let next = {
                let mut state = locked(&self.0);
                let Some(caller) = state.order.pop_front() else {
                    state.free += 1;
                    return;
                };
                let queue = state
                    .waiting
                    .get_mut(&caller)
                    .expect("who is in order waits");
                let next = queue.pop_front();
                if queue.is_empty() {
                    state.waiting.remove(&caller);
                } else {
                    state.order.push_back(caller);
                }
                next
            };
            let Some(next) = next else { continue };
            match next.send(FairPermit(Some(self.clone()))) {
                Ok(()) => return,
                // Nobody waits there any more. This permit must not pass itself on, too.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(semaphore) = self.0.take() {
            semaphore.pass_on();
        }
    }
}
