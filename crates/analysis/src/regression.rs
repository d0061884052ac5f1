//! Where pipelines became slower, or faster, and with which run it began.
//!
//! # How a change is found
//!
//! Each run gets a rank: the share of a *reference* that took less time. The normal scores of ranks
//! (the quantile of the normal distribution that belongs to a rank) go into cumulative sums (Page
//! 1954): `S = max(0, S + score - allowance)`, one for longer and one for shorter runs. A sum above
//! its threshold is an alarm; it counts if the runs since the sum was last zero have a level that is
//! [`Settings::least_change`] off, and the change begins with the run that makes this level most
//! likely. A third sum counts runs above the 95th percentile of the reference, and sees that the tail
//! grew while the median stayed.
//!
//! Ranks, because durations are skewed and have outliers: the distribution of ranks does not depend
//! on that of durations, so one threshold serves all pipelines, and one run adds at most 2.8,
//! however long it took. Sums over runs, because a change is to be found soon after it happened:
//! methods that look back over a whole series (e-divisive, PELT) find where it changed, but give no
//! bound on the false alarms of asking again after each run. A sum has one: if scores are normal and
//! independent, the mean number of runs between false alarms is about
//! `exp(2 a (h + 1.17)) / (2 a^2)` for allowance `a` and threshold `h` (Siegmund 1985). The threshold
//! is computed from that for the rate of the series, so that the bound is one of days, not of runs.
//! Noise that persists from run to run breaks the independence, so a margin is added (`sum::MARGIN`),
//! and the tests count alarms on series with such noise.
//!
//! The reference is the runs at the same time of day, of earlier days, once there are enough; so
//! nights and mornings are no changes. Until then it is the latest runs, if these cover two days. A
//! level that drifts less than [`Settings::least_change`] is followed in silence.
//!
//! Each run is compared with a bounded number of others: a series takes O(n), sorting O(n log n).

mod baseline;
mod detector;
mod sum;

use crate::series::{Run, by_pipeline};
use detector::Detector;
use hindsight_run::Outcome;

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The least change of a duration, as a share of it: 0.1 is 10 %.
    pub least_change: f64,
    /// For how many days a series without changes goes without an alarm, on average.
    pub days_per_alarm: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            least_change: 0.12,
            days_per_alarm: 1_000.0,
        }
    }
}

/// Which part of the runs takes longer, or less time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Most runs take longer.
    Slower,
    /// Most runs take less time.
    Faster,
    /// Slow runs became slower or more frequent; the median stays.
    Tail,
}

/// Durations that a part of the runs does not exceed, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of the runs.
    pub p50: u64,
    /// 95 of 100 runs.
    pub p95: u64,
}

impl Quantiles {
    /// Those of `durations`, by the nearest rank; 0 if there are none.
    #[must_use]
    pub fn of(mut durations: Vec<u64>) -> Self {
        durations.sort_unstable();
        let at = |hundredths: usize| {
            let rank = (durations.len() * hundredths).div_ceil(100).max(1);
            durations.get(rank - 1).copied().unwrap_or(0)
        };
        Self {
            p50: at(50),
            p95: at(95),
        }
    }
}

/// A step change of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// Which pipeline it is, as its runs name it.
    pub pipeline: &'a str,
    /// Which part of the runs changed.
    pub kind: Kind,
    /// The run with which it began, as far as the series tells: a position in the given runs.
    pub began: usize,
    /// The run with which it was certain.
    pub noticed: usize,
    /// Durations before: of the runs that the last one is compared with, at most 180.
    pub before: Quantiles,
    /// Durations since it began, up to the run with which it was certain.
    pub after: Quantiles,
}

/// The step changes of the durations of each pipeline, in the order of pipelines and times. Only
/// runs that succeeded count. A series is judged from its thirtieth run on, if these cover two days.
#[must_use]
pub fn changes<'a>(runs: &[Run<'a>], settings: &Settings) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    for (pipeline, positions) in by_pipeline(runs) {
        let mut detector = Detector::new(settings);
        let succeeded = |at: &usize| runs[*at].outcome == Outcome::Success;
        for at in positions.into_iter().filter(succeeded) {
            if let Some(seen) = detector.push(at, runs[at].began, runs[at].duration) {
                changes.push(Change {
                    pipeline,
                    kind: seen.kind,
                    began: seen.began,
                    noticed: at,
                    before: seen.before,
                    after: seen.after,
                });
            }
        }
    }
    changes
}
