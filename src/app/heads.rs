//! Memory for heads of requests that are not whole yet, on connections of which no caller is known.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What such heads of all connections may take together, beside [`FREE`] of each.
const ALL: usize = 32 << 20;
/// What every connection may take: more than most heads.
const FREE: usize = 8 << 10;

/// What heads of all connections take.
#[derive(Debug, Default)]
pub(super) struct Heads(AtomicUsize);

/// What a connection read of heads, and whether that counts.
#[derive(Debug, Default)]
pub(super) struct ConnHeads {
    all: Arc<Heads>,
    /// Bytes that were read since the last whole request, while none was on its way.
    read: AtomicUsize,
    /// Requests on their way, whose bodies are bounded otherwise.
    open: AtomicUsize,
    /// A request of a known caller was answered.
    is_known: AtomicBool,
}

impl ConnHeads {
    /// Those of a connection of which nothing is known yet.
    pub(super) fn new(all: &Arc<Heads>) -> Self {
        Self {
            all: Arc::clone(all),
            read: AtomicUsize::default(),
            open: AtomicUsize::default(),
            is_known: AtomicBool::default(),
        }
    }

    /// Whether there is memory for so many more bytes that were read.
    pub(super) fn have_room(&self, bytes: usize) -> bool {
        if self.is_known.load(Ordering::Relaxed) || self.open.load(Ordering::Relaxed) > 0 {
            return true;
        }
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        let more = beyond(before + bytes) - beyond(before);
        let taken = self.all.0.fetch_add(more, Ordering::Relaxed);
        more == 0 || taken + more <= ALL
    }

    /// A whole request came; it is on its way until what this gives is dropped.
    pub(super) fn asked(self: &Arc<Self>) -> OnItsWay {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.give_back();
        OnItsWay(Arc::clone(self))
    }

    /// From now on its callers pay for what they send.
    pub(super) fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
        self.give_back();
    }

    fn give_back(&self) {
        let read = self.read.swap(0, Ordering::Relaxed);
        self.all.0.fetch_sub(beyond(read), Ordering::Relaxed);
    }
}

impl Drop for ConnHeads {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A request that is on its way.
#[derive(Debug)]
pub(super) struct OnItsWay(Arc<ConnHeads>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn beyond(read: usize) -> usize {
    read.saturating_sub(FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_are_not_whole_take_of_the_memory_of_all() {
        let all = Arc::default();
        let heads: Vec<_> = (0..65).map(|_| Arc::new(ConnHeads::new(&all))).collect();
        let half = ALL / 64;
        for one in &heads[..64] {
            assert!(one.have_room(FREE) && one.have_room(half));
        }
        assert!(heads[64].have_room(FREE) && !heads[64].have_room(1));
        drop(heads[0].asked());
        assert!(heads[64].have_room(1), "a head is whole");
        assert!(!heads[64].have_room(half));
    }

    #[test]
    fn bodies_and_what_known_callers_send_are_not_counted() {
        let one = Arc::new(ConnHeads::new(&Arc::default()));
        let request = one.asked();
        assert!(one.have_room(ALL * 2));
        drop(request);
        assert!(!one.have_room(ALL * 2));
        one.know();
        assert!(one.have_room(ALL * 2));
        assert_eq!(one.all.0.load(Ordering::Relaxed), 0);
        let other = ConnHeads::new(&one.all);
        other.have_room(FREE * 2);
        drop(other);
        assert_eq!(one.all.0.load(Ordering::Relaxed), 0);
    }
}
