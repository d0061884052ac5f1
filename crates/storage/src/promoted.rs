//! Promoted fields: which there are, and bringing their indexes up to date.
//!
//! Invariant: for every field that is ready and every record, exactly the keys that the record's
//! payload gives are in `promoted_values`. A key that is missing would hide the record from a filter
//! on the value, a key too many from a filter on its absence.
//!
//! The set of fields has a generation, which every write of a record tests: one that was prepared
//! from another generation changes nothing, and is prepared again.

mod fill;
mod known;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use jiff::Timestamp;

pub(super) use self::{fill::fill, known::Promotions};
use super::{
    Error,
    driver::Database,
    known::Known,
    sql::{cells::Cells as _, promote, promoted},
    store::SqlStore,
};
use hindsight_filter::promoted::{Kind, Path};

/// Most fields that may be promoted.
pub const MOST_PROMOTED: u32 = 16;

/// A promoted field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// Its number, which no other field gets.
    pub id: i64,
    /// Which part of payloads.
    pub path: Path,
    /// Which values of it.
    pub kind: Kind,
    /// When it was added.
    pub added: Timestamp,
    /// Whether its index is whole; until then nobody asks it.
    pub ready: bool,
    /// The last row that was looked at, of those that were there before the field.
    pub done_row: i64,
    /// The last row that was there before the field.
    pub until_row: i64,
}

/// How far a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Records that were looked at.
    pub records: u64,
    /// How much closer to the last row it is.
    pub rows: u64,
    /// Whether the index is whole.
    pub ready: bool,
}

/// The fields that are known, looked up if that was long ago.
pub(super) async fn known(store: &SqlStore<impl Database>) -> Result<Arc<Known>, Error> {
    if let Some(known) = store.noticed().recent() {
        return Ok(known);
    }
    look(store).await
}

/// The fields that there are now.
pub(super) async fn look(store: &SqlStore<impl Database>) -> Result<Arc<Known>, Error> {
    let rows = store.ask(&promoted::known()).await?;
    let known = Arc::new(promoted::read_known(&rows)?);
    store.noticed().keep(&known);
    Ok(known)
}

/// Adds a field; its index is empty.
///
/// # Errors
/// [`Error::Exists`] if it is there, [`Error::Unfit`] if there are too many.
pub(super) async fn promote(
    store: &SqlStore<impl Database>,
    path: &Path,
    kind: Kind,
    added: Timestamp,
) -> Result<Promotion, Error> {
    let text = path.to_string();
    let add = promote::add(
        store.dialect(),
        &text,
        kind.name(),
        added.as_microsecond(),
        i64::from(MOST_PROMOTED),
    );
    let before = look(store).await?;
    if before.at(path).is_some() {
        return Err(Error::Exists(text));
    }
    store.tell(add).await?;
    let now = look(store).await?;
    match now.at(path) {
        Some(promotion) if before.at(path).is_none() && promotion.kind == kind => {
            Ok(promotion.clone())
        }
        Some(_) => Err(Error::Exists(text)),
        None => Err(Error::Unfit(format!(
            "{MOST_PROMOTED} fields are promoted, which is the most; remove one that nobody \
             asks for with `hindsight index remove`"
        ))),
    }
}

/// Removes a field. What is stored of it is cleared by [`sweep`].
///
/// # Errors
/// [`Error::Missing`] if it is not there.
pub(super) async fn demote(store: &SqlStore<impl Database>, path: &Path) -> Result<(), Error> {
    let text = path.to_string();
    if look(store).await?.at(path).is_none() {
        return Err(Error::Missing(text));
    }
    store.tell(promote::remove(store.dialect(), &text)).await?;
    look(store).await.map(drop)
}

/// Clears what is left of fields that were removed, at most `most` entries in one transaction; says
/// how many there were.
pub(super) async fn sweep(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
    let mut done = 0;
    for row in store.ask(&promote::gone()).await? {
        let Some(field) = row.int(0)? else { continue };
        loop {
            let clear = promote::clear(store.dialect(), field, most.get().into());
            match store.tell(vec![clear]).await? {
                0 => break,
                gone => done += gone,
            }
        }
        store.tell(vec![promote::cleared(field)]).await?;
    }
    Ok(done)
}
