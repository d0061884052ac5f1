//! Reading: bodies that lie outside are fetched before rows are unpacked.

use futures::{StreamExt as _, stream};

use super::{Objects, Reference, depot::OF_ONE};
use crate::{codec::record::StoredRecord, seam::Error};

/// Fetches the body of a record if it lies outside; then it is as if it had been read from the
/// database.
///
/// # Errors [`Error::MissingObject`] or [`Error::Corrupt`] if there is nothing to be fetched any
/// more, [`Error::ObjectStoreUnavailable`] if the store does not answer, [`Error::Incompatible`] if
/// none is configured.
async fn fetch_one(objects: Option<&Objects>, raw: &mut StoredRecord) -> Result<(), Error> {
    let Some(stored) = raw.outside() else {
        return Ok(());
    };
    let Some(objects) = objects else {
        return Err(Error::Incompatible(
            "a body lies in an object store, and none is configured; set objects_url to where it is"
                .to_owned(),
        ));
    };
    let reference = Reference::read(&stored.bytes)?;
    let bytes = objects.get(&reference).await?;
    stored.internalize(bytes.into());
    Ok(())
}

/// Fetches the bodies of many, a few at once, and says what became of each.
pub(crate) async fn fetch_external<'r>(
    objects: Option<&Objects>,
    raws: impl IntoIterator<Item = &'r mut StoredRecord>,
) -> Vec<Result<(), Error>> {
    let bringing: Vec<_> = raws
        .into_iter()
        .map(|raw| fetch_one(objects, raw))
        .collect();
    stream::iter(bringing).buffered(OF_ONE).collect().await
}
