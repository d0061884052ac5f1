//! An amount that fills up again with time.

use std::time::Duration;

use jiff::Timestamp;

/// What was taken and is not filled up yet. May be in debt: what is taken was used already.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    taken: f64,
    since: Option<Timestamp>,
}

impl Bucket {
    /// Takes `amount`, of which `limit` come again in each `period`. What is left over may be
    /// less than that; then the next must wait.
    ///
    /// # Errors
    /// If nothing is left: for how long.
    pub(super) fn take(
        &mut self,
        amount: u64,
        limit: u32,
        period: Duration,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let limit = f64::from(limit);
        let per_second = limit / period.as_secs_f64();
        let passed = self
            .since
            .map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        // A clock that was set back fills nothing and takes nothing.
        self.taken = (self.taken - passed.max(0.0) * per_second).max(0.0);
        self.since = Some(now);
        let left = limit - self.taken;
        if left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - left) / per_second));
        }
        self.taken += u32::try_from(amount).map_or(f64::from(u32::MAX), f64::from);
        Ok(())
    }
}
