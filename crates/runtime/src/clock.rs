//! What time it is: the one seam through which this program learns it.
//!
//! Everything else takes a [`Clock`] or a timestamp, so that a test owns the time.
//! Nothing here sleeps or schedules.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicI64, Ordering},
};

use jiff::Timestamp;

/// A source of the current time.
///
/// Invariant: every answer is a whole number of microseconds, the precision of both
/// databases, so that the reply to a write equals the next read.
pub trait Clock: Debug + Send + Sync {
    /// The current time, cut to whole microseconds.
    fn now(&self) -> Timestamp;
}

/// `at` without the part below a microsecond. Cuts towards the past, also before 1970.
#[must_use]
pub fn whole_micros(at: Timestamp) -> Timestamp {
    let micros = at.as_nanosecond().div_euclid(1_000) * 1_000;
    Timestamp::from_nanosecond(micros).unwrap_or(Timestamp::MIN)
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everybody else has to ask"
    )]
    fn now(&self) -> Timestamp {
        whole_micros(Timestamp::now())
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `start`, cut to whole microseconds.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        Self {
            micros: AtomicI64::new(whole_micros(start).as_microsecond()),
        }
    }

    /// Moves the clock to `now`, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.micros
            .store(whole_micros(now).as_microsecond(), Ordering::SeqCst);
    }

    /// Moves the clock forward by `by`, cut to whole microseconds; stops at the last
    /// representable time.
    pub fn advance(&self, by: std::time::Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let latest = Timestamp::MAX.as_microsecond();
        self.micros
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
                Some(now.saturating_add(by).min(latest))
            })
            .expect("the closure always answers");
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.micros.load(Ordering::SeqCst)) * 1_000)
            .expect("only representable times are stored")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_is_cut_towards_the_past() {
        assert_eq!(
            whole_micros(at("2026-01-02T03:04:05.123456789Z")).to_string(),
            "2026-01-02T03:04:05.123456Z"
        );
        assert_eq!(
            whole_micros(at("1969-12-31T23:59:59.999999001Z")).to_string(),
            "1969-12-31T23:59:59.999999Z"
        );
        assert_eq!(whole_micros(Timestamp::MIN), Timestamp::MIN);
        assert_eq!(
            whole_micros(Timestamp::MAX).to_string(),
            "9999-12-30T22:00:00.999999Z"
        );
    }

    #[test]
    fn the_system_clock_knows_no_nanoseconds_and_does_not_run_backwards() {
        let first = SystemClock.now();
        let second = SystemClock.now();
        assert_eq!(first.subsec_nanosecond() % 1_000, 0);
        assert!(first <= second && first > at("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn a_manual_clock_moves_only_when_told_to() {
        let clock = ManualClock::at(at("2026-01-02T03:04:05.000001999Z"));
        assert_eq!(clock.now(), at("2026-01-02T03:04:05.000001Z"));

        clock.advance(Duration::from_secs(90));
        assert_eq!(clock.now(), at("2026-01-02T03:05:35.000001Z"));

        clock.set(at("2020-01-01T00:00:00Z"));
        assert_eq!(clock.now(), at("2020-01-01T00:00:00Z"));

        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), whole_micros(Timestamp::MAX));
    }
}
