//! The state of a connection, shared by its task, its reader and its service.

use std::sync::atomic::{AtomicBool, Ordering};

/// State of one open connection.
#[derive(Debug, Default)]
pub(super) struct ConnState {
    /// Bytes were read from it.
    heard: AtomicBool,
    /// A request was read from it.
    asked: AtomicBool,
    /// Bytes were read that are not a whole request yet.
    begun: AtomicBool,
    /// Its protocol is HTTP/2.
    two: AtomicBool,
    /// It is being drained.
    unwanted: AtomicBool,
}

impl ConnState {
    pub(super) fn heard(&self, bytes: &[u8]) {
        let first = !self.heard.swap(true, Ordering::Relaxed);
        if first && bytes.starts_with(b"PRI") {
            self.two.store(true, Ordering::Relaxed);
        }
        self.begun.store(true, Ordering::Relaxed);
    }

    /// A whole request came, of HTTP/2 or not.
    pub(super) fn asked(&self, is_two: bool) {
        self.two.store(is_two, Ordering::Relaxed);
        self.asked.store(true, Ordering::Relaxed);
        self.begun.store(false, Ordering::Relaxed);
    }

    /// A request was answered, so what comes next is another.
    pub(super) fn answered(&self) {
        self.begun.store(false, Ordering::Relaxed);
    }

    /// From now on answers ask the peer to go.
    pub(super) fn give_up(&self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.unwanted.load(Ordering::Relaxed)
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(super) fn is_two(&self) -> bool {
        self.two.load(Ordering::Relaxed)
    }

    /// Whether a request of HTTP/1.1 has begun to come.
    pub(super) fn expects_a_request(&self) -> bool {
        !self.is_two() && self.begun.load(Ordering::Relaxed)
    }
}
