//! What goes wrong on purpose: delays, wrong and outdated answers, broken connections, lost watches,
//! an outage. It breaks requests, never the state.

mod fault;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use crate::{calls::Call, refusal::Refusal};

pub use fault::Fault;
pub(crate) use fault::{Effect, Ending};

/// What running watches and players must notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) down: bool,
    /// Counts orders to drop watches.
    pub(crate) drops: u64,
    /// Counts orders to break logs that are read.
    pub(crate) log_drops: u64,
    /// Counts orders to send bookmarks.
    pub(crate) bookmarks: u64,
    /// Send nothing on open watches.
    pub(crate) frozen: bool,
}

/// The faults of one simulated server.
#[derive(Debug)]
pub struct Faults {
    planned: Mutex<Planned>,
    signals: watch::Sender<Signals>,
}

#[derive(Debug, Default)]
struct Planned {
    latency: Duration,
    faults: Vec<Fault>,
    limit: Option<Limit>,
}

/// How many requests are answered in a second.
#[derive(Debug, Clone, Copy)]
struct Limit {
    a_second: u32,
    second: i64,
    answered: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            planned: Mutex::default(),
            signals: watch::Sender::new(Signals::default()),
        }
    }
}

impl Faults {
    /// Delays every answer from now on.
    pub fn latency(&self, delay: Duration) {
        self.lock().latency = delay;
    }

    /// Plans a fault; of several that match a request, the one planned first counts.
    pub fn plan(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Refuses what is more than this many requests in a second of the cluster's clock: 429 with
    /// `Retry-After: 1`, as a server that is busy.
    pub fn limit(&self, a_second: u32) {
        self.lock().limit = Some(Limit {
            a_second,
            second: 0,
            answered: 0,
        });
    }

    /// Forgets planned faults, the limit and the latency; an outage stays.
    pub fn clear(&self) {
        *self.lock() = Planned::default();
    }

    /// How many requests planned faults still wait for, lasting ones aside.
    pub fn pending(&self) -> u32 {
        let planned = self.lock();
        planned.faults.iter().filter_map(|fault| fault.left).sum()
    }

    /// Breaks every open watch.
    pub fn drop_watches(&self) {
        self.signals.send_modify(|signals| signals.drops += 1);
    }

    /// Breaks every log that is being followed.
    pub fn drop_logs(&self) {
        self.signals.send_modify(|signals| signals.log_drops += 1);
    }

    /// Lets every open watch fall silent, as behind a connection that is half open: nothing comes,
    /// not even its end.
    pub fn freeze_watches(&self) {
        self.signals.send_modify(|signals| signals.frozen = true);
    }

    /// Lets silent watches go on.
    pub fn thaw_watches(&self) {
        self.signals.send_modify(|signals| signals.frozen = false);
    }

    /// Sends a bookmark on every open watch that allows them.
    pub fn send_bookmarks(&self) {
        self.signals.send_modify(|signals| signals.bookmarks += 1);
    }

    /// Breaks every open watch, and every connection that makes a request, until `up`.
    pub fn down(&self) {
        self.signals.send_modify(|signals| signals.down = true);
    }

    /// Ends the outage; the state is as it was.
    pub fn up(&self) {
        self.signals.send_modify(|signals| signals.down = false);
    }

    /// Whether there is an outage.
    pub fn is_down(&self) -> bool {
        self.signals.borrow().down
    }

    pub(crate) fn signals(&self) -> watch::Receiver<Signals> {
        self.signals.subscribe()
    }

    pub(crate) fn delay(&self) -> Duration {
        self.lock().latency
    }

    /// Decides about a request, and uses up the fault it meets.
    pub(crate) fn meet(&self, call: &Call) -> Option<Effect> {
        let mut planned = self.lock();
        if let Some(limit) = &mut planned.limit {
            let second = call.at.as_second();
            if limit.second != second {
                (limit.second, limit.answered) = (second, 0);
            }
            limit.answered += 1;
            if limit.answered > limit.a_second {
                return Some(Effect::Answer(busy()));
            }
        }
        let fault = planned.faults.iter_mut().find(|fault| fault.meets(call))?;
        fault.left = fault.left.map(|left| left - 1);
        let effect = fault.effect.clone();
        planned.faults.retain(|fault| fault.left != Some(0));
        Some(effect)
    }

    fn lock(&self) -> MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What priority and fairness answers.
fn busy() -> Refusal {
    let message = "Too many requests, please try again later.";
    let mut refusal = Refusal::new(429, "TooManyRequests", message);
    refusal.retry_after = Some(1);
    refusal
}
