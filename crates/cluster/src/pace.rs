//! A token bucket: how fast something may happen. Deletes, other writes to the cluster, events and
//! warnings about single runs each have one. It goes by the time of day that it is told, and a clock that
//! is set back does not stop it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Those who ask at once may tell their times in another order. More than this is a clock that was set
/// back.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// A token bucket, kept as the time at which it is full again (the generic cell rate algorithm).
#[derive(Debug)]
pub struct Pace {
    /// The time between two tokens.
    apart: SignedDuration,
    /// What a full bucket is ahead of its rate.
    ahead: SignedDuration,
    times: Mutex<Times>,
}

#[derive(Debug)]
struct Times {
    /// When the bucket is full again.
    full: Timestamp,
    /// The latest time that was told.
    told: Timestamp,
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
            times: Mutex::new(Times {
                full: Timestamp::MIN,
                told: Timestamp::MIN,
            }),
        }
    }

    /// Reserves a token; returns when it may be used, which is not before `now`.
    pub fn turn(&self, now: Timestamp) -> Timestamp {
        let mut times = self.times(now);
        let turn = self.next(times.full, now);
        self.reserve(&mut times, now);
        turn
    }

    /// The turn that was reserved earlier; another one if the clock was set back since, and none that is
    /// reserved comes as late.
    pub fn keep(&self, turn: Timestamp, now: Timestamp) -> Timestamp {
        let is_reserved = turn <= self.times(now).full.max(now);
        match is_reserved {
            true => turn,
            false => self.turn(now),
        }
    }

    /// Takes a token if there is one that is not reserved; otherwise fails with when to ask again.
    pub fn take(&self, now: Timestamp) -> Result<(), Timestamp> {
        let mut times = self.times(now);
        let next = self.next(times.full, now);
        if next > now {
            return Err(next);
        }
        self.reserve(&mut times, now);
        Ok(())
    }

    /// Gives no token before `until`.
    pub fn pause(&self, until: Timestamp) {
        let mut times = self.lock();
        let later = until.saturating_add(self.ahead).unwrap_or(until);
        times.full = times.full.max(later);
    }

    fn reserve(&self, times: &mut Times, now: Timestamp) {
        let from = times.full.max(now);
        times.full = from.saturating_add(self.apart).unwrap_or(times.full);
    }

    /// The times, as the clock tells them that says `now`: what is reserved or paused lasts as long as it
    /// would have if the clock had not been set back.
    fn times(&self, now: Timestamp) -> MutexGuard<'_, Times> {
        let mut times = self.lock();
        let back = times.told.duration_since(now);
        if back > SET_BACK {
            times.full = times.full.saturating_sub(back).unwrap_or(Timestamp::MIN);
            times.told = now;
        }
        times.told = times.told.max(now);
        times
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
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
    #[test]
    fn a_clock_that_is_set_back_stops_nothing() {
        let pace = Pace::new(Some(10.0), 1);
        assert_eq!(
            turns(&pace, &[7_200_000, 7_200_000]),
            [7_200_000, 7_200_100]
        );
        assert_eq!(turns(&pace, &[0, 0, 1000]), [200, 300, 1000]);
        // Nor does one that was paused.
        pace.pause(at(5000));
        assert_eq!(turns(&pace, &[1000]), [5000]);
        assert_eq!(turns(&pace, &[-3_600_000]), [4100 - 3_600_000]);
    }

    #[test]
    fn a_turn_is_kept_unless_the_clock_was_set_back() {
        let pace = Pace::new(Some(10.0), 1);
        assert_eq!(
            turns(&pace, &[7_200_000, 7_200_000]),
            [7_200_000, 7_200_100]
        );
        let turn = at(7_200_100);
        assert_eq!(pace.keep(turn, at(7_200_050)), turn);
        assert_eq!(pace.keep(turn, at(7_200_200)), turn);
        assert_eq!(pace.keep(turn, at(0)), at(0));
        assert_eq!(pace.turn(at(0)), at(100));
    }

    #[test]
    fn those_who_ask_at_once_get_no_more_for_telling_their_times_in_any_order() {
        let pace = Pace::new(Some(10.0), 1);
        assert_eq!(
            turns(&pace, &[1000, 900, 1000, 950]),
            [1000, 1100, 1200, 1300]
        );
    }
}
