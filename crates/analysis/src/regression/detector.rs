//! One series, run by run.

use std::collections::VecDeque;

use super::{
    Kind, Quantiles, Settings,
    baseline::Baseline,
    sum::{self, Sum},
};

/// How many runs are kept that may belong to a change.
const TRAIL: usize = 200;

/// How many runs wait for the sums to be zero before they are compared with.
const PENDING: usize = 120;

/// From where on the sum for the tail keeps runs waiting.
const SUSPICIOUS_TAIL: f64 = 3.0;

/// How many runs after an alarm its change may take to be large enough.
const CONFIRMED_WITHIN: usize = 60;

/// How many runs before an alarm's beginning the change may have begun.
const AROUND: usize = 10;

/// How many runs after a change are used to measure the new level before the next is looked for.
const SETTLING: usize = 30;

/// How long a reference is at least whose tail is known well enough.
const TAIL_REFERENCE: usize = 60;

/// By how much more than the median the tail has to grow.
const TAIL_CHANGE: f64 = 2.0;

#[derive(Debug, Clone, Copy)]
struct Seen {
    number: usize,
    /// Where it is among the runs that were given.
    position: usize,
    time: i64,
    duration: f64,
    /// How far it is above the median of its reference.
    above: f64,
}

/// A change that is certain.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) began: usize,
    pub(super) before: Quantiles,
    pub(super) after: Quantiles,
}

/// What is remembered of a series.
#[derive(Debug)]
pub(super) struct Detector {
    settings: Settings,
    baseline: Baseline,
    longer: Sum,
    shorter: Sum,
    tail: Sum,
    trail: VecDeque<Seen>,
    /// The number of the first run that is not in the baseline.
    pending: usize,
    /// How many runs were seen, and when the first began.
    count: usize,
    first: i64,
    /// The number of the run with which the new level began, while it is measured, and how many
    /// more runs that takes.
    settling: Option<(usize, usize)>,
    reference: Vec<f64>,
}

impl Detector {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            settings: *settings,
            baseline: Baseline::default(),
            longer: Sum::default(),
            shorter: Sum::default(),
            tail: Sum::default(),
            trail: VecDeque::new(),
            pending: 0,
            count: 0,
            first: 0,
            settling: None,
            reference: Vec::new(),
        }
    }

    /// Takes the next run of the series, which is at `position`; a change that it makes certain.
    pub(super) fn push(&mut self, position: usize, time: i64, duration: u64) -> Option<Found> {
        if self.count == 0 {
            self.first = time;
        }
        let number = self.count;
        self.count += 1;
        let duration = logarithm(duration);
        let mut seen = Seen {
            number,
            position,
            time,
            duration,
            above: 0.0,
        };
        let known = self.baseline.reference(time, &mut self.reference);
        if known {
            seen.above = duration - median(&mut self.reference);
        }
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        self.trail.push_back(seen);
        if !known {
            self.settle(number + 1);
            return None;
        }
        if let Some((from, left)) = self.settling {
            self.settling = Some((from, left - 1));
            if left == 1 {
                self.settling = None;
                self.new_level(from);
            }
            return None;
        }
        self.add(number, duration);
        let found = self.judge(number);
        if found.is_none() {
            let tail = self.tail.alarm(SUSPICIOUS_TAIL).is_some();
            let quiet = self.longer.is_zero() && self.shorter.is_zero() && !tail;
            let until = if quiet {
                number + 1
            } else {
                (number + 1).saturating_sub(PENDING)
            };
            self.settle(until);
        }
        found
    }

    /// Adds what a run says to the sums.
    fn add(&mut self, number: usize, duration: f64) {
        let (mut less, mut same) = (0.0, 0.0);
        for other in &self.reference {
            if *other < duration {
                less += 1.0;
            } else if *other <= duration {
                same += 1.0;
            }
        }
        let count = float(self.reference.len());
        let rank = (less + same / 2.0 + 0.5) / (count + 1.0);
        self.longer.add(number, sum::median(rank, count));
        self.shorter.add(number, sum::median(1.0 - rank, count));
        if self.reference.len() >= TAIL_REFERENCE {
            self.tail.add(number, sum::tail(rank));
        }
    }

    /// The thresholds for the rate that the series has had so far.
    fn thresholds(&self, time: i64) -> (f64, f64) {
        let days = (seconds(time.saturating_sub(self.first)) / 86_400.0).max(1.0);
        sum::thresholds(float(self.count) / days * self.settings.days_per_alarm)
    }

    /// A change that is certain with the run `number`, after which the new level is measured.
    fn judge(&mut self, number: usize) -> Option<Found> {
        let time = self.trail.back().map_or(0, |last| last.time);
        let (most, most_of_tail) = self.thresholds(time);
        let least = self.settings.least_change.ln_1p();
        for (sum, kind, sign) in [
            (self.longer, Kind::Slower, 1.0),
            (self.shorter, Kind::Faster, -1.0),
        ] {
            let Some(start) = sum.alarm(most) else {
                continue;
            };
            let above = self.level(start);
            if above * sign >= least {
                let start = self.change_point(start, above);
                let found = self.found(kind, start);
                self.restart(start);
                return found;
            }
            if number - start >= CONFIRMED_WITHIN {
                self.restart(start);
                return None;
            }
        }
        let start = self.tail.alarm(most_of_tail)?;
        let found = self.found(Kind::Tail, start)?;
        let grown = logarithm(found.after.p95) - logarithm(found.before.p95);
        self.tail = Sum::default();
        if grown < least * TAIL_CHANGE {
            return None;
        }
        self.baseline = Baseline::default();
        self.pending = start.max(self.pending);
        self.restart(start);
        self.settling = None;
        Some(found)
    }

    /// Begins to measure the level since the run `start`.
    fn restart(&mut self, start: usize) {
        self.longer = Sum::default();
        self.shorter = Sum::default();
        self.tail = Sum::default();
        self.settling = Some((start, SETTLING));
    }

    /// Moves the baseline to the level of the runs since `start`, and these into it.
    fn new_level(&mut self, start: usize) {
        let level = self.level(start);
        self.settle(start);
        self.baseline.shift(level);
        self.settle(self.count);
    }

    /// How far the runs since `start` are above their references.
    fn level(&self, start: usize) -> f64 {
        let mut above: Vec<f64> = self.since(start).map(|seen| seen.above).collect();
        above.sort_unstable_by(f64::total_cmp);
        // The mean of the middle half: as robust as is needed, and surer than the median.
        let quarter = above.len() / 4;
        let middle = &above[quarter..above.len() - quarter];
        middle.iter().sum::<f64>() / float(middle.len().max(1))
    }

    /// The run from which on the level is most likely `level`, looked for around the run `near`: the
    /// one with the largest sum of `above - level / 2` over the runs since.
    fn change_point(&self, near: usize, level: f64) -> usize {
        let mut best = (near, f64::NEG_INFINITY);
        let mut sum = 0.0;
        for seen in self
            .since(near.saturating_sub(AROUND))
            .collect::<Vec<_>>()
            .iter()
            .rev()
        {
            let gain = (seen.above - level / 2.0) * level.signum();
            sum += gain.clamp(-level.abs(), level.abs());
            if sum > best.1 {
                best = (seen.number, sum);
            }
        }
        best.0
    }

    fn since(&self, start: usize) -> impl Iterator<Item = &Seen> {
        self.trail.iter().filter(move |seen| seen.number >= start)
    }

    /// Puts the runs before the run `until` into the baseline.
    fn settle(&mut self, until: usize) {
        let pending = self.pending;
        if until <= pending {
            return;
        }
        for seen in self
            .trail
            .iter()
            .filter(|seen| (pending..until).contains(&seen.number))
        {
            self.baseline.add(seen.time, seen.duration);
        }
        self.pending = self.pending.max(until);
    }

    fn found(&self, kind: Kind, start: usize) -> Option<Found> {
        let began = self.since(start).next()?.position;
        let before = quantiles(self.reference.clone());
        let after = quantiles(self.since(start).map(|seen| seen.duration).collect());
        Some(Found {
            kind,
            began,
            before,
            after,
        })
    }
}

/// The middle of `values`, whose order it changes; 0 if there are none.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn quantiles(values: Vec<f64>) -> Quantiles {
    Quantiles::of(values.into_iter().map(milliseconds).collect())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "durations and counts are far below 2^53"
)]
fn logarithm(duration: u64) -> f64 {
    (duration.max(1) as f64).ln()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats saturate"
)]
fn milliseconds(logarithm: f64) -> u64 {
    logarithm.exp().round() as u64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "durations and counts are far below 2^53"
)]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^53")]
fn seconds(time: i64) -> f64 {
    time as f64
}
