//! Percentiles: exact while there are few values, by a sketch above that.
//!
//! The sketch counts values by size, each size being a fixed part larger than the one below, so
//! that what it says of a percentile is wrong by at most [`RELATIVE_ERROR`] of the value
//! (DDSketch, <https://arxiv.org/abs/1908.10693>). It depends on the values alone, not on their
//! order nor on how they were merged.

/// Most values of a group whose percentiles are exact.
pub const EXACT: usize = 10_000;

/// How far a percentile may be off above that, as a part of its value.
pub const RELATIVE_ERROR: f64 = 0.005;

/// Values of one group.
#[derive(Debug, Clone, PartialEq)]
pub enum Samples {
    /// Each value as it came, at most [`EXACT`] of them.
    All(Vec<i64>),
    /// How many there are of each size.
    Sketch(Box<Sketch>),
}

impl Default for Samples {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl Samples {
    /// Adds values, and keeps only their sizes above [`EXACT`] of them.
    pub fn extend(&mut self, values: impl IntoIterator<Item = i64>) {
        for value in values {
            match self {
                Self::All(all) => {
                    all.push(value);
                    if all.len() > EXACT {
                        self.compact();
                    }
                }
                Self::Sketch(sketch) => sketch.add(value),
            }
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::All(values)) => self.extend(values),
            (Self::Sketch(sketch), Self::Sketch(other)) => sketch.merge(&other),
            (Self::All(_), Self::Sketch(mut sketch)) => {
                if let Self::All(values) = std::mem::take(self) {
                    values.into_iter().for_each(|value| sketch.add(value));
                }
                *self = Self::Sketch(sketch);
            }
        }
    }

    /// Replaces the values by counts of each size, which take less memory.
    pub fn compact(&mut self) {
        if let Self::All(values) = self {
            let mut sketch = Sketch::default();
            values.iter().for_each(|value| sketch.add(*value));
            *self = Self::Sketch(Box::new(sketch));
        }
    }

    /// How many values are kept as they are.
    #[must_use]
    pub fn kept(&self) -> usize {
        match self {
            Self::All(values) => values.len(),
            Self::Sketch(_) => 0,
        }
    }

    /// Whether percentiles are exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::All(_))
    }

    /// The smallest value that so many of a thousand values are at most; nothing of no values.
    pub fn percentile(&mut self, of_thousand: u16) -> Option<i64> {
        match self {
            Self::All(values) => {
                let rank = rank(values.len() as u64, of_thousand)?;
                let at = usize::try_from(rank).ok()?;
                Some(*values.select_nth_unstable(at).1)
            }
            Self::Sketch(sketch) => sketch.at(rank(sketch.count, of_thousand)?),
        }
    }
}

/// Which of `count` values, counted from 0 in ascending order, is the percentile.
fn rank(count: u64, of_thousand: u16) -> Option<u64> {
    let up_to = (count * u64::from(of_thousand)).div_ceil(1000);
    Some(up_to.clamp(1, count.max(1)) - 1).filter(|_| count > 0)
}

/// Counts of values by size.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    count: u64,
    least: i64,
    most: i64,
    zero: u64,
    above: Sizes,
    below: Sizes,
}

impl Default for Sketch {
    fn default() -> Self {
        Self {
            count: 0,
            least: i64::MAX,
            most: i64::MIN,
            zero: 0,
            above: Sizes::default(),
            below: Sizes::default(),
        }
    }
}

impl Sketch {
    fn add(&mut self, value: i64) {
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        match value {
            0 => self.zero += 1,
            1.. => self.above.add(size(value.unsigned_abs()), 1),
            _ => self.below.add(size(value.unsigned_abs()), 1),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.zero += other.zero;
        self.above.merge(&other.above);
        self.below.merge(&other.below);
    }

    /// About the value of this rank.
    fn at(&self, rank: u64) -> Option<i64> {
        let mut before = 0;
        let below = self.below.iter().rev().map(|(size, n)| (-middle(size), n));
        let zero = std::iter::once((0, self.zero));
        let above = self.above.iter().map(|(size, n)| (middle(size), n));
        for (value, count) in below.chain(zero).chain(above) {
            before += count;
            if before > rank {
                return Some(value.clamp(self.least, self.most));
            }
        }
        None
    }
}

/// Counts of sizes, from the smallest that was seen.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sizes {
    first: usize,
    counts: Vec<u64>,
}

impl Sizes {
    fn add(&mut self, size: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = size;
        }
        if size < self.first {
            let more = self.first - size;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = size;
        }
        let at = size - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    fn merge(&mut self, other: &Self) {
        for (size, count) in other.iter() {
            if count > 0 {
                self.add(size, count);
            }
        }
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate();
        counts.map(|(at, count)| (self.first + at, *count))
    }
}

/// How many times larger each size is than the one below.
const GAMMA: f64 = (1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR);

/// The size of a value that is not 0.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size is the logarithm of a positive number, at most 4,368"
)]
fn size(value: u64) -> usize {
    ((value as f64).ln() / GAMMA.ln()).ceil() as usize
}

/// The value that is off by the same part from both ends of a size.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "values are microseconds and counts, which whole numbers hold"
)]
fn middle(size: usize) -> i64 {
    (2.0 * GAMMA.powf(size as f64) / (GAMMA + 1.0)).round() as i64
}
