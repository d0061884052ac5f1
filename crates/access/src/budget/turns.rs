//! Turns: some work at once, and the next turn goes to the next caller who waits, not to the
//! next request. So one with a hundred requests and one with a single one wait equally long.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::oneshot;

use super::locked;

/// Who waits. Clones are the same turns.
#[derive(Clone)]
pub struct Turns(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    free: usize,
    /// Whose turn is next; each who waits is there once.
    order: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<oneshot::Sender<Turn>>>,
}

/// A turn, until it is dropped.
pub struct Turn(Option<Turns>);

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = locked(&self.0);
        f.debug_struct("Turns")
            .field("free", &state.free)
            .field("waiting", &state.order)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

impl Turns {
    /// So many turns at once.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let state = State {
            free: slots.max(1),
            ..State::default()
        };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) async fn take(&self, caller: &str) -> Turn {
        let turn = self.take_among(caller, usize::MAX).await;
        turn.expect("nobody is turned away")
    }

    /// Waits for a turn, unless so many of this caller wait already.
    pub async fn take_among(&self, caller: &str, most: usize) -> Option<Turn> {
        let granted = {
            let mut state = locked(&self.0);
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn(Some(self.clone())));
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
        let turn = granted.await;
        Some(turn.expect("whoever waits is given a turn at last"))
    }

    /// Gives a turn that ended to the next who waits, or keeps it.
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
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // Nobody waits there any more. This turn must not pass itself on, too.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}
