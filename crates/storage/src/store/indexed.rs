//! Indexed paths: which there are, and bringing their indexes up to date.
//!
//! Invariant: for every field that is ready and every record, exactly the keys that the record's
//! payload gives are in `index_entries`. A key that is missing would hide the record from a
//! filter on the value, a key too many from a filter on its absence.
//!
//! The set of fields has a generation, which every write of a record tests: one that was prepared
//! from another generation changes nothing, and is prepared again.

mod build;
mod known;
#[cfg(test)]
mod tests;

use std::{num::NonZeroU32, sync::Arc};

use jiff::Timestamp;

pub(crate) use self::{build::build_index, known::IndexCache};
use super::SqlStore;
use crate::{
    codec::known::IndexedPaths,
    driver::Database,
    seam::{Error, IndexedPath, MAX_INDEXES},
    sql::{index_build, indexed, row::SqlRow as _},
};
use hindsight_filter::indexed::{Kind, Path};

/// The fields that are known, looked up if that was long ago.
pub(crate) async fn known(store: &SqlStore<impl Database>) -> Result<Arc<IndexedPaths>, Error> {
    if let Some(known) = store.noticed().recent() {
        return Ok(known);
    }
    look(store).await
}

/// The fields that there are now.
pub(crate) async fn look(store: &SqlStore<impl Database>) -> Result<Arc<IndexedPaths>, Error> {
    let rows = store.ask(&indexed::known()).await?;
    let known = Arc::new(indexed::read_known(&rows)?);
    store.noticed().keep(&known);
    Ok(known)
}

/// Adds a field; its index is empty.
///
/// Fails with [`Error::Exists`] if it is there, [`Error::Incompatible`] if there are too many.
pub(crate) async fn create_index(
    store: &SqlStore<impl Database>,
    path: &Path,
    kind: Kind,
    added: Timestamp,
) -> Result<IndexedPath, Error> {
    let text = path.to_string();
    let add = index_build::add(
        store.dialect(),
        &text,
        kind.name(),
        added.as_microsecond(),
        i64::from(MAX_INDEXES),
    );
    let before = look(store).await?;
    if before.at(path).is_some() {
        return Err(Error::Exists(text));
    }
    store.tell(add).await?;
    let now = look(store).await?;
    match now.at(path) {
        Some(index) if before.at(path).is_none() && index.kind == kind => Ok(index.clone()),
        Some(_) => Err(Error::Exists(text)),
        None => Err(Error::Incompatible(format!(
            "{MAX_INDEXES} paths are indexed, which is the most; remove one with `hindsight index remove`"
        ))),
    }
}

/// Removes a field. What is stored of it is cleared by [`sweep`].
///
/// Fails with [`Error::Missing`] if it is not there.
pub(crate) async fn drop_index(store: &SqlStore<impl Database>, path: &Path) -> Result<(), Error> {
    let text = path.to_string();
    if look(store).await?.at(path).is_none() {
        return Err(Error::Missing(text));
    }
    store
        .tell(index_build::remove(store.dialect(), &text))
        .await?;
    look(store).await.map(drop)
}

/// Clears what is left of fields that were removed, at most `most` entries in one transaction; says
/// how many there were.
pub(crate) async fn sweep(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
    let mut done = 0;
    for row in store.ask(&index_build::gone()).await? {
        let Some(field) = row.int(0)? else { continue };
        loop {
            let clear = index_build::clear(store.dialect(), field, most.get().into());
            match store.tell(vec![clear]).await? {
                0 => break,
                gone => done += gone,
            }
        }
        store.tell(vec![index_build::cleared(field)]).await?;
    }
    Ok(done)
}
