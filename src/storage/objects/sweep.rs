//! Removing objects that nobody refers to any more, and those that nobody came to refer to.

use std::num::NonZeroU32;

use jiff::Timestamp;
use uuid::Uuid;

use super::{count, object};
use crate::storage::{Error, promoted::Desk, sql::objects as sql};

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Objects that were removed.
    pub removed: u64,
    /// Whether there may be more to remove at once.
    pub more: bool,
}

/// Removes at most `most` objects that nobody has held for as long as objects are kept, counted
/// from the first sweep that found them so. Several may sweep at once.
///
/// # Errors
/// If the database or the object store does not answer; what is left is removed another time.
pub(in crate::storage) async fn sweep(
    desk: &impl Desk,
    now: Timestamp,
    most: NonZeroU32,
) -> Result<Swept, Error> {
    let Some(objects) = desk.objects() else {
        return Ok(Swept::default());
    };
    let (dialect, most) = (desk.dialect(), i64::from(most.get()));
    let depot = objects.depot();
    let mut statements = vec![sql::note_loose(dialect, now, most)];
    if let Some(before) = objects.old(now) {
        statements.push(sql::doom(dialect, now, before, most));
    }
    // From this commit on, nobody can come to hold them.
    desk.tell(statements).await?;
    let rows = desk.ask(&sql::doomed(most)).await?;
    let doomed: Vec<Uuid> = rows
        .iter()
        .map(|row| object(row, 0))
        .collect::<Result<_, _>>()?;
    let more = i64::try_from(doomed.len()).is_ok_and(|count| count >= most);
    let (gone, failed) = match doomed.is_empty() {
        true => (Vec::new(), None),
        false => objects.remove(doomed).await,
    };
    let removed = gone.len() as u64;
    if !gone.is_empty() {
        desk.tell(vec![sql::forget(&gone)]).await?;
    }
    depot.counts.note(&count(desk).await?);
    match failed {
        Some(error) => Err(error),
        None => Ok(Swept { removed, more }),
    }
}
