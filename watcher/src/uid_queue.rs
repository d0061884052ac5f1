//! Queues of UIDs. Stored runs wait in one for annotations, or for a finalizer that holds nothing up to
//! come off: what is written follows from the ledger.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::ledger::Uid;

/// UIDs in the order of their arrival, each once.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    order: VecDeque<Uid>,
    known: HashSet<Uid>,
}

impl Fifo {
    pub(crate) fn push(&mut self, uid: Uid) {
        if self.known.insert(uid.clone()) {
            self.order.push_back(uid);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Uid> {
        let uid = self.order.pop_front()?;
        self.known.remove(&uid);
        Some(uid)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

impl IntoIterator for Fifo {
    type Item = Uid;
    type IntoIter = std::collections::vec_deque::IntoIter<Uid>;

    fn into_iter(self) -> Self::IntoIter {
        self.order.into_iter()
    }
}

/// A queue that can be waited for.
#[derive(Debug, Default)]
pub(crate) struct UidQueue {
    waiting: Mutex<Fifo>,
    ready: Notify,
}

impl UidQueue {
    pub(crate) fn push(&self, uid: &Uid) {
        self.lock().push(uid.clone());
        self.ready.notify_one();
    }

    /// The run that has waited for the longest time. Cancel safe.
    pub(crate) async fn pop(&self) -> Uid {
        loop {
            let ready = self.ready.notified();
            let uid = {
                let mut waiting = self.lock();
                let uid = waiting.pop();
                if waiting.len() > 0 {
                    self.ready.notify_one();
                }
                uid
            };
            match uid {
                Some(uid) => return uid,
                None => ready.await,
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Fifo> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Uid, UidQueue};

    #[tokio::test]
    async fn each_run_waits_once_and_the_oldest_is_first() {
        let queue = UidQueue::default();
        for uid in ["a", "b", "a"] {
            queue.push(&Uid::from(uid));
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop().await.as_str(), "a");
        queue.push(&Uid::from("a"));
        assert_eq!(queue.pop().await.as_str(), "b");
        assert_eq!(queue.pop().await.as_str(), "a");
    }
}
