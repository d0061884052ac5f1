//! Removing objects that no body refers to any more, and those that no body came to refer to.

use std::num::NonZeroU32;

use jiff::Timestamp;
use uuid::Uuid;

use super::count;
use crate::{driver::Database, seam::Error, sql::objects as sql, store::SqlStore};

/// Removes the objects that no body has held for as long as objects are kept, counted from the
/// first sweep that found them so, and says how many. A statement changes `batch` rows at most, so
/// that writers never wait long. Several may sweep at once.
///
/// An object whose removal is refused for good (a 403 on its prefix) is passed over until the next
/// sweep; an object store that does not answer ends the sweep.
///
/// # Errors
/// If the database or object store unavailable; what is left is removed another time.
pub(crate) async fn sweep(
    store: &SqlStore<impl Database>,
    now: Timestamp,
    batch: NonZeroU32,
) -> Result<u64, Error> {
    let Some(objects) = store.objects() else {
        return Ok(0);
    };
    let (dialect, most) = (store.dialect(), i64::from(batch.get()));
    // From the commit that dooms them on, no body can come to hold them.
    while store
        .tell(vec![sql::note_unreferenced(dialect, now, most)])
        .await?
        >= u64::from(batch.get())
    {}
    if let Some(old) = objects.old(now) {
        while store
            .tell(vec![sql::condemn(dialect, now, old, most)])
            .await?
            >= u64::from(batch.get())
        {}
    }
    let (mut removed, mut refused, mut after) = (0, None, None);
    loop {
        let condemned: Vec<Uuid> = store
            .ask(&sql::condemned(after, most))
            .await?
            .iter()
            .map(|row| sql::object(row, 0))
            .collect::<Result<_, _>>()?;
        let Some(last) = condemned.last().copied() else {
            break;
        };
        after = Some(last);
        let outcome = objects.remove(condemned).await;
        removed += outcome.gone.len() as u64;
        if !outcome.gone.is_empty() {
            store.tell(vec![sql::forget(&outcome.gone)]).await?;
        }
        refused = outcome.refused.or(refused);
        if outcome.is_away {
            break;
        }
    }
    objects.depot().note(&count(store).await?);
    match refused {
        Some(error) => Err(error),
        None => Ok(removed),
    }
}
