//! The way to the server, which closes while the server is unavailable: a circuit breaker.
//!
//! While it is closed all calls wait, and one at a time is let through as a probe. So an outage
//! costs one call in a while and not one for each run, and it is logged twice: when it begins and
//! when it ends.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tracing::{info, warn};

use crate::{backoff::Backoff, sink::SinkError};

/// The longest wait that a server may ask for; it may be mistaken.
const LONGEST: Duration = Duration::from_mins(1);

/// Why no call is let through, if so.
pub(crate) type Closed = Option<String>;

#[derive(Debug)]
pub(crate) struct Gate {
    backoff: Backoff,
    outage: Mutex<Option<Outage>>,
    changed: Notify,
    answered: AtomicBool,
    outages: AtomicU64,
    closed: watch::Sender<Closed>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    failures: u32,
    next: Instant,
    is_probed: bool,
}

/// The right to call the server once; tell it how that went.
#[derive(Debug)]
#[must_use = "a pass that is dropped is a call whose outcome is not known"]
pub(crate) struct Pass<'g> {
    gate: &'g Gate,
    is_probe: bool,
}

impl Gate {
    /// An open gate that, once closed, is tried as often as `backoff` says.
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            outage: Mutex::new(None),
            changed: Notify::new(),
            answered: AtomicBool::new(false),
            outages: AtomicU64::new(0),
            closed: watch::Sender::new(None),
        }
    }

    /// Whether the server is available, as far as it is known, and what it said last if not.
    pub(crate) fn state(&self) -> watch::Receiver<Closed> {
        self.closed.subscribe()
    }

    /// How long the server has been unavailable, if it is.
    pub(crate) fn outage(&self) -> Option<Duration> {
        self.lock().as_ref().map(|outage| outage.since.elapsed())
    }

    /// How many outages began so far. Two that follow each other at once look like one in `state`.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.load(Ordering::Acquire)
    }

    /// Whether the server is available, as far as it is known.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.borrow().is_none()
    }

    /// Whether the server has answered, and still does.
    pub(crate) fn is_up(&self) -> bool {
        self.answered.load(Ordering::Relaxed) && self.is_open()
    }

    /// Waits until a call may be made. Cancel safe.
    pub(crate) async fn enter(&self) -> Pass<'_> {
        loop {
            let changed = self.changed.notified();
            let next = {
                let mut outage = self.lock();
                match &mut *outage {
                    None => {
                        return Pass {
                            gate: self,
                            is_probe: false,
                        };
                    }
                    Some(outage) if outage.is_probed => None,
                    Some(outage) if outage.next <= Instant::now() => {
                        outage.is_probed = true;
                        return Pass {
                            gate: self,
                            is_probe: true,
                        };
                    }
                    Some(outage) => Some(outage.next),
                }
            };
            match next {
                Some(next) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(next) => {}
                },
                // A probe that is dropped wakes nobody in time; so look again by oneself.
                None => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                },
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    pub(crate) fn answered(self) {
        self.gate.answered.store(true, Ordering::Relaxed);
        let mut outage = self.gate.lock();
        if let Some(over) = outage.take() {
            info!(
                outage_seconds = over.since.elapsed().as_secs_f64(),
                "server available again; storing resumes"
            );
            self.gate.closed.send_replace(None);
            self.gate.changed.notify_waiters();
        }
    }

    /// The server did not answer, or does not want to be called now.
    pub(crate) fn refused(self, error: &SinkError) {
        let wished = error.retry_after.unwrap_or_default().min(LONGEST);
        let next = |failures| Instant::now() + self.gate.backoff.after(failures).max(wished);
        let mut outage = self.gate.lock();
        match &mut *outage {
            None => {
                warn!(
                    error = %error,
                    "server unavailable; buffering until it recovers"
                );
                self.gate.outages.fetch_add(1, Ordering::Release);
                *outage = Some(Outage {
                    since: Instant::now(),
                    failures: 1,
                    next: next(1),
                    is_probed: false,
                });
            }
            Some(outage) if self.is_probe => {
                outage.failures = outage.failures.saturating_add(1);
                outage.next = next(outage.failures);
                outage.is_probed = false;
            }
            // The call had begun before the gate closed.
            Some(_) => return,
        }
        self.gate.closed.send_replace(Some(error.to_string()));
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // A probe that is given up is left to the next call.
        if self.is_probe
            && let Some(outage) = &mut *self.gate.lock()
        {
            outage.is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests;
