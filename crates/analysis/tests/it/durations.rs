//! Seeded series of durations.
//!
//! The noise is that of builds on shared nodes: log-normal with a deviation of 3 % to 8 %, of which
//! a fifth of the variance persists from run to run; 2 % of the runs take 1.5 to 5 times as long;
//! by day everything takes up to 8 % longer than by night, as a wave or as a step; the level drifts
//! by a random walk of up to 1 % a day; and now and then a busy afternoon adds 5 %. Runs come at
//! random, three times as often by day as by night, 2 to 150 a day.

use hindsight_analysis::series::Run;
use hindsight_run::Outcome;

use crate::random::Random;

const DAY: f64 = 86_400.0;

/// What one series is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Runs a day.
    pub(crate) rate: f64,
    /// The median, in milliseconds.
    pub(crate) median: f64,
    /// The deviation of the logarithm.
    pub(crate) noise: f64,
    pub(crate) season: f64,
    pub(crate) drift: f64,
}

impl Shape {
    pub(crate) fn random(random: &mut Random) -> Self {
        let rates = [2.0, 5.0, 12.0, 24.0, 60.0, 150.0];
        Self {
            rate: rates[usize::try_from(random.range(0, 6)).unwrap()],
            median: 20_000.0 * random.between(0.0, 5.0).exp(),
            noise: random.between(0.03, 0.08),
            season: random.between(0.0, 0.08),
            drift: random.between(0.0, 0.01),
        }
    }
}

/// A run at a time with a duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timed {
    pub(crate) began: i64,
    pub(crate) duration: f64,
}

/// `count` runs, or the runs of `days` if these are fewer.
#[expect(clippy::cast_possible_truncation, reason = "times are small")]
pub(crate) fn series(random: &mut Random, shape: &Shape, count: usize, days: f64) -> Vec<Timed> {
    let phase = random.unit();
    let square = random.chance(0.5);
    let start = 1_700_000_000.0 + random.unit() * 7.0 * DAY;
    let (mut time, mut level, mut persistent) = (start, 0.0, 0.0);
    let mut busy_until = 0.0;
    let mut runs = Vec::new();
    while runs.len() < count && time < start + days * DAY {
        let of_day = (time / DAY + phase).fract();
        let by_day = of_day < 0.5;
        let density = if by_day { 1.5 } else { 0.5 };
        let gap = -(1.0 - random.unit()).ln() / (shape.rate * density);
        time += gap * DAY;
        level += shape.drift * gap.sqrt() * random.normal() / 2.0;
        persistent = 0.6 * persistent + 0.8 * random.normal();
        if random.chance((gap / 30.0).min(1.0)) {
            busy_until = time + 4.0 * 3600.0;
        }
        let season = match (square, by_day) {
            (true, true) => shape.season / 2.0,
            (true, false) => -shape.season / 2.0,
            (false, _) => shape.season / 2.0 * (of_day * std::f64::consts::TAU).sin(),
        };
        let noise = 0.2_f64.sqrt() * persistent + 0.8_f64.sqrt() * random.normal();
        let busy = if time < busy_until { 0.05 } else { 0.0 };
        let mut duration = shape.median * (level + season + busy + shape.noise * noise).exp();
        if random.chance(0.02) {
            duration *= random.between(1.5, 5.0);
        }
        runs.push(Timed {
            began: time as i64,
            duration,
        });
    }
    runs
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations are small"
)]
pub(crate) fn run<'a>(pipeline: &'a str, timed: &Timed) -> Run<'a> {
    Run {
        began: timed.began,
        pipeline,
        version: "",
        outcome: Outcome::Success,
        duration: timed.duration as u64,
        attempt: 1,
    }
}
