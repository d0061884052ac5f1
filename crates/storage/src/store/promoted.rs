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

pub(crate) use self::{fill::fill, known::Promotions};
use super::SqlStore;
use crate::{
    codec::known::Known,
    driver::Database,
    seam::{Error, MOST_PROMOTED, Promotion},
    sql::{cells::Cells as _, promote, promoted},
};
use hindsight_filter::promoted::{Kind, Path};

/// The fields that are known, looked up if that was long ago.
pub(crate) async fn known(store: &SqlStore<impl Database>) -> Result<Arc<Known>, Error> {
    if let Some(known) = store.noticed().recent() {
        return Ok(known);
    }
    look(store).await
}

/// The fields that there are now.
pub(crate) async fn look(store: &SqlStore<impl Database>) -> Result<Arc<Known>, Error> {
    let rows = store.ask(&promoted::known()).await?;
    let known = Arc::new(promoted::read_known(&rows)?);
    store.noticed().keep(&known);
    Ok(known)
}

/// Adds a field; its index is empty.
///
/// # Errors
/// [`Error::Exists`] if it is there, [`Error::Unfit`] if there are too many.
pub(crate) async fn promote(
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
pub(crate) async fn demote(store: &SqlStore<impl Database>, path: &Path) -> Result<(), Error> {
    let text = path.to_string();
    if look(store).await?.at(path).is_none() {
        return Err(Error::Missing(text));
    }
    store.tell(promote::remove(store.dialect(), &text)).await?;
    look(store).await.map(drop)
}

/// Clears what is left of fields that were removed, at most `most` entries in one transaction; says
/// how many there were.
pub(crate) async fn sweep(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
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
