//! Cumulative sums, and the thresholds that bound their false alarms.

/// What is taken off each score: a change of less is not counted.
const ALLOWANCE: f64 = 0.65;

/// What the length of the reference adds to the allowance, over its square root: a short reference
/// lies off its series by chance.
const UNCERTAINTY: f64 = 1.5;

/// By how many times the bound is stricter than what is asked for: the theory has independent ranks,
/// and noise that persists from run to run makes long excursions more frequent. With a fifth of the
/// variance persisting, as in the tests, this leaves a few alarms in ten thousand days.
const MARGIN: f64 = 100.0;

/// The same for the tail, of which persistent noise moves little.
const TAIL_MARGIN: f64 = 10.0;

/// Where the tail of the reference begins.
const TAIL_RANK: f64 = 0.95;

/// The share of runs in the tail, before a change (with what a short reference is off by chance)
/// and after a change.
const TAIL: (f64, f64) = (0.08, 0.25);

/// A sum that is zero while nothing happens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    value: f64,
    /// The number of the run with which it left zero.
    start: usize,
}

impl Sum {
    /// Adds what the run `number` says.
    pub(super) fn add(&mut self, number: usize, increment: f64) {
        if self.value <= 0.0 {
            self.start = number;
        }
        self.value = (self.value + increment).max(0.0);
    }

    pub(super) fn is_zero(&self) -> bool {
        self.value <= 0.0
    }

    /// The run with which it left zero, if it is above `threshold`.
    pub(super) fn alarm(&self, threshold: f64) -> Option<usize> {
        (self.value > threshold).then_some(self.start)
    }
}

/// The increment of a sum for longer runs; that for shorter ones has the rank turned round. `rank`
/// is between 0 and 1, `count` the length of the reference.
pub(super) fn median(rank: f64, count: f64) -> f64 {
    normal(rank) - ALLOWANCE - UNCERTAINTY / count.sqrt()
}

/// The quantile of the normal distribution, by Tukey's lambda distribution: within 0.02 of it for
/// ranks that a reference of a few hundred runs has.
fn normal(rank: f64) -> f64 {
    (rank.powf(0.135) - (1.0 - rank).powf(0.135)) / 0.1975
}

/// The increment of the sum for the tail: the logarithm of the ratio of likelihoods.
pub(super) fn tail(rank: f64) -> f64 {
    let (before, after) = TAIL;
    if rank > TAIL_RANK {
        (after / before).ln()
    } else {
        ((1.0 - after) / (1.0 - before)).ln()
    }
}

/// The thresholds of the sums for the median and for the tail with which a false alarm comes once
/// in `runs` runs.
pub(super) fn thresholds(runs: f64) -> (f64, f64) {
    let squared = 2.0 * ALLOWANCE * ALLOWANCE;
    let median = (squared * runs * MARGIN).ln() / (2.0 * ALLOWANCE) - 1.166;
    (median.max(4.0), (runs * TAIL_MARGIN).ln().max(5.0))
}
