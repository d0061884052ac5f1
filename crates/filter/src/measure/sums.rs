//! What is added up of each group, and the groups.

use std::collections::{HashMap, hash_map::Entry};

use super::{Key, Samples};

/// Microseconds of a day of 24 hours.
pub const DAY: i64 = 86_400_000_000;

/// Most groups that an answer may have before any are left out.
pub const MAX_GROUPS: usize = 50_000;

/// Most values that are kept of all groups together; above, all percentiles are sketched.
pub const MAX_SAMPLES: usize = 8_000_000;

/// The answer would have more groups than can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are more than {MAX_GROUPS} groups; group by something that fewer rows have of their \
     own, or narrow the filter"
)]
pub struct TooManyGroups;

/// How many things are added up of each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Counts of rows that pass something.
    pub counts: usize,
    /// Numbers of which sum, least and most are kept.
    pub amounts: usize,
}

/// How much of a number is added up. Each has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The largest.
    Most,
    /// How many there are, their sum and the smallest.
    Sums,
    /// The values themselves, for percentiles.
    Values,
}

/// What is known of one number of the rows of a group. What its [`Depth`] does not have is as of no rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amount {
    /// How many rows have it.
    pub count: u64,
    /// The sum of how many whole [`DAY`]s are in it.
    pub days: i64,
    /// The sum of what is left over. In 64 bits it would overflow at 10^8 rows.
    pub rest: i128,
    /// The smallest number; absent if no row has it.
    pub least: Option<i64>,
    /// The largest number; absent if no row has it.
    pub most: Option<i64>,
    /// The values, if percentiles are wanted.
    pub samples: Samples,
}

impl Amount {
    /// Adds the number of one row.
    pub fn add(&mut self, value: i64, depth: Depth) {
        self.most = Some(self.most.map_or(value, |most| most.max(value)));
        if depth == Depth::Most {
            return;
        }
        self.count += 1;
        self.days = self.days.saturating_add(value / DAY);
        self.rest += i128::from(value % DAY);
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        if depth == Depth::Values {
            self.samples.extend([value]);
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.days = self.days.saturating_add(other.days);
        self.rest += other.rest;
        self.least = match (self.least, other.least) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.most = self.most.max(other.most);
        self.samples.merge(other.samples);
    }

    /// The exact sum of the numbers of all rows.
    #[must_use]
    pub fn sum(&self) -> i128 {
        i128::from(self.days) * i128::from(DAY) + self.rest
    }
}

/// What is known of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// How many rows it has.
    pub rows: u64,
    /// How many of them pass each test.
    pub counts: Vec<u64>,
    /// What is known of each number, in the order of the query.
    pub amounts: Vec<Amount>,
}

impl Sums {
    /// Those of no rows.
    #[must_use]
    pub fn empty(shape: Shape) -> Self {
        Self {
            rows: 0,
            counts: vec![0; shape.counts],
            amounts: vec![Amount::default(); shape.amounts],
        }
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        for (amount, more) in self.amounts.iter_mut().zip(other.amounts) {
            amount.merge(more);
        }
    }

    fn kept(&self) -> usize {
        let kept = self.amounts.iter().map(|amount| amount.samples.kept());
        kept.sum()
    }
}

/// Rows that share all keys, and what they add up to.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What its rows share.
    pub keys: Vec<Key>,
    /// What was added up.
    pub sums: Sums,
}

/// Groups while they are gathered.
#[derive(Debug)]
pub struct Tally {
    shape: Shape,
    groups: HashMap<Vec<Key>, Sums>,
    /// How many values are kept.
    kept: usize,
    /// There were too many of them.
    full: bool,
}

impl Tally {
    /// A tally without groups, each of which will add up `shape`.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            groups: HashMap::new(),
            kept: 0,
            full: false,
        }
    }

    /// Adds a part of a group.
    ///
    /// # Errors
    /// If there are too many groups.
    pub fn merge(&mut self, keys: Vec<Key>, mut sums: Sums) -> Result<(), TooManyGroups> {
        if self.full {
            compact(&mut sums);
        }
        match self.groups.entry(keys) {
            Entry::Occupied(mut group) => {
                let group = group.get_mut();
                self.kept -= group.kept();
                group.merge(sums);
                self.kept += group.kept();
            }
            Entry::Vacant(place) => {
                self.kept += sums.kept();
                place.insert(sums);
            }
        }
        self.bounded()
    }

    /// Changes the sums of one group by a row.
    ///
    /// # Errors
    /// If there are too many groups.
    pub fn change(
        &mut self,
        keys: Vec<Key>,
        change: impl FnOnce(&mut Sums),
    ) -> Result<(), TooManyGroups> {
        let shape = self.shape;
        let group = self.groups.entry(keys);
        let group = group.or_insert_with(|| Sums::empty(shape));
        let before = group.kept();
        change(group);
        if self.full {
            compact(group);
        }
        self.kept = self.kept - before + group.kept();
        self.bounded()
    }

    fn bounded(&mut self) -> Result<(), TooManyGroups> {
        if !self.full && self.kept > MAX_SAMPLES {
            self.full = true;
            self.kept = 0;
            self.groups.values_mut().for_each(compact);
        }
        if self.groups.len() > MAX_GROUPS {
            return Err(TooManyGroups);
        }
        Ok(())
    }

    /// The groups, in the order of their keys.
    #[must_use]
    pub fn finish(self) -> Vec<Group> {
        let groups = self.groups.into_iter();
        let mut groups: Vec<_> = groups.map(|(keys, sums)| Group { keys, sums }).collect();
        groups.sort_by(|a, b| a.keys.cmp(&b.keys));
        groups
    }
}

fn compact(sums: &mut Sums) {
    for amount in &mut sums.amounts {
        if amount.samples.kept() > 0 {
            amount.samples.compact();
        }
    }
}
