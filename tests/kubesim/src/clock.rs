//! Where the simulator's timestamps come from. Nothing else in the crate may ask for the time of day.

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

/// Tells the time of day to the simulator.
pub trait Clock: Debug + Send + Sync {
    /// The moment that the simulator takes for the present.
    fn now(&self) -> Timestamp;
}

/// The computer's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that others ask"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Mutex::new(start))
    }

    /// Moves the clock by `span`, which may be negative.
    pub fn advance(&self, span: SignedDuration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now += span;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as Kubernetes writes it: RFC 3339 in UTC with whole seconds.
pub(crate) fn seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second())
        .expect("the seconds of a timestamp are in range")
        .to_string()
}
