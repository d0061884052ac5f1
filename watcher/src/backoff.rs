//! How long to wait before the next attempt: longer each time, and never all at once.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Waits that double from `first` up to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The wait that further failures do not exceed.
    pub most: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row, between one half of its length and all of
    /// it, by chance, so that many who failed together do not come back together.
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let full = self.first.saturating_mul(1 << doublings).min(self.most);
        // A new RandomState differs from the one before; that is chance enough.
        let chance = RandomState::new().build_hasher().finish() % 1024;
        full / 2 + full.mul_f64(chance as f64 / 2048.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            most: Duration::from_secs(60),
        };
        for (failures, full) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (3, 4),
            (6, 32),
            (7, 60),
            (u32::MAX, 60),
        ] {
            let full = Duration::from_secs(full);
            let wait = backoff.after(failures);
            assert!(full / 2 <= wait && wait <= full, "{failures}: {wait:?}");
        }
    }
}
