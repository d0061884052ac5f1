//! Holds, and results that expire.

use std::num::NonZeroU32;

use jiff::Timestamp;

use super::Rows;
use crate::seam::{Error, Hold, WholeVersion};
use hindsight_filter::model::{ParentPattern, ResultName};

pub(super) fn expire(
    rows: &mut Rows,
    name: &ResultName,
    version: WholeVersion,
    now: Timestamp,
) -> Result<(), Error> {
    let was = rows.results.get(name);
    let was = was.ok_or_else(|| Error::Missing(name.to_string()))?;
    let held = rows.holds.get(&was.id);
    let held = held.is_some_and(|hold| hold.is_in_force(now));
    let records = rows.records.values().map(|found| &found.row.record);
    let records = records.filter(|record| record.name.result() == name);
    let updates = records.map(|record| record.update_time);
    if held || WholeVersion::of(&was.row, updates) != version {
        return Err(Error::Stale {
            name: name.to_string(),
            expected: version.etag,
        });
    }
    rows.remove(name);
    Ok(())
}

pub(super) fn insert(rows: &mut Rows, hold: Hold) -> Result<(), Error> {
    let name = hold.result.to_string();
    let was = rows.results.get(&hold.result);
    let id = was.ok_or_else(|| Error::Missing(name.clone()))?.id;
    let there = rows.holds.get(&id);
    if there.is_some_and(|there| there.is_in_force(hold.create_time)) {
        return Err(Error::Exists(name));
    }
    rows.holds.insert(id, hold);
    Ok(())
}

pub(super) fn delete(rows: &mut Rows, name: &ResultName) -> Result<(), Error> {
    let id = rows.results.get(name).map(|was| was.id);
    let gone = id.and_then(|id| rows.holds.remove(&id));
    gone.map(drop)
        .ok_or_else(|| Error::Missing(name.to_string()))
}

pub(super) fn list(
    rows: &Rows,
    parent: &ParentPattern,
    after: i64,
    most: NonZeroU32,
) -> Vec<(i64, Hold)> {
    let is_within = |hold: &Hold| match parent {
        ParentPattern::Any => true,
        ParentPattern::Exact(parent) => hold.result.parent() == parent,
    };
    let holds = rows.holds.iter();
    let holds = holds.filter(|(id, hold)| **id > after && is_within(hold));
    let holds = holds.take(most.get() as usize);
    holds.map(|(id, hold)| (*id, hold.clone())).collect()
}
