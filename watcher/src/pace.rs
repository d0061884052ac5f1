//! How fast runs are deleted: each gets a turn, and turns are a fixed time apart.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Gives out turns.
#[derive(Debug)]
pub(crate) struct Pace {
    apart: SignedDuration,
    next: Mutex<Timestamp>,
}

impl Pace {
    /// So many turns a second; `None` for as many as are wanted.
    pub(crate) fn new(per_second: Option<f64>) -> Self {
        let apart = per_second.map_or(0.0, f64::recip);
        Self {
            apart: SignedDuration::try_from_secs_f64(apart).unwrap_or_default(),
            next: Mutex::new(Timestamp::MIN),
        }
    }

    /// When the next turn is.
    pub(crate) fn turn(&self, now: Timestamp) -> Timestamp {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(now);
        *next = turn.checked_add(self.apart).unwrap_or(Timestamp::MAX);
        turn
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::Pace;

    fn turns(per_second: Option<f64>, at: &[i64]) -> Vec<i64> {
        let pace = Pace::new(per_second);
        let at = at
            .iter()
            .map(|at| Timestamp::from_millisecond(*at).unwrap());
        at.map(|at| pace.turn(at).as_millisecond()).collect()
    }

    #[test]
    fn turns_are_apart_and_none_is_saved_up() {
        assert_eq!(
            turns(Some(10.0), &[0, 0, 0, 900, 900]),
            [0, 100, 200, 900, 1000]
        );
        assert_eq!(turns(None, &[0, 0, 5]), [0, 0, 5]);
    }
}
