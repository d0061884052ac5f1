//! The feed of maps: the last change of each record, in the order of changes.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use super::Rows;
use crate::seam::{ChangedRecord, Error, FeedPage, FeedPosition, RecordColumns};
use hindsight_filter::model::RecordName;

pub(super) fn page(rows: &Rows, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
    if after.transaction < rows.floor || after.transaction > rows.changed {
        return Err(Error::Expired);
    }
    let changes = rows.changes.iter();
    let mut changes: Vec<_> = changes
        .filter(|(_, number)| **number > after.transaction)
        .map(|(name, number)| (*number, name))
        .collect();
    changes.sort_unstable();
    let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
    let more = changes.len() > most;
    changes.truncate(most);
    let end = match changes.last() {
        Some((number, _)) if more => *number,
        _ => rows.changed,
    };
    let changed = |(number, name)| {
        let found = rows.records.get::<RecordName>(name)?;
        Some(ChangedRecord {
            position: FeedPosition::after(number),
            columns: RecordColumns::of(found.row.record.clone()),
        })
    };
    Ok(FeedPage {
        changes: changes.into_iter().filter_map(changed).collect(),
        end: FeedPosition::after(end),
        more,
    })
}

pub(super) fn prune(rows: &mut Rows) -> u64 {
    let gone = rows.changes.len() as u64;
    rows.changes.clear();
    rows.floor = rows.changed;
    gone
}

/// A cursor, and who holds it until when.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cursor {
    place: FeedPosition,
    holder: String,
    until: Instant,
}

pub(super) fn hold(
    rows: &mut Rows,
    name: &str,
    holder: &str,
    time: Duration,
) -> Option<FeedPosition> {
    let now = Instant::now();
    let new = Cursor {
        place: FeedPosition::after(rows.changed),
        holder: holder.to_owned(),
        until: now,
    };
    let cursor = rows.cursors.entry(name.to_owned()).or_insert(new);
    if cursor.holder != holder && cursor.until > now {
        return None;
    }
    cursor.holder = holder.to_owned();
    cursor.until = now + time;
    Some(cursor.place)
}

pub(super) fn advance(
    rows: &mut Rows,
    (name, holder): (&str, &str),
    place: FeedPosition,
    time: Duration,
) -> bool {
    let cursor = rows.cursors.get_mut(name);
    match cursor.filter(|cursor| cursor.holder == holder) {
        None => false,
        Some(cursor) => {
            cursor.place = place;
            cursor.until = Instant::now() + time;
            true
        }
    }
}
