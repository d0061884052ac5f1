//! What the rows of the statement of a plan add to groups.

use hindsight_filter::measure::{Amount, Depth, Key, Sums, Tally};

use super::{Cut, Plan};
use crate::{
    seam::{Error, GroupKey},
    sql::{
        columns::{self, Holds},
        read,
        row::SqlRow,
    },
};

impl Plan<'_> {
    /// Adds a row of the statement to the groups.
    ///
    /// # Errors
    /// If it cannot be read, or there are too many groups.
    pub(crate) fn add(&self, row: &impl SqlRow, tally: &mut Tally) -> Result<(), Error> {
        let mut at = self.query.keys.len();
        let mut keys = Vec::with_capacity(at);
        for number in 0..at {
            keys.push(self.read_key(row, number)?);
        }
        at += usize::from(self.gathers());
        let mut next = || {
            at += 1;
            at - 1
        };
        let rows = count(row, next())?;
        if rows == 0 {
            // Of no rows at all there is a row when nothing is grouped.
            return Ok(());
        }
        let mut sums = Sums {
            rows,
            counts: Vec::with_capacity(self.query.counts.len()),
            amounts: Vec::with_capacity(self.query.amounts.len()),
        };
        for _ in &self.query.counts {
            sums.counts.push(count(row, next())?);
        }
        for summed in &self.query.amounts {
            let mut amount = Amount::default();
            if summed.depth == Depth::Values {
                for value in row.ints(next())? {
                    amount.add(value, Depth::Values);
                }
            } else {
                amount.most = row.int(next())?;
            }
            if summed.depth == Depth::Sums {
                amount.count = count(row, next())?;
                amount.days = row.int(next())?.unwrap_or(0);
                let seconds = i128::from(row.int(next())?.unwrap_or(0));
                amount.rest = seconds * 1_000_000 + i128::from(row.int(next())?.unwrap_or(0));
                amount.least = row.int(next())?;
            }
            sums.amounts.push(amount);
        }
        Ok(tally.merge(keys, sums)?)
    }

    fn read_key(&self, row: &impl SqlRow, at: usize) -> Result<Key, Error> {
        Ok(match (&self.query.keys[at], &self.cuts[at]) {
            (GroupKey::Column(column), _) => match columns::holds(column) {
                Holds::Text => read::text(row, at)?.map_or(Key::Missing, Key::Text),
                Holds::Int => row.int(at)?.map_or(Key::Missing, Key::Int),
                Holds::Time => row.int(at)?.map_or(Key::Missing, Key::Time),
            },
            (GroupKey::Bucket(..), Cut::One(bucket)) => {
                bucket.map_or(Key::Missing, |(start, _)| Key::Time(start))
            }
            (GroupKey::Bucket(..), Cut::At(starts)) => match row.int(at)? {
                None => Key::Missing,
                Some(number) => {
                    let start = usize::try_from(number - 1).ok();
                    let start = start.and_then(|number| starts.get(number));
                    Key::Time(*start.ok_or_else(|| read::corrupt("a time before the first"))?)
                }
            },
            (GroupKey::Bucket(_, calendar), _) => row
                .int(at)?
                .map_or(Key::Missing, |cell| Key::Time(calendar.bucket(cell).0)),
        })
    }
}

fn count(row: &impl SqlRow, at: usize) -> Result<u64, Error> {
    u64::try_from(row.int(at)?.unwrap_or(0)).map_err(read::corrupt)
}
