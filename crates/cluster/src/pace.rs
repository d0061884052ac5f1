//! A token bucket: how fast something may happen. Deletes, other writes to the cluster, events and
//! warnings about single runs each have one.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// A token bucket, kept as the time at which it is full again (the generic cell rate algorithm).
#[derive(Debug)]
pub struct Pace {
    /// The time between two tokens.
    apart: SignedDuration,
    /// What a full bucket is ahead of its rate.
    ahead: SignedDuration,
    full: Mutex<Timestamp>,
}

impl Pace {
    /// So many tokens a second, of which `burst` may be used at once; `None` for any number.
    pub fn new(per_second: Option<f64>, burst: u32) -> Self {
        let apart = per_second.map_or(0.0, f64::recip);
        let apart = SignedDuration::try_from_secs_f64(apart).unwrap_or_default();
        let more = i32::try_from(burst.saturating_sub(1)).unwrap_or(i32::MAX);
        Self {
            apart,
            ahead: apart.saturating_mul(more),
            full: Mutex::new(Timestamp::MIN),
        }
    }

    /// Reserves a token; returns when it may be used, which is not before `now`.
    pub fn turn(&self, now: Timestamp) -> Timestamp {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.next(*full, now);
        *full = (*full).max(now).saturating_add(self.apart).unwrap_or(*full);
        turn
    }

    /// Takes a token if there is one that is not reserved; otherwise fails with when to ask again.
    pub fn take(&self, now: Timestamp) -> Result<(), Timestamp> {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next(*full, now);
        if next > now {
            return Err(next);
        }
        *full = (*full).max(now).saturating_add(self.apart).unwrap_or(*full);
        Ok(())
    }

    /// Gives no token before `until`.
    pub fn pause(&self, until: Timestamp) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let later = until.saturating_add(self.ahead).unwrap_or(until);
        *full = (*full).max(later);
    }

    fn next(&self, full: Timestamp, now: Timestamp) -> Timestamp {
        full.saturating_sub(self.ahead).unwrap_or(full).max(now)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::Pace;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn turns(pace: &Pace, times: &[i64]) -> Vec<i64> {
        let turns = times.iter().map(|time| pace.turn(at(*time)));
        turns.map(Timestamp::as_millisecond).collect()
    }

    #[test]
    fn turns_are_apart_and_without_a_burst_none_is_saved_up() {
        let pace = Pace::new(Some(10.0), 1);
        assert_eq!(turns(&pace, &[0, 0, 0, 900, 900]), [0, 100, 200, 900, 1000]);
        assert_eq!(turns(&Pace::new(None, 1), &[0, 0, 5]), [0, 0, 5]);
    }

    #[test]
    fn a_burst_is_used_once_and_fills_up_at_the_rate() {
        let pace = Pace::new(Some(10.0), 3);
        assert_eq!(turns(&pace, &[0, 0, 0, 0, 0]), [0, 0, 0, 100, 200]);
        // A second later it is full again, and not fuller.
        assert_eq!(
            turns(&pace, &[1200, 1200, 1200, 1200]),
            [1200, 1200, 1200, 1300]
        );
    }

    #[test]
    fn what_waits_for_a_free_token_comes_after_what_was_reserved() {
        let pace = Pace::new(Some(10.0), 2);
        assert_eq!(pace.take(at(0)), Ok(()));
        assert_eq!(turns(&pace, &[0, 0]), [0, 100]);
        assert_eq!(pace.take(at(0)), Err(at(200)));
        assert_eq!(pace.take(at(150)), Err(at(200)));
        assert_eq!(pace.take(at(200)), Ok(()));
    }

    /// As for the annotations of a cluster that is taken over.
    #[test]
    fn fifty_thousand_writes_are_never_faster_than_agreed() {
        let pace = Pace::new(Some(50.0), 10);
        let mut now = at(0);
        let mut writes = Vec::new();
        while writes.len() < 50_000 {
            match pace.take(now) {
                Ok(()) => writes.push(now.as_millisecond()),
                Err(next) => now = next,
            }
        }
        assert_eq!(writes.last(), Some(&((50_000 - 10) * 20)));
        // Sixty in a second at most: the rate and the burst.
        let most = writes.windows(61).map(|some| some[60] - some[0]).min();
        assert!(most >= Some(1000), "{most:?}");
    }

    #[test]
    fn a_pause_holds_for_all_whatever_was_saved_up() {
        let pace = Pace::new(Some(10.0), 5);
        pace.pause(at(1000));
        assert_eq!(pace.take(at(0)), Err(at(1000)));
        assert_eq!(turns(&pace, &[0, 500]), [1000, 1100]);
    }
}
