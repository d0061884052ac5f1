//! What a connection shows of itself while it lasts, to whoever answers on it and to whoever ends it.

use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of a connection while it lasts.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Something came on it.
    heard: AtomicBool,
    /// Something was asked on it.
    asked: AtomicBool,
    /// Something came that is not a whole request yet.
    begun: AtomicBool,
    /// The client speaks HTTP/2 on it.
    two: AtomicBool,
    /// It is given up.
    unwanted: AtomicBool,
}

impl Signs {
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
